// Random numbers by rejection: Poisson, gamma and binomial.
// May include: base, kernels.
// Invariant: every function holds the generator's mutex while it draws.
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/random/drawing.h"
#include "kernels/random/random.h"

namespace clew::kernels {

// Small means: products of uniforms. Large ones: Hoermann's transformed rejection (PTRS, 1993).
static double next_poisson(double mean, Generator& g) {
  if (mean == 0) return 0;
  if (mean < 10) {
    double limit = std::exp(-mean), product = 1;
    for (int64_t k = 0;; ++k) {
      product *= next_double(g);
      if (product <= limit) return static_cast<double>(k);
    }
  }
  double root = std::sqrt(mean), log_mean = std::log(mean);
  double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = next_double(g) - 0.5, v = next_double(g), us = 0.5 - std::fabs(u);
    double k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -mean + k * log_mean - std::lgamma(k + 1)) {
      return k;
    }
  }
}

void random_poisson(const NdView& dst, const NdView& rate, Generator& g) {
  const Drawing drawing(g, dst.numel());
  int64_t drawn = 0;
  dispatch_float("poisson", dst.dtype, [&]<class T>() {
    visit<T, T>(dst, rate, [&](T& x, const T& r) {
      double mean = static_cast<double>(static_cast<compute_t<T>>(r));
      if (!(mean >= 0) || std::isinf(mean)) {
        fail("poisson: every rate must be finite and not negative; got ", mean);
      }
      x = convert<T>(next_poisson(mean, g));
      Drawing::rest(drawn, 1);
    });
  });
}

// Marsaglia and Tsang, A simple method for generating gamma variables (2000). Its logarithm does
// not underflow where the concentration is small: x of a + 1, times u^(1 / a), is a number of a.
static double next_log_gamma(double a, Generator& g) {
  if (a == 0) return -std::numeric_limits<double>::infinity();
  if (!(a > 0) || std::isinf(a)) return a > 0 ? a : std::numeric_limits<double>::quiet_NaN();
  double shift = 0;
  if (a < 1) {
    shift = std::log1p(-next_double(g)) / a;
    a += 1;
  }
  // A third in single precision, as PyTorch takes it, so that equal seeds give equal numbers.
  double d = a - static_cast<double>(1.0f / 3.0f), c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = next_normal(g), root = 1 + c * x;
    if (root <= 0) continue;
    double v = root * root * root, u = 1 - next_double(g), square = x * x;
    double log_v = std::log(v);
    if (u < 1 - 0.0331 * square * square || std::log(u) < 0.5 * square + d * (1 - v + log_v)) {
      return shift + std::log(d) + log_v;
    }
  }
}

void random_log_gamma(const NdView& dst, const NdView& concentration, Generator& g) {
  const Drawing drawing(g, dst.numel());
  int64_t drawn = 0;
  visit<double, double>(dst, concentration, [&](double& x, const double& a) {
    x = next_log_gamma(a, g);
    Drawing::rest(drawn, 4);
  });
}

// log k! less Stirling's sqrt(2 pi) k^(k + 1/2) e^-k, as a series in 1 / (k + 1).
static double stirling_rest(double k) {
  if (k < 10) {
    return std::lgamma(k + 1) -
           ((k + 0.5) * std::log(k + 1) - (k + 1) + 0.5 * std::log(2 * std::numbers::pi));
  }
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// For p up to one half. Few successes: gaps between them. Many: Hoermann's BTRS, The generation of
// binomial random variates (1993).
static double next_binomial(double n, double p, Generator& g) {
  if (n * p < 10) {
    double log_q = std::log1p(-p), trials = 0;
    for (double k = 0;; ++k) {
      trials += std::ceil(std::log(next_double(g)) / log_q);
      if (trials > n) return k;
    }
  }
  double spread = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * spread;
  double a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, v_r = 0.92 - 4.2 / b;
  double odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * spread, m = std::floor((n + 1) * p);
  for (;;) {
    double u = next_double(g) - 0.5, v = next_double(g), us = 0.5 - std::fabs(u);
    double k = std::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > n) continue;
    if (us >= 0.07 && v <= v_r) return k;
    double bound = (m + 0.5) * std::log((m + 1) / (odds * (n - m + 1))) +
                   (n + 1) * std::log((n - m + 1) / (n - k + 1)) +
                   (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) + stirling_rest(m) +
                   stirling_rest(n - m) - stirling_rest(k) - stirling_rest(n - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
}

void random_binomial(const NdView& dst, const NdView& count, const NdView& p, Generator& g) {
  const Drawing drawing(g, dst.numel());
  int64_t drawn = 0;
  visit<double, double, double>(dst, count, p, [&](double& x, const double& n, const double& q) {
    if (!std::isfinite(n) || std::isnan(q))
      x = std::numeric_limits<double>::quiet_NaN();  // no end otherwise
    else if (n <= 0 || q <= 0)
      x = 0;
    else if (q >= 1)
      x = n;
    else
      x = q <= 0.5 ? next_binomial(n, q, g) : n - next_binomial(n, 1 - q, g);
    Drawing::rest(drawn, 8);
  });
}

}  // namespace clew::kernels

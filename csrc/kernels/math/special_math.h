// Special functions of one or two doubles: gamma family, modified Bessel functions, zeta.
// May include: the standard library only.
// Invariant: about 1e-14 relative to the true value away from zeros and poles; float ops compute
// here in double.
#pragma once
#include <cmath>
#include <limits>

namespace clew::kernels {
namespace {
namespace special {

inline constexpr double pi = 3.14159265358979323846;
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

inline double digamma(double x) {
  if (x == 0) return std::copysign(infinity, -x);
  if (x < 0) {
    if (x == std::floor(x)) return not_a_number;
    // Reflection; the tangent of the fraction alone keeps its digits for large -x.
    double whole;
    double fraction = std::modf(x, &whole);
    return digamma(1 - x) - pi / std::tan(pi * fraction);
  }
  double shift = 0;
  for (; x < 10; ++x) shift += 1 / x;
  double z = 1 / (x * x);
  double tail =
      z * (1. / 12 -
           z * (1. / 120 -
                z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 - z / 12))))));
  return std::log(x) - 0.5 / x - (x < 1e17 ? tail : 0) - shift;
}

// Hurwitz zeta: the sum of (q + k)^-s, by Euler and Maclaurin.
inline double zeta(double s, double q) {
  if (s == 1) return infinity;
  if (!(s > 1)) return not_a_number;
  if (q == infinity) return 0;
  if (q <= 0) {
    if (q == -infinity) return not_a_number;
    if (q == std::floor(q)) return infinity;
    if (s != std::floor(s)) return not_a_number;
  }
  double sum = 0;
  double a = q;
  for (int k = 0; k < 12 || a <= 9; ++k, a += 1) {
    double term = std::pow(a, -s);
    sum += term;
    if (std::fabs(term) < 1e-17 * std::fabs(sum)) return sum;
  }
  double power = std::pow(a, -s);
  sum += power * a / (s - 1) + 0.5 * power;
  constexpr double bernoulli[] = {1. / 12,          -1. / 720,
                                  1. / 30240,       -1. / 1209600,
                                  1. / 47900160,    -691. / 1307674368000,
                                  1. / 74724249600, -3617. / 10670622842880000};
  double factor = s;
  power /= a;
  for (int j = 0; j < 8; ++j) {
    sum += bernoulli[j] * factor * power;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2);
    power /= a * a;
  }
  return sum;
}

// For x from 0.5 on: the recurrence, then the asymptotic series (Abramowitz and Stegun, 6.4.12),
// whose next term is below 1e-16 of the sum.
inline double trigamma(double x) {
  double sum = 0;
  for (; x < 12; x += 1) sum += 1 / (x * x);
  const double r = 1 / x, s = r * r;
  double p = 7.0 / 6;
  for (double c : {-691.0 / 2730, 5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6}) p = p * s + c;
  return sum + (r + s / 2 + r * s * p);
}

inline double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1) {
    if (!(x < 0.5)) return trigamma(x);
    double sine = std::sin(pi * (x - std::floor(x)));
    return x == std::floor(x) ? infinity : pi * pi / (sine * sine) - trigamma(1 - x);
  }
  double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::tgamma(n + 1) * zeta(n + 1, x);
}

// e^-|x| I_order(x) for order 0 and 1: the power series, then the asymptotic one.
inline double bessel_i_scaled(int order, double x) {
  double a = std::fabs(x);
  double value;
  if (a != a) return a;
  if (a < 30) {
    double z = a * a / 4;
    double term = order == 0 ? 1 : a / 2;
    value = term;
    for (int k = 1; k < 200 && term > 1e-18 * value; ++k) {
      term *= z / (k * static_cast<double>(k + order));
      value += term;
    }
    value *= std::exp(-a);
  } else {
    double term = 1;
    value = 1;
    double mu = 4.0 * order * order;
    for (int k = 1; k < 40; ++k) {
      double odd = 2 * k - 1;
      double next = term * -(mu - odd * odd) / (8 * k * a);
      if (std::fabs(next) >= std::fabs(term)) break;
      term = next;
      value += term;
    }
    value = a == infinity ? 0 : value / std::sqrt(2 * pi * a);
  }
  return order == 1 && x < 0 ? -value : value;
}
inline double bessel_i(int order, double x) {
  double a = std::fabs(x);
  // In two steps, so that e^a may overflow only when the product does.
  double half = std::exp(a / 2);
  return a == infinity ? (order == 1 && x < 0 ? -infinity : infinity)
                       : bessel_i_scaled(order, x) * half * half;
}

}  // namespace special
}  // namespace
}  // namespace clew::kernels

// lgamma, digamma and trigamma of floats, in double, without branches, so that loops over them
// vectorise. May include: kernels/math/vmath.h. Invariant: within 1 unit in the last place of the
// float result, or within 2e-12 where that is nearly 0: around the roots between negative integers.
#pragma once
#include "kernels/math/vmath.h"

namespace clew::kernels {
namespace {
namespace vm {

inline constexpr double pi = 3.14159265358979323846;

// x less the nearest integer, times pi.
[[gnu::always_inline]] inline double half_turns(double x) {
  return (x - ((x + round_d) - round_d)) * pi;
}
// For |x| <= pi / 2.
[[gnu::always_inline]] inline double short_sin(double x) {
  constexpr double c[] = {-1. / 6,        1. / 120,        -1. / 5040,         1. / 362880,
                          -1. / 39916800, 1. / 6227020800, -1. / 1307674368000};
  double z = x * x;
  return x + x * z * horner(z, c);
}
[[gnu::always_inline]] inline double short_cos(double x) {
  constexpr double c[] = {-1. / 2,       1. / 24,        -1. / 720,         1. / 40320,
                          -1. / 3628800, 1. / 479001600, -1. / 87178291200, 1. / 20922789888000};
  double z = x * x;
  return 1.0 + z * horner(z, c);
}

// log |gamma(x)|: Stirling's series for large x. Smaller x are first raised by 7; x below 1/2 use
// the reflection gamma(x) gamma(1 - x) = pi / sin(pi x).
[[gnu::always_inline]] inline double log_gamma_for_float(double x) {
  const bool turned = x < 0.5;
  const double a = turned ? 1.0 - x : x;
  const bool low = a < 7.0;
  const double raised = a * (a + 1) * (a + 2) * (a + 3) * (a + 4) * (a + 5) * (a + 6);
  const double t = low ? a + 7.0 : a, r = 1.0 / t;
  constexpr double c[] = {1. / 12,   -1. / 360,      1. / 1260, -1. / 1680,
                          1. / 1188, -691. / 360360, 1. / 156};
  const double series =
      (t - 0.5) * log(t) - t + 0.91893853320467274178 + r * horner(r * r, c);  // log(2 pi) / 2
  const double factor = low ? raised : 1.0;
  const double rest = log(turned ? factor * pi / std::fabs(short_sin(half_turns(x))) : factor);
  const double value = turned ? rest - series : series - rest;
  return std::fabs(x) == inf<double> ? inf<double> : value;
}

// Smaller x are raised by 8, negative ones use the reflection digamma(1 - x) - pi / tan(pi x).
[[gnu::always_inline]] inline double digamma_for_float(double x) {
  const double a = x < 0.0 ? 1.0 - x : x;
  // 1 / a + 1 / (a + 1) + ... as one fraction
  double above = 1.0, below = a;
  for (double k : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}) {
    above = above * (a + k) + below;
    below *= a + k;
  }
  const bool low = a < 8.0;
  const double t = low ? a + 8.0 : a, r = 1.0 / t;
  constexpr double c[] = {1. / 12,  -1. / 120,     1. / 252, -1. / 240,
                          1. / 132, -691. / 32760, 1. / 12};
  const double series = log(t) - 0.5 * r - r * r * horner(r * r, c);
  double value = series - (low ? above / below : 0.0);
  const double turn = half_turns(x), sin = short_sin(turn);
  value -= x < 0.0 ? pi * short_cos(turn) / sin : 0.0;
  value = (x < 0.0) & (sin == 0.0) ? nan<double> : value;
  return x == 0.0 ? std::copysign(inf<double>, -x) : value;
}

// The slope of digamma: x below 8 are raised; x below 1/2 use the reflection pi^2 / sin(pi x)^2 -
// trigamma(1 - x).
[[gnu::always_inline]] inline double trigamma_for_float(double x) {
  const bool turned = x < 0.5;
  const double a = turned ? 1.0 - x : x;
  // 1 / a^2 + 1 / (a + 1)^2 + ... as one fraction
  double above = 1.0, below = a * a;
  for (double k : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}) {
    const double square = (a + k) * (a + k);
    above = above * square + below;
    below *= square;
  }
  const bool low = a < 8.0;
  const double t = low ? a + 8.0 : a, r = 1.0 / t, z = r * r;
  constexpr double c[] = {1. / 6, -1. / 30, 1. / 42, -1. / 30, 5. / 66, -691. / 2730};
  const double value = r + 0.5 * z + r * z * horner(z, c) + (low ? above / below : 0.0);
  const double sin = short_sin(half_turns(x));
  const double found = turned ? pi * pi / (sin * sin) - value : value;
  return x == -inf<double> ? inf<double> : found;
}

}  // namespace vm
}  // namespace
}  // namespace clew::kernels

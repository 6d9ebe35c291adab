// Functions of doubles that have another form for each kind of argument (sorted_loops.h): the
// inverse error function, the inverse of the normal distribution function and its logarithm, and
// the scaled complementary error function.
// May include: kernels/math.
// Invariant: erfinv is within 0.7 units in the last place, erfcx within 3 where it is not about to
// overflow, the others within 4 where the function is not near 0 (tests/ops/test_accuracy.py).
#pragma once
#include "kernels/math/vmath_close.h"
#include "kernels/math/vmath_error.h"

namespace clew::kernels {
namespace {
namespace vm {

// Up to 15 / 16: near 0 the slope there times x is nearly all, else Taylor's series around the
// nearest entry y of the table, in u = slope * distance.
[[gnu::always_inline]] inline double erfinv_inside(double x) {
  constexpr double near[] = {0.23201366653465577,  0.12755617530555376,  0.086552129241498997,
                             0.064959617740954615, 0.051731282789716272, 0.042836637283406538,
                             0.03647098873426626,  0.03151084185256821,  0.031326701893565921};
  constexpr double slope = 0.886226925452758, slope_low = -3.8332932499128993e-17;
  const double square = x * x, first = x * slope;
  const double more =
      product_error(x, slope, first) + x * (slope_low + square * horner(square, near));
  const double size = std::fabs(x), a = size <= 0.9375 ? size : 0.0;
  const double sum = a * erfinv_steps + round_d;
  const auto k = std::bit_cast<int64_t>(sum) - std::bit_cast<int64_t>(round_d);
  const ErfPoint point = erfinv_points[k];
  const double u = point.slope * (a - (sum - round_d) * (1.0 / erfinv_steps));
  const double y = point.value, z = y * y;
  const double c[] = {1.0,
                      y,
                      1. / 3 + 4. / 3 * z,
                      y * (7. / 6 + 2 * z),
                      7. / 30 + z * (46. / 15 + 16. / 5 * z),
                      y * (127. / 90 + z * (326. / 45 + 16. / 3 * z)),
                      127. / 630 + z * (116. / 21 + z * (568. / 35 + 64. / 7 * z)),
                      y * (4369. / 2520 + z * (1867. / 105 + z * (1234. / 35 + 16 * z)))};
  const double value = std::copysign(y + (point.low + u * horner(u, c)), x);
  const double inside = x == 0.0 ? x : first + more;
  return size > 0.125 ? value : inside;
}
struct Erfinv {
  static constexpr int kinds = 2;
  [[gnu::always_inline]] static int kind(double x) { return std::fabs(x) > 0.9375; }
  template <int kind> [[gnu::always_inline]] static double of(double x) {
    return kind == 0 ? erfinv_inside(x) : close::erfinv(x);
  }
};

// Where the normal distribution function is p: the inverse error function around 1/2, Wichura's
// rational functions (Algorithm AS 241, 1988) in the tails, and far out in them.
struct Ndtri {
  static constexpr int kinds = 3;
  static constexpr double first_tail = 1.3887943864964021e-11;  // e^-25
  [[gnu::always_inline]] static int kind(double p) {
    const double rest = p < 0.5 ? p : 1.0 - p;
    return (rest < 0.03125) + (rest < first_tail);
  }
  template <int kind> [[gnu::always_inline]] static double of(double p) {
    const double q = p - 0.5;
    if constexpr (kind == 0) {
      constexpr double root = 1.4142135623730951, root_low = -9.667293313452913e-17;
      const double y = erfinv_inside(2.0 * q);
      return product_and(y, root, y * root_low);
    }
    const double tail = std::sqrt(-log(q < 0.0 ? p : 1.0 - p));
    double outer;
    if constexpr (kind == 1) {
      constexpr double c[] = {1.42343711074968357734,   4.63033784615654529590,
                              5.76949722146069140550,   3.64784832476320460504,
                              1.27045825245236838258,   0.241780725177450611770,
                              0.0227238449892691845833, 0.000774545014278341407640};
      constexpr double d[] = {1.0,
                              2.05319162663775882187,
                              1.67638483018380384940,
                              0.689767334985100004550,
                              0.148103976427480074590,
                              0.0151986665636164571966,
                              5.47593808499534494600e-4,
                              1.05075007164441684324e-9};
      outer = horner(tail - 1.6, c) / horner(tail - 1.6, d);
    } else {
      constexpr double e[] = {6.65790464350110377720,    5.46378491116411436990,
                              1.78482653991729133580,    0.296560571828504891230,
                              0.0265321895265761230930,  1.24266094738807843860e-3,
                              2.71155556874348757815e-5, 2.01033439929228813265e-7};
      constexpr double f[] = {1.0,
                              0.599832206555887937690,
                              0.136929880922735805310,
                              0.0148753612908506148525,
                              7.86869131145613259100e-4,
                              1.84631831751005468180e-5,
                              1.42151175831644588870e-7,
                              2.04426310338993978564e-15};
      outer = horner(tail - 5.0, e) / horner(tail - 5.0, f);
    }
    return (p == 0.0) | (p == 1.0) ? std::copysign(inf<double>, q) : std::copysign(outer, q);
  }
};

// e^(x^2) erfc(x) of x >= 0, up to 27.5: erfc() without the bell; and beyond.
[[gnu::always_inline]] inline double erfcx_near(double a) {
  const double below = a + 0.5;
  const double below_low = a > 0.5 ? sum_error(a, 0.5, below) : sum_error(0.5, a, below);
  const Pair factor = erfc_factor(a);
  const double inverse = 1.0 / below, q = factor.high * inverse;
  const double left = product_error(q, below, factor.high) - (factor.low - q * below_low);
  return q - left * inverse;
}
[[gnu::always_inline]] inline double erfcx_far(double a) {
  constexpr double c[] = {1.0, -0.5, 0.75, -1.875, 6.5625, -29.53125, 162.421875, -1055.7421875};
  const double r = 1.0 / a;
  return 0.56418958354775628695 * r * horner(r * r, c);  // 1 / sqrt(pi)
}
struct Erfcx {
  static constexpr int kinds = 3;
  [[gnu::always_inline]] static int kind(double x) { return (x > 27.5) + 2 * (x < 0.0); }
  template <int kind> [[gnu::always_inline]] static double of(double x) {
    if constexpr (kind == 0) {
      return erfcx_near(x);
    } else if constexpr (kind == 1) {
      return erfcx_far(x);
    } else {
      const double square = x * x, low = product_error(x, x, square), e = exp(square);
      const double bell = e + (e < inf<double> ? e * low : 0.0), a = -x;
      return 2.0 * bell - erfcx_near(a < 27.5 ? a : 27.5);
    }
  }
};

// The logarithm of the normal distribution function.
struct LogNdtr {
  static constexpr int kinds = 3;
  [[gnu::always_inline]] static int kind(double x) { return (x < -1.0) + (x < -38.0); }
  template <int kind> [[gnu::always_inline]] static double of(double x) {
    constexpr double root_half = 0.70710678118654752440;
    if constexpr (kind == 0) {
      return log1p(-0.5 * erfc(x * root_half));
    } else {
      const double a = -x * root_half;
      return log(0.5 * (kind == 1 ? erfcx_near(a) : erfcx_far(a))) - 0.5 * x * x;
    }
  }
};

}  // namespace vm
}  // namespace
}  // namespace clew::kernels

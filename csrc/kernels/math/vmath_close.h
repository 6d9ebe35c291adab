// More accurate, slower versions of tanh, log1p, expm1, sin, cos and erfinv, used by the public
// operations. Kernels that compute these functions as a part use the quick ones of vmath.h,
// vmath_circular.h and vmath_error.h.
// May include: kernels/math.
// Invariant: within 0.55 units in the last place, of double 0.8, expm1 1, where products are not
// rounded (tests/ops/test_accuracy.py).
#pragma once
#include "kernels/math/vmath.h"
#include "kernels/math/vmath_circular.h"
#include "kernels/math/vmath_error.h"

namespace clew::kernels {
namespace {
namespace vm::close {

// Floats are computed in double: only the last rounding, to float, matters.

// e^x - 1 = value + scale - 1, for |x| <= 700.
struct Expm1 {
  double value, scale;
};
[[gnu::always_inline]] inline Expm1 expm1_for_float(double x) {
  constexpr double c[] = {1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320};
  double sum = x * log2_e<double> + round_d;
  double r = x - (sum - round_d) * ln2<double>;
  double scale = power_of_two(sum);
  return {scale * (r + r * r * horner(r, c)), scale};
}
[[gnu::always_inline]] inline float expm1(float x) {
  double y = x > 200.0f ? 200.0f : x;
  Expm1 e = expm1_for_float(y < -104.0 ? -104.0 : y);
  auto value = static_cast<float>(e.value + (e.scale - 1.0));
  return x == 0.0f ? x : value;
}
[[gnu::always_inline]] inline double expm1(double x) { return vm::expm1(x); }

[[gnu::always_inline]] inline float log1p(float x) {
  auto wide = static_cast<double>(x);
  double u = 1.0 + wide;
  double lost = wide - (u - 1.0);  // of tiny numbers all
  double value = log_for_float(u) + (std::fabs(wide) < 0.5 ? lost : 0.0);
  auto narrow = static_cast<float>(log_ends(u, value));
  return x == 0.0f ? x : narrow;
}
[[gnu::always_inline]] inline double log1p(double x) { return vm::log1p(x); }

[[gnu::always_inline]] inline float tanh(float x) {
  auto a = static_cast<double>(std::fabs(x));
  Expm1 e = expm1_for_float(2.0 * (a > 10.0 ? 10.0 : a));
  double value = e.value + (e.scale - 1.0);
  return std::copysign(static_cast<float>(value / (value + 2.0)), x);
}
// As in vmath.h, but also keeps the rounding error of the product r^2 / 2.
[[gnu::always_inline]] inline double tanh(double x) {
  double a = std::fabs(x);
  a = a > 22.0 ? 22.0 : a;
  double sum = (2.0 * a) * log2_e<double> + round_d, n = sum - round_d;
  double near = 2.0 * a - n * ln2_high<double>;
  double r = near - n * ln2_low<double>, r_low = (near - r) - n * ln2_low<double>;
  double scale = power_of_two(sum), part = scale * r, square = r * r;
  double half = scale * (0.5 * square);
  double rest =
      scale * (square * r * expm1_series(r) + (0.5 * product_error(r, r, square) + r_low));
  double up = (scale - 1.0) + part, up_low = sum_error(scale - 1.0, part, up);
  double down = (scale + 1.0) + part, down_low = sum_error(scale + 1.0, part, down) + rest;
  // The sum of the first two may be less than the third.
  double over = up + half, took = over - up;
  up_low += ((up - (over - took)) + (half - took)) + rest;
  double under = down + half;
  down_low += sum_error(down, half, under);
  double below = under + down_low, below_low = sum_error(under, down_low, below);
  double inverse = 1.0 / below, q = over * inverse;
  double left = product_error(q, below, over) - (up_low - q * below_low);
  return std::copysign(q - left * inverse, x);
}

// The sine of a float's angle in double, and the cosine.
[[gnu::always_inline]] inline SinCos<double> sincos_for_float(double x) {
  constexpr double s[] = {-1. / 6, 1. / 120, -1. / 5040, 1. / 362880};
  constexpr double c[] = {1. / 24, -1. / 720, 1. / 40320, -1. / 3628800};
  double sum = x * 0.63661977236758134308 + round_d, n = sum - round_d;
  double r = (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11, z = r * r;
  double sine = r + r * z * horner(z, s), cosine = (1.0 - 0.5 * z) + z * z * horner(z, c);
  auto q = static_cast<uint64_t>(std::bit_cast<uint64_t>(sum));
  double a = (q & 1u) != 0 ? cosine : sine, b = (q & 1u) != 0 ? sine : cosine;
  return {(q & 2u) != 0 ? -a : a, ((q + 1u) & 2u) != 0 ? -b : b};
}
[[gnu::always_inline]] inline float sin(float x) {
  auto value = static_cast<float>(sincos_for_float(x).sin);
  return x == 0.0f ? x : value;
}
[[gnu::always_inline]] inline float cos(float x) {
  return static_cast<float>(sincos_for_float(x).cos);
}
// As quarter_sincos(), with what the cube and the square lose.
[[gnu::always_inline]] inline SinCos<double> sincos(double x) {
  constexpr double s[] = {1. / 120,        -1. / 5040,         1. / 362880,        -1. / 39916800,
                          1. / 6227020800, -1. / 1307674368e3, 1. / 355687428096e3};
  constexpr double c[] = {
      1. / 24,        -1. / 720,         1. / 40320,         -1. / 3628800,
      1. / 479001600, -1. / 87178291200, 1. / 20922789888e3, -1. / 6402373705728e3};
  constexpr double sixth = -1. / 6, sixth_low = -9.25185853854297e-18;
  Turned<double> t = turned(x);
  double r = t.rest, z = r * r, z_low = product_error(r, r, z);
  double start = 1.0 - 0.5 * z, lost = (1.0 - start) - 0.5 * z;
  double cube = r * z, cube_low = product_error(r, z, cube) + r * z_low;
  double third = cube * sixth, sum = r + third;
  double third_low = product_error(cube, sixth, third) + (cube_low * sixth + cube * sixth_low);
  double more = cube * z * horner(z, s) + (third_low + start * t.low);
  double sine = sum + (sum_error(r, third, sum) + more);
  double cosine = start + (lost + (z * z * horner(z, c) - (0.5 * z_low + r * t.low)));
  uint32_t q = t.quarter;
  double a = (q & 1u) != 0 ? cosine : sine, b = (q & 1u) != 0 ? sine : cosine;
  a = (q & 2u) != 0 ? -a : a;
  b = ((q + 1u) & 2u) != 0 ? -b : b;
  return {x == 0.0 ? x : a, b};
}
[[gnu::always_inline]] inline double sin(double x) { return sincos(x).sin; }
[[gnu::always_inline]] inline double cos(double x) { return sincos(x).cos; }

// x times a function of w = -log(1 - x^2): a polynomial over all that floats reach, whose relative
// error is 3e-12.
[[gnu::always_inline]] inline float erfinv(float x) {
  constexpr double c[] = {
      2.722554791495,    1.443774787274,      -0.3349690156337,    0.1354316975915,
      -0.04610951002595, -0.007956249393275,  0.03856345754078,    -0.04740017451091,
      0.03860497237886,  -0.02044347185695,   0.002224335833757,   0.009614995726337,
      -0.01370401438434, 0.01188173526732,    -0.005426768168709,  -0.002312530444649,
      0.003508955581099, 0.00104302925983,    0.001187650915773,   -0.008210776169265,
      0.003892143679296, 0.006702813841374,   -0.00603483390936,   -0.001436017231487,
      0.002906547825748, -0.0003621303322172, -0.0004963465761734, 0.0001477320797292};
  auto wide = static_cast<double>(x);
  double w = -log(1.0 - wide * wide);
  auto value = static_cast<float>(wide * two_chains(w * (2 / 16.7) - 1.0, c));
  value = std::fabs(x) < 1.0f ? value : std::copysign(inf<float>, x);
  return std::fabs(x) <= 1.0f ? value : nan<float>;
}
// One step of Newton's from the quick value: by the table of erf(), whose entries are better than a
// double, and from 2.3 on, where the slope leaves too little of them, by erfc(). Below 0.1 the
// value is good enough.
[[gnu::always_inline]] inline double erfinv(double x) {
  const double first = std::fabs(vm::erfinv(x)), size = std::fabs(x);
  const bool near = first < 2.3;
  const double y = near ? first : 0.0;
  const ErfAround at = erf_around(y);
  const double beyond = (at.value - size) + at.rest;
  const double slope = at.slope * (1.0 - 2.0 * at.r * at.d);
  const double tail = near | (first == inf<double>) ? 3.0 : first;
  // What is left of 1 divides the slope by nearly this.
  const double far_slope = (1.0 - size) * (tail + std::sqrt(tail * tail + 1.8));
  const double over = near ? beyond : (1.0 - size) - erfc(tail), by = near ? slope : far_slope;
  const double value = (first > 0.1) & (first < 10.0) ? first - over / by : first;
  return std::copysign(value, x);
}

}  // namespace vm::close
}  // namespace
}  // namespace clew::kernels

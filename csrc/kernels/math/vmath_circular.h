// sin, cos and tan of float and double without branches and calls, so that loops over them
// vectorise.
// May include: kernels/math/vmath.h.
// Invariant: for |x| <= trig_limit within 1 unit in the last place, tan 1.5, of double 2.5
// (tests/ops/test_accuracy.py).
#pragma once
#include "kernels/math/vmath.h"

namespace clew::kernels {
namespace {
namespace vm {

// The quarter turns in x, and what is left of it, for |x| <= trig_limit. The angle of a float is
// reduced in three steps where products are not rounded, otherwise in double; that of a double in
// three steps whose products are exact.
template <class T> inline constexpr T trig_limit = static_cast<T>(100000);
template <class T> struct Turned {
  T rest, low;  // their sum is what is left
  uint32_t quarter;
};
[[gnu::always_inline]] inline Turned<double> turned(double x) {
  double sum = x * 0.63661977236758134308 + round_d;
  double n = sum - round_d;
  double far = x - n * 1.57079632673412561417;
  double rest = far - n * 6.07710050630396597660e-11;
  double low = (far - rest) - n * 6.07710050630396597660e-11;
  return {rest, low - n * 2.02226624879595063154e-21,
          static_cast<uint32_t>(std::bit_cast<uint64_t>(sum))};
}
[[gnu::always_inline]] inline Turned<float> turned(float x) {
  if constexpr (fuses) {
    float sum = std::fma(x, 0.636619772f, round_f);
    float n = sum - round_f;
    // The first step is exact: multiples of 2^-23 that are less than 1.
    float far = std::fma(n, -1.57079637051f, x);
    float step = n * 4.371139e-08f, rest = far + step;
    // Either of the two may be the larger one.
    float took = rest - far, low = (far - (rest - took)) + (step - took);
    low += std::fma(n, 4.371139e-08f, -step);
    return {rest, std::fma(n, 1.7151245e-15f, low), std::bit_cast<uint32_t>(sum)};
  }
  double sum = x * 0.63661977236758134308 + round_d;
  double n = sum - round_d;
  double whole = (x - n * 1.57079632673412561417) - n * 6.07710050630396597660e-11;
  auto rest = static_cast<float>(whole);
  return {rest, static_cast<float>(whole - rest),
          static_cast<uint32_t>(std::bit_cast<uint64_t>(sum))};
}
template <class T> struct SinCos { T sin, cos; };
// Both of t.rest + t.low, where the series give sin r = r + r z s(z) and
// cos r = 1 - z / 2 + z z c(z) with z = r r.
template <class T, int N, int M>
[[gnu::always_inline]] inline SinCos<T> quarter_sincos(const Turned<T>& t, const T (&s)[N],
                                                       const T (&c)[M]) {
  T r = t.rest, z = r * r;
  T start = T(1) - T(0.5) * z;
  T lost = (T(1) - start) - T(0.5) * z;
  return {r + (start * t.low + r * z * horner(z, s)),
          start + (lost + (z * z * horner(z, c) - r * t.low))};
}
[[gnu::always_inline]] inline SinCos<float> quarter_sincos(const Turned<float>& t) {
  // Equal ripples, within 3.6e-9 of the sine and 1e-10 of the cosine.
  constexpr float s[] = {-0.16666655f, 0.008332178f, -0.00019517235f};
  constexpr float c[] = {0.041666646f, -0.0013887367f, 2.4438372e-05f};
  return quarter_sincos(t, s, c);
}
[[gnu::always_inline]] inline SinCos<double> quarter_sincos(const Turned<double>& t) {
  constexpr double s[] = {-1. / 6,        1. / 120,        -1. / 5040,         1. / 362880,
                          -1. / 39916800, 1. / 6227020800, -1. / 1307674368e3, 1. / 355687428096e3};
  constexpr double c[] = {
      1. / 24,        -1. / 720,         1. / 40320,         -1. / 3628800,
      1. / 479001600, -1. / 87178291200, 1. / 20922789888e3, -1. / 6402373705728e3};
  return quarter_sincos(t, s, c);
}
template <class T> [[gnu::always_inline]] inline SinCos<T> sincos(T x) {
  Turned<T> t = turned(x);
  SinCos<T> v = quarter_sincos(t);
  uint32_t q = t.quarter;
  T a = (q & 1u) != 0 ? v.cos : v.sin;
  T b = (q & 1u) != 0 ? v.sin : v.cos;
  a = (q & 2u) != 0 ? -a : a;
  b = ((q + 1u) & 2u) != 0 ? -b : b;
  return {x == T(0) ? x : a, b};
}
template <class T> [[gnu::always_inline]] inline T sin(T x) { return sincos(x).sin; }
template <class T> [[gnu::always_inline]] inline T cos(T x) { return sincos(x).cos; }
[[gnu::always_inline]] inline double tan(double x) {
  SinCos<double> v = sincos(x);
  return v.sin / v.cos;
}
// Of a float by its own polynomial, within 1.3e-9 of the tangent up to an eighth of a turn: the
// quotient of two rounded numbers is twice as far off.
[[gnu::always_inline]] inline float tan(float x) {
  Turned<float> t = turned(x);
  float z = t.rest * t.rest;
  constexpr float c[] = {0.3333335f, 0.1333266f,    0.0540602f, 0.02128065f,
                         0.0108399f, 8.423808e-05f, 0.00437894f};
  float more = (t.low + t.low * z) + t.rest * z * horner(z, c), near = t.rest + more;
  // Adds back the rounding errors of the sum and the division.
  float over = -1.0f / near;
  over += over * (product_error(over, near, -1.0f) + over * sum_error(t.rest, more, near));
  float value = (t.quarter & 1u) != 0 ? over : near;
  return x == 0.0f ? x : value;
}

}  // namespace vm
}  // namespace
}  // namespace clew::kernels

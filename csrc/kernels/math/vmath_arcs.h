// atan, asin, acos and the inverse hyperbolic functions of float and double without branches and
// calls, so that loops over them vectorise.
// May include: kernels/math/vmath.h.
// Invariant: within 2 units in the last place of the true value, atan2 3
// (tests/ops/test_accuracy.py); infinities and nan as the C library has them.
#pragma once
#include "kernels/math/vmath.h"

namespace clew::kernels {
namespace {
namespace vm {

// atan(x) / x - 1 over z = x^2, for |x| <= tan(pi / 8).
[[gnu::always_inline]] inline float atan_series(float z) {
  constexpr float c[] = {-0.33333331750569989f, 0.19999536505453153f, -0.14263783094254992f,
                         0.10741604562949936f, -0.064442384740476172f};
  return horner(z, c);
}
[[gnu::always_inline]] inline double atan_series(double z) {
  constexpr double c[] = {-0.33333333333333315,  0.19999999999995119,   -0.1428571428467566,
                          0.11111111018529411,   -0.090909047425683287, 0.076921870858692148,
                          -0.066645635186114757, 0.05858564834169603,   -0.050874257240478213,
                          0.039283386472559384,  -0.019234569460305637};
  return horner(z, c);
}
// The same in double with as many digits as a float needs: relative error of atan 2.5e-9.
struct ShortAtanSeries {
  [[gnu::always_inline]] double operator()(double z) const {
    constexpr double c[] = {-0.33333331806359057, 0.19999548430738118, -0.14264175049055977,
                            0.107456731190897, -0.06457294687893742};
    return horner(z, c);
  }
};
struct AtanSeries {
  template <class T> [[gnu::always_inline]] T operator()(T z) const { return atan_series(z); }
};
// The arc tangent of y / x for y >= 0, x >= 0: the angle is turned by 0, 45 or 90 degrees.
template <class Series = AtanSeries, class T>
[[gnu::always_inline]] inline T first_quadrant(T y, T x) {
  constexpr T turn = static_cast<T>(0.78539816339744830962L);
  constexpr T turn_low = static_cast<T>(0.78539816339744830962L - static_cast<long double>(turn));
  bool steep = y > x * T(2.41421356237309504880);
  bool middle = y > x * T(0.41421356237309504880);
  T up = steep ? -x : middle ? y - x : y;
  T down = steep ? y : middle ? y + x : x;
  T turns = steep ? T(2) : middle ? T(1) : T(0);
  T q = up == T(0) ? T(0) : up / down;
  T z = q * q;
  return turns * turn + (q + (q * z * Series{}(z) + turns * turn_low));
}
template <class T> [[gnu::always_inline]] inline T atan(T x) {
  T a = std::fabs(x);
  T value = first_quadrant(a == inf<T> ? T(1) : a, a == inf<T> ? T(0) : T(1));
  return x != x ? x : std::copysign(value, x);
}
// In double, where sums of floats do not overflow.
[[gnu::always_inline]] inline float atan2(float y, float x) {
  double a = std::fabs(static_cast<double>(y));
  double b = std::fabs(static_cast<double>(x));
  bool far_up = a == inf<double>;
  bool far_out = b == inf<double>;
  a = far_up ? 1.0 : far_out ? 0.0 : a;
  b = far_out ? 1.0 : far_up ? 0.0 : b;
  double turn = first_quadrant<ShortAtanSeries>(a, b);
  turn = std::signbit(x) ? 3.14159265358979323846 - turn : turn;
  auto value = static_cast<float>(std::copysign(turn, static_cast<double>(y)));
  return (x != x) | (y != y) ? nan<float> : value;
}
[[gnu::always_inline]] inline double atan2(double y, double x) {
  constexpr double pi = 3.14159265358979323846, pi_low = 1.2246467991473531772e-16;
  const double a = std::fabs(y), b = std::fabs(x);
  const double scale = a + b < 0x1p1000 ? 1.0 : 0x1p-100;  // sums stay finite
  double turn = first_quadrant(a * scale, b * scale);
  turn = b == inf<double> ? 0.0 : turn;
  const double up = b == inf<double> ? 0.25 * pi : 0.5 * pi;
  turn = a == inf<double> ? up : turn;
  const double left = pi - (turn - pi_low);
  turn = std::copysign(1.0, x) < 0.0 ? left : turn;
  return (x != x) | (y != y) ? nan<double> : std::copysign(turn, y);
}

// asin(x) / x - 1 over z = x^2, for |x| <= 1/2.
[[gnu::always_inline]] inline float asin_series(float z) {
  constexpr float c[] = {0.16666666317990445f,  0.075000985217539826f, 0.044598108349548811f,
                         0.031115312098373663f, 0.017081690442396491f, 0.033799654985406533f};
  return horner(z, c);
}
[[gnu::always_inline]] inline double asin_series(double z) {
  constexpr double c[] = {0.16666666666666663,   0.074999999999986217, 0.044642857145840951,
                          0.030381944172274668,  0.02237217192108697,  0.017352409781648384,
                          0.013971047493588224,  0.011480066618587848, 0.010320978513057149,
                          0.0054514812731450957, 0.01744755977142325,  -0.014961508567046755,
                          0.028851392229548533};
  return horner(z, c);
}
// What asin and acos share: for |x| <= 1/2 asin |x|, else half of acos |x|; as a sum.
template <class T> struct ArcSine { T main, rest; };
template <class T> [[gnu::always_inline]] inline ArcSine<T> asin_core(T a) {
  bool far = a > T(0.5);
  T z = far ? (T(1) - a) * T(0.5) : a * a;
  T s = far ? std::sqrt(z) : a;
  return {s, s * z * asin_series(z)};
}
template <class T> inline constexpr T right_angle = static_cast<T>(1.57079632679489661923L);
template <class T>
inline constexpr T right_angle_low = static_cast<T>(1.57079632679489661923L -
                                                    static_cast<long double>(right_angle<T>));
template <class T> [[gnu::always_inline]] inline T asin(T x) {
  T a = std::fabs(x);
  ArcSine<T> core = asin_core(a);
  bool far = a > T(0.5);
  T start = far ? right_angle<T> : T(0);
  T factor = far ? T(-2) : T(1);
  T part = factor * core.main, main = start + part;
  T low = far ? right_angle_low<T> : T(0);
  return std::copysign(main + (sum_error(start, part, main) + (factor * core.rest + low)), x);
}
template <class T> [[gnu::always_inline]] inline T acos(T x) {
  T a = std::fabs(x);
  ArcSine<T> parts = asin_core(a);
  T core = parts.main + parts.rest;
  T near = right_angle<T> - (std::copysign(core, x) - right_angle_low<T>);
  T back = T(2) * right_angle<T> - (T(2) * core - T(2) * right_angle_low<T>);
  T far = x < T(0) ? back : T(2) * core;
  return a > T(0.5) ? far : near;
}

// The inverse hyperbolic functions of a float: logarithms in double; near 0 the number itself.
[[gnu::always_inline]] inline float asinh(float x) {
  double a = std::fabs(static_cast<double>(x));
  auto value = static_cast<float>(log_for_float(a + std::sqrt(a * a + 1.0)));
  value = a < 0.03 ? static_cast<float>(a - a * a * a * (1. / 6 - a * a * (3. / 40))) : value;
  value = a == inf<double> ? inf<float> : value;
  return x != x ? x : std::copysign(value, x);
}
[[gnu::always_inline]] inline float acosh(float x) {
  auto d = static_cast<double>(x);
  double e = d - 1.0;
  double t = e + std::sqrt(e * (d + 1.0));  // the argument less 1
  auto value = static_cast<float>(log_for_float(1.0 + t));
  value = x == inf<float> ? x : value;
  return x >= 1.0f ? value : nan<float>;
}
[[gnu::always_inline]] inline float atanh(float x) {
  double a = std::fabs(static_cast<double>(x));
  auto value = static_cast<float>(0.5 * log_for_float((1.0 + a) / (1.0 - a)));
  value = a < 0.03 ? static_cast<float>(a + a * a * a * (1. / 3 + a * a * (1. / 5))) : value;
  value = a == 1.0 ? inf<float> : value;
  value = a > 1.0 ? nan<float> : value;
  return x != x ? x : std::copysign(value, x);
}
[[gnu::always_inline]] inline double asinh(double x) { return std::asinh(x); }
[[gnu::always_inline]] inline double acosh(double x) { return std::acosh(x); }
[[gnu::always_inline]] inline double atanh(double x) {
  const double a = std::fabs(x);  // beyond 1 the logarithm is that of a negative number
  const double below = 1.0 - a, inverse = 1.0 / below, q = 2.0 * a * inverse;
  const double left = product_error(q, below, 2.0 * a) + q * ((1.0 - below) - a);
  const double low = a < 1.0 ? -left * inverse : 0.0;
  return x != x ? x : std::copysign(0.5 * log1p(q, low), x);
}

}  // namespace vm
}  // namespace
}  // namespace clew::kernels

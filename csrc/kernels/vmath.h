// exp, log, tanh ... of float and double without branches and calls, so that loops over them
// vectorise. May include: base, kernels. Invariant: within 3 units in the last place of the true
// value; infinities and nan as the C library has them. Everything is in an anonymous namespace:
// each instruction set keeps its own copy.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace clew::kernels {
namespace {
namespace vm {

template <class T> inline constexpr T inf = std::numeric_limits<T>::infinity();
template <class T> inline constexpr T nan = std::numeric_limits<T>::quiet_NaN();

// Adding and subtracting this rounds a float of moderate size to the nearest integer, which then
// stands in the low bits of the sum.
inline constexpr float round_f = 12582912.0f;          // 1.5 * 2^23
inline constexpr double round_d = 6755399441055744.0;  // 1.5 * 2^52

// The polynomial with coefficients c[I], c[I + 1] ...: recursion, since an inner loop would keep
// the loop around it from being vectorised.
template <int I = 0, class T, int N> [[gnu::always_inline]] inline T horner(T x, const T (&c)[N]) {
  if constexpr (I == N - 1)
    return c[I];
  else
    return horner<I + 1>(x, c) * x + c[I];
}

// 2^n, where n stands in the low bits of a rounding sum.
[[gnu::always_inline]] inline float power_of_two(float rounding_sum) {
  uint32_t n = std::bit_cast<uint32_t>(rounding_sum) - std::bit_cast<uint32_t>(round_f);
  return std::bit_cast<float>((n + 127u) << 23);
}
[[gnu::always_inline]] inline double power_of_two(double rounding_sum) {
  uint64_t n = std::bit_cast<uint64_t>(rounding_sum) - std::bit_cast<uint64_t>(round_d);
  return std::bit_cast<double>((n + 1023u) << 52);
}
// e^r - 1 for |r| <= ln2/2: the Taylor series, whose rest is below half a unit in the last place.
[[gnu::always_inline]] inline float expm1_core(float r) {
  constexpr float c[] = {1.f / 2, 1.f / 6, 1.f / 24, 1.f / 120, 1.f / 720, 1.f / 5040};
  return r + r * r * horner(r, c);
}
[[gnu::always_inline]] inline double expm1_core(double r) {
  constexpr double c[] = {1. / 2,       1. / 6,        1. / 24,        1. / 120,
                          1. / 720,     1. / 5040,     1. / 40320,     1. / 362880,
                          1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800};
  return r + r * r * horner(r, c);
}
[[gnu::always_inline]] inline float reduce(float x, float n) {
  return (x - n * 0.693145752f) - n * 1.42860677e-6f;
}
[[gnu::always_inline]] inline double reduce(double x, double n) {
  return (x - n * 0.69314718036912382) - n * 1.9082149292705877e-10;
}
template <class T> inline constexpr T rounder = static_cast<T>(0);
template <> inline constexpr float rounder<float> = round_f;
template <> inline constexpr double rounder<double> = round_d;
template <class T> inline constexpr T log2_e = static_cast<T>(1.44269504088896340736);
template <class T> inline constexpr T exp_top = std::is_same_v<T, float> ? T(89) : T(710);
template <class T> inline constexpr T exp_bottom = std::is_same_v<T, float> ? T(-105) : T(-746);

template <class T> [[gnu::always_inline]] inline T exp(T x) {
  T y = x > exp_top<T> ? exp_top<T> : x;
  y = y < exp_bottom<T> ? exp_bottom<T> : y;
  T n = (y * log2_e<T> + rounder<T>)-rounder<T>;
  // 2^n in two steps, so that results below the smallest normal number round once.
  T half_sum = n * T(0.5) + rounder<T>;
  T rest_sum = (n - (half_sum - rounder<T>)) + rounder<T>;
  T value = T(1) + expm1_core(reduce(y, n));
  return value * power_of_two(half_sum) * power_of_two(rest_sum);
}

// For |x| <= 60.
template <class T> [[gnu::always_inline]] inline T expm1_moderate(T x) {
  T sum = x * log2_e<T> + rounder<T>;
  T n = sum - rounder<T>;
  T scale = power_of_two(sum);
  return scale * expm1_core(reduce(x, n)) + (scale - T(1));
}
template <class T> [[gnu::always_inline]] inline T expm1(T x) {
  constexpr T top = T(60);
  T y = x > top ? top : x;
  y = y < -top ? -top : y;
  T small = x == T(0) ? x : expm1_moderate(y);
  return x > top ? exp(x) : small;
}

// ln of a positive normal number scaled by 2^-shift.
[[gnu::always_inline]] inline float log_core(float x, float shift) {
  uint32_t u = std::bit_cast<uint32_t>(x) + (0x3f800000u - 0x3f3504f3u);
  auto n = static_cast<float>(static_cast<int32_t>(u >> 23) - 127) - shift;
  float f = std::bit_cast<float>((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float s = f / (2.0f + f);
  float z = s * s;
  constexpr float c[] = {2.f / 3, 2.f / 5, 2.f / 7, 2.f / 9};
  float tail = z * horner(z, c);
  float half = 0.5f * f * f;
  return n * 0.693145752f + (f - (half - (s * (half + tail) + n * 1.42860677e-6f)));
}
[[gnu::always_inline]] inline double log_core(double x, double shift) {
  constexpr uint64_t root = 0x3fe6a09e667f3bcdu;  // sqrt(1/2)
  uint64_t u = std::bit_cast<uint64_t>(x) + (0x3ff0000000000000u - root);
  // The exponent as a double, by its place in the significand of 2^52.
  double n =
      std::bit_cast<double>((u >> 52) | 0x4330000000000000u) - 4503599627370496.0 - 1023.0 - shift;
  double f = std::bit_cast<double>((u & 0x000fffffffffffffu) + root) - 1.0;
  double s = f / (2.0 + f);
  double z = s * s;
  constexpr double c[] = {2. / 3,  2. / 5,  2. / 7,  2. / 9,  2. / 11,
                          2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21};
  double tail = z * horner(z, c);
  double half = 0.5 * f * f;
  return n * 0.69314718036912382 + (f - (half - (s * (half + tail) + n * 1.9082149292705877e-10)));
}
template <class T> [[gnu::always_inline]] inline T log(T x) {
  constexpr T tiny = std::numeric_limits<T>::min();
  constexpr T up = std::is_same_v<T, float> ? T(33554432.0) : T(18014398509481984.0);
  constexpr T shift = std::is_same_v<T, float> ? T(25) : T(54);
  T scaled = x < tiny ? x * up : x;
  T value = log_core(scaled, x < tiny ? shift : T(0));
  value = x == inf<T> ? x : value;
  value = x == T(0) ? -inf<T> : value;
  return x >= T(0) ? value : nan<T>;
}
template <class T> [[gnu::always_inline]] inline T log1p(T x) {
  T u = T(1) + x;
  // What the rounding of 1 + x lost, put back to first order.
  T lost = (x > T(1) ? T(1) - (u - x) : x - (u - T(1))) / u;
  T main = log(u);
  lost = u == T(0) ? T(0) : lost;
  lost = x == inf<T> ? T(0) : lost;
  return x == T(0) ? x : main + lost;
}

template <class T> [[gnu::always_inline]] inline T tanh(T x) {
  T a = std::fabs(x);
  a = a > T(22) ? T(22) : a;
  T t = expm1_moderate(T(2) * a);
  return std::copysign(t / (t + T(2)), x);
}
template <class T> [[gnu::always_inline]] inline T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
// log(1 + e^x) without overflow.
template <class T> [[gnu::always_inline]] inline T log1p_exp(T x) {
  T top = x > T(0) ? x : T(0);
  return top + log1p(exp(-std::fabs(x)));
}

[[gnu::always_inline]] inline float erf(float x) {
  constexpr float near[] = {1.128379167e+00f,  -3.761263848e-01f, 1.128378262e-01f,
                            -2.686543831e-02f, 5.221053413e-03f,  -8.484396561e-04f,
                            1.126825397e-04f,  -9.673591037e-06f};
  constexpr float far[] = {-6.718491346e-06f, 2.822630618e-01f,  2.803367019e-01f,
                           2.566745961e-01f,  1.453501194e-01f,  1.322563147e-01f,
                           -9.531032342e-03f, -1.603549817e-01f, 7.338686521e-02f};
  float a = std::fabs(x);
  float inside = x * horner(x * x, near);
  float b = a > 10.0f ? 10.0f : a;
  float outside = 1.0f - exp(-b * b) * horner(1.0f / (1.0f + 0.5f * b), far);
  float value = a < 1.0f ? inside : std::copysign(outside, x);
  return x != x ? x : value;
}
[[gnu::always_inline]] inline double erf(double x) { return std::erf(x); }

// Good for |x| <= trig_limit.
inline constexpr float trig_limit = 100000.0f;
struct SinCos {
  float sin, cos;
};
[[gnu::always_inline]] inline SinCos sincos(float x) {
  double d = static_cast<double>(x);
  double sum = d * 0.63661977236758134308 + round_d;
  double n = sum - round_d;
  auto r = static_cast<float>((d - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11);
  auto q = static_cast<uint32_t>(std::bit_cast<uint64_t>(sum));
  float z = r * r;
  constexpr float s[] = {-1.f / 6, 1.f / 120, -1.f / 5040, 1.f / 362880};
  constexpr float c[] = {1.f / 24, -1.f / 720, 1.f / 40320, -1.f / 3628800};
  float sine = r + r * z * horner(z, s);
  float cosine = 1.0f - 0.5f * z + z * z * horner(z, c);
  float a = (q & 1u) != 0 ? cosine : sine;
  float b = (q & 1u) != 0 ? sine : cosine;
  a = (q & 2u) != 0 ? -a : a;
  b = ((q + 1u) & 2u) != 0 ? -b : b;
  return {x == 0.0f ? x : a, b};
}

}  // namespace vm
}  // namespace
}  // namespace clew::kernels

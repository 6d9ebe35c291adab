// exp, log, tanh ... of float and double without branches and calls, so that loops over them
// vectorise.
// May include: base, kernels.
// Invariant: within 2 units in the last place of the true value, most within 1, sigmoid 2.5
// (tests/ops/test_accuracy.py); infinities and nan as the C library has them. Everything is in an
// anonymous namespace: each instruction set keeps its copy.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

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

// horner() in two chains, of even and of odd powers, that do not wait for each other.
template <int I, class T, int N>
[[gnu::always_inline]] inline T every_other(T square, const T (&c)[N]) {
  if constexpr (I + 2 >= N)
    return c[I];
  else
    return every_other<I + 2>(square, c) * square + c[I];
}
template <class T, int N> [[gnu::always_inline]] inline T two_chains(T x, const T (&c)[N]) {
  T square = x * x;
  return every_other<1>(square, c) * x + every_other<0>(square, c);
}

// Whether the processor has products that are added without being rounded.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
constexpr bool fuses = true;
#else
constexpr bool fuses = false;
#endif

// The rounding error of `product` = a * b.
[[gnu::always_inline]] inline float product_error(float a, float b, float product) {
  if constexpr (fuses)
    return std::fma(a, b, -product);
  else
    return static_cast<float>(static_cast<double>(a) * b - product);
}
[[gnu::always_inline]] inline double product_error(double a, double b, double product) {
  if constexpr (fuses) return std::fma(a, b, -product);
  // Each factor in two halves, whose products are exact (Dekker, A Floating-Point Technique for
  // Extending the Available Precision, 1971).
  auto high_half = [](double v) __attribute__((always_inline)) {
    const double far = v * 0x1.0000002p27;
    return far - (far - v);
  };
  const double a_high = high_half(a), a_low = a - a_high, b_high = high_half(b), b_low = b - b_high;
  const double error =
      ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
  const double largest = std::max(std::fabs(a), std::fabs(b));
  return largest < 0x1p990 ? error : 0.0;
}
// a * b + c, fused where the processor has the instruction. If c is a product as well, this states
// which of the two is rounded; the compiler might choose differently for vectors and for single
// elements.
template <class T> [[gnu::always_inline]] inline T product_and(T a, T b, T c) {
  if constexpr (fuses)
    return std::fma(a, b, c);
  else
    return a * b + c;
}
// The rounding error of `sum` = a + b, for |a| >= |b| or a = 0.
template <class T> [[gnu::always_inline]] inline T sum_error(T a, T b, T sum) {
  return (a - sum) + b;
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
// e^r - 1 - r for |r| <= ln2/2, within 5e-10 and 4e-19: r^2 / 2 and what follows.
[[gnu::always_inline]] inline float expm1_series(float r) {
  constexpr float c[] = {1.6666667e-01f, 4.1666467e-02f, 8.3333105e-03f, 1.393365e-03f,
                         1.9890991e-04f};
  return horner(r, c);
}
[[gnu::always_inline]] inline double expm1_series(double r) {
  constexpr double c[] = {0.1666666666666667,     0.04166666666666666,    0.008333333333326186,
                          0.001388888888889091,   0.00019841269874718622, 2.480158730900555e-05,
                          2.7557255478721557e-06, 2.755728842167214e-07,  2.510519632432802e-08,
                          2.091016812398899e-09};
  return horner(r, c);
}
template <class T> [[gnu::always_inline]] inline T expm1_tail(T r) {
  return r * r * (expm1_series(r) * r + T(0.5));
}
template <class T> [[gnu::always_inline]] inline T expm1_core(T r) { return r + expm1_tail(r); }
// ln 2 in two parts; products of the first with exponents are exact.
template <class T>
inline constexpr T ln2_high = std::is_same_v<T, float> ? T(0.693145752) : T(0.69314718036912382);
template <class T>
inline constexpr T ln2_low = std::is_same_v<T, float> ? T(1.42860677e-6)
                                                      : T(1.9082149292705877e-10);
template <class T> [[gnu::always_inline]] inline T reduce(T x, T n) {
  return (x - n * ln2_high<T>)-n * ln2_low<T>;
}
template <class T> inline constexpr T rounder = static_cast<T>(0);
template <> inline constexpr float rounder<float> = round_f;
template <> inline constexpr double rounder<double> = round_d;
template <class T> inline constexpr T log2_e = static_cast<T>(1.44269504088896340736);
template <class T> inline constexpr T exp_top = std::is_same_v<T, float> ? T(89) : T(710);
template <class T> inline constexpr T exp_bottom = std::is_same_v<T, float> ? T(-105) : T(-746);

// 2^f for |f| <= 1/2, and what log2_e lacks as a float.
inline constexpr float exp2_series[] = {1.f,
                                        6.931472029e-01f,
                                        2.402264791e-01f,
                                        5.550332471e-02f,
                                        9.618437358e-03f,
                                        1.339887442e-03f,
                                        1.535336187e-04f};
inline constexpr float log2_e_rest = 1.925963033e-8f;
// e^y = value 2^n, n being in the low bits of `sum`.
template <class T> struct ExpParts { T value, sum; };
template <class T> [[gnu::always_inline]] inline ExpParts<T> exp_parts(T y) {
  T sum = y * log2_e<T> + rounder<T>;
  return {T(1) + expm1_core(reduce(y, sum - rounder<T>)), sum};
}
// value 2^n in two steps, so that results below the smallest normal number round once.
template <class T> [[gnu::always_inline]] inline T raise(T value, T sum) {
  using Bits = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t>;
  constexpr int digits = std::numeric_limits<T>::digits - 1;
  constexpr Bits bias = std::numeric_limits<T>::max_exponent - 1;
  // Shifting the bits halves n, because the rounder's own low bits are zeros.
  const auto all = std::bit_cast<Bits>(sum);
  const Bits half = all >> 1;
  return value * std::bit_cast<T>((half + bias) << digits) *
         std::bit_cast<T>((all - half + bias) << digits);
}

// Results that overflow or underflow are replaced at the end: clamping the arguments first would
// lengthen the dependency chain of all others.
template <class T> [[gnu::always_inline]] inline T exp(T x) {
  ExpParts<T> e = exp_parts(x);
  T value = raise(e.value, e.sum);
  value = x < exp_bottom<T> ? T(0) : value;
  return x > exp_top<T> ? inf<T> : value;
}

// For results that are normal numbers.
template <class T> [[gnu::always_inline]] inline T exp_moderate(T x) {
  T sum = x * log2_e<T> + rounder<T>;
  return (T(1) + expm1_core(reduce(x, sum - rounder<T>))) * power_of_two(sum);
}
// (e^x - 1) 2^-half, where e^x is finite; half = 1 keeps 2^n finite too. The rounding errors of the
// remainder and of its sum with 2^n are added to the tail.
template <int half, class T> [[gnu::always_inline]] inline T expm1_scaled(T x) {
  T sum = x * log2_e<T> + rounder<T>;
  T n = sum - rounder<T>;
  T near = x - n * ln2_high<T>;
  T r = near - n * ln2_low<T>;
  T r_low = (near - r) - n * ln2_low<T>;
  T scale = power_of_two(sum - T(half));
  T start = scale - (half ? T(0.5) : T(1));
  T main = start + scale * r;
  T square = r * r, more = scale * (T(0.5) * square), whole = main + more;
  T rest = sum_error(start, scale * r, main) + sum_error(main, more, whole);
  return whole + (rest + scale * (square * r * expm1_series(r) + r_low));
}
template <class T> [[gnu::always_inline]] inline T expm1(T x) {
  T value = T(2) * expm1_scaled<1>(x);
  value = x < T(-60) ? T(-1) : value;
  value = x > exp_top<T> ? inf<T> : value;
  return std::fabs(x) < std::numeric_limits<T>::epsilon() * T(0.25) ? x : value;
}

// A positive normal number is 2^n (1 + f) with f around 0, and log(1 + f) is f - (half - tail).
template <class T> struct LogParts { T n, f, half, tail; };
template <class T> struct LogSplit { T n, f; };
[[gnu::always_inline]] inline LogSplit<float> log_split(float x) {
  uint32_t u = std::bit_cast<uint32_t>(x) + (0x3f800000u - 0x3f3504f3u);
  auto n = static_cast<float>(static_cast<int32_t>(u >> 23) - 127);
  return {n, std::bit_cast<float>((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f};
}
[[gnu::always_inline]] inline LogParts<float> log_rest(float n, float f) {
  float s = f / (2.0f + f);
  float z = s * s;
  constexpr float c[] = {2.f / 3, 2.f / 5, 2.f / 7, 2.f / 9};
  float half = 0.5f * f * f;
  return {n, f, half, s * (half + z * horner(z, c))};
}
[[gnu::always_inline]] inline LogSplit<double> log_split(double x) {
  constexpr uint64_t root = 0x3fe6a09e667f3bcdu;  // sqrt(1/2)
  uint64_t u = std::bit_cast<uint64_t>(x) + (0x3ff0000000000000u - root);
  // The exponent as a double, by its place in the significand of 2^52.
  double n = std::bit_cast<double>((u >> 52) | 0x4330000000000000u) - 4503599627370496.0 - 1023.0;
  return {n, std::bit_cast<double>((u & 0x000fffffffffffffu) + root) - 1.0};
}
[[gnu::always_inline]] inline LogParts<double> log_rest(double n, double f) {
  double s = f / (2.0 + f);
  double z = s * s;
  constexpr double c[] = {2. / 3,  2. / 5,  2. / 7,  2. / 9,  2. / 11,
                          2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21};
  double half = 0.5 * f * f;
  return {n, f, half, s * (half + z * horner(z, c))};
}
// Also for subnormal numbers.
template <class T> [[gnu::always_inline]] inline LogParts<T> log_parts(T x) {
  constexpr T tiny = std::numeric_limits<T>::min();
  constexpr T up = std::is_same_v<T, float> ? T(33554432.0) : T(18014398509481984.0);
  constexpr T shift = std::is_same_v<T, float> ? T(25) : T(54);
  LogSplit<T> p = log_split(x < tiny ? x * up : x);
  return log_rest(x < tiny ? p.n - shift : p.n, p.f);
}
// `value` for positive finite numbers; else infinity, minus infinity or nan.
template <class T> [[gnu::always_inline]] inline T log_ends(T x, T value) {
  value = x == inf<T> ? x : value;
  value = x == T(0) ? -inf<T> : value;
  return x >= T(0) ? value : nan<T>;
}
template <class T> inline constexpr T ln2 = static_cast<T>(0.69314718055994530942);
template <class T> [[gnu::always_inline]] inline T log_value(const LogParts<T>& p) {
  return p.n * ln2_high<T> + (p.f - (p.half - (p.tail + p.n * ln2_low<T>)));
}
template <class T> [[gnu::always_inline]] inline T log(T x) {
  return log_ends(x, log_value(log_parts(x)));
}
// log(1 + x + low), where the optional `low` is the rounding error of x.
template <class T, class... Low> [[gnu::always_inline]] inline T log1p(T x, Low... low) {
  T u = T(1) + x;
  // The rounding error of 1 + x is added to f. Beyond 2^60 it has no effect.
  T lost = ((x > T(1) ? T(1) - (u - x) : x - (u - T(1))) + ... + low);
  LogSplit<T> p = log_split(u);
  T more = x > T(0x1p60) ? T(0) : lost * power_of_two(rounder<T> - p.n);
  T f = p.f + more, f_low = more - (f - p.f);
  LogParts<T> parts = log_rest(p.n, f);
  T start = p.n * ln2_high<T>, main = start + f;
  T rest = sum_error(start, f, main) + f_low;
  T value = main + (rest + ((parts.tail + p.n * ln2_low<T>)-parts.half));
  value = log_ends(u, value);
  return x == T(0) ? x : value;
}

// Up to 1 a series, whose relative error is 5e-9; beyond, 1 less what is left to it.
[[gnu::always_inline]] inline float tanh(float x) {
  constexpr float c[] = {-0.33333295583724976f,   0.13332347571849823f,   -0.0538799911737442f,
                         0.021487198770046234f,   -0.007946893572807312f, 0.0023019297514110804f,
                         -0.00035861122887581587f};
  float z = x * x;
  float inside = x + x * z * horner(z, c);
  float a = std::fabs(x);
  a = a > 10.0f ? 10.0f : a;
  float outside = 1.0f - 2.0f / (exp_moderate(2.0f * a) + 1.0f);
  return std::copysign(a < 1.0f ? inside : outside, x);
}
[[gnu::always_inline]] inline double tanh(double x) {
  // (e - 1) / (e + 1) with e = e^2|x|, above and below as sums of two, by one division.
  double a = std::fabs(x);
  a = a > 22.0 ? 22.0 : a;
  double sum = (2.0 * a) * log2_e<double> + round_d, n = sum - round_d;
  double near = 2.0 * a - n * ln2_high<double>;
  double r = near - n * ln2_low<double>, r_low = (near - r) - n * ln2_low<double>;
  double scale = power_of_two(sum), part = scale * r, rest = scale * (expm1_tail(r) + r_low);
  double over = scale - 1.0, under = scale + 1.0;
  double up = over + part, up_low = sum_error(over, part, up) + rest;
  double down = under + part, down_low = sum_error(under, part, down) + rest;
  double below = down + down_low, below_low = sum_error(down, down_low, below);
  double inverse = 1.0 / below, q = up * inverse;
  double left = product_error(q, below, up) - (up_low - q * below_low);
  return std::copysign(q - left * inverse, x);
}
// e^x for x <= 0: only results below the smallest normal number need a second factor.
[[gnu::always_inline]] inline float exp_negative(float x) {
  float y = x < -104.0f ? -104.0f : x;
  ExpParts<float> e = exp_parts(y);
  float raised = std::bit_cast<float>((std::bit_cast<uint32_t>(e.sum) + (24u + 127u)) << 23);
  return e.value * raised * 0x1p-24f;
}
[[gnu::always_inline]] inline double exp_negative(double x) { return exp(x); }

// 1 / (1 + e^-x); where that would overflow, e^x.
template <class T> [[gnu::always_inline]] inline T sigmoid(T x) {
  constexpr T far = std::is_same_v<T, float> ? T(-87) : T(-708);
  T e = exp(x < far ? x : -x);
  return x < far ? e : T(1) / (T(1) + e);
}
// log(1 + e^x) without overflow.
template <class T> [[gnu::always_inline]] inline T log1p_exp(T x) {
  T top = x > T(0) ? x : T(0);
  return top + log1p(exp(-std::fabs(x)));
}

// --- exponentials and logarithms to other bases, hyperbolic functions ---

template <class T> [[gnu::always_inline]] inline T exp2(T x) {
  constexpr T top = std::is_same_v<T, float> ? T(129) : T(1025);
  constexpr T bottom = std::is_same_v<T, float> ? T(-151) : T(-1076);
  T sum = x + rounder<T>, f = x - (sum - rounder<T>);
  T r = f * ln2<T>, low = product_error(f, ln2<T>, r);
  T value = raise(T(1) + (r + (expm1_tail(r) + low)), sum);
  value = x < bottom ? T(0) : value;
  return x > top ? inf<T> : value;
}
// e^a / 4 as a sum of two, for a >= 0; cosh is finite up to beyond where that overflows.
template <class T> struct QuarterExp { T main, low; };
template <class T> [[gnu::always_inline]] inline QuarterExp<T> quarter_exp(T a) {
  T sum = a * log2_e<T> + rounder<T>, n = sum - rounder<T>;
  T near = a - n * ln2_high<T>;
  T r = near - n * ln2_low<T>, r_low = (near - r) - n * ln2_low<T>;
  T start = T(1) + r, rest = sum_error(T(1), r, start) + (expm1_tail(r) + r_low);
  T scale = power_of_two(sum - T(2)), main = start + rest;
  return {scale * main, scale * sum_error(start, rest, main)};
}
template <class T> inline constexpr T cosh_top = std::is_same_v<T, float> ? T(89.5) : T(711);
template <class T> [[gnu::always_inline]] inline T cosh(T x) {
  T a = std::fabs(x);
  QuarterExp<T> e = quarter_exp(a);
  T value = T(2) * (e.main + (e.low + T(0.0625) / e.main));
  return a > cosh_top<T> ? inf<T> : value;
}
// sinh(x) / x - 1 over z = x^2, for |x| <= 1.
[[gnu::always_inline]] inline float sinh_series(float z) {
  constexpr float c[] = {1.f / 6, 1.f / 120, 1.f / 5040, 1.f / 362880};
  return horner(z, c);
}
[[gnu::always_inline]] inline double sinh_series(double z) {
  constexpr double c[] = {
      1. / 6,          1. / 120,          1. / 5040,           1. / 362880,           1. / 39916800,
      1. / 6227020800, 1. / 1307674368e3, 1. / 355687428096e3, 1. / 121645100408832e3};
  return horner(z, c);
}
template <class T> [[gnu::always_inline]] inline T sinh(T x) {
  T a = std::fabs(x);
  T z = x * x;
  T small = x + x * z * sinh_series(z);
  QuarterExp<T> e = quarter_exp(a);
  T large = T(2) * (e.main + (e.low - T(0.0625) / e.main));
  large = a > cosh_top<T> ? inf<T> : large;
  return a < T(1) ? small : std::copysign(large, x);
}

// The logarithm to another base: n and f times constants in two parts. The product of n and the
// high part is exact.
template <class T>
[[gnu::always_inline]] inline T log_scaled(const LogParts<T>& p, T n_high, T n_low, T f_high,
                                           T f_low) {
  T product = p.f * f_high;
  T rest = (p.tail - p.half) * f_high +
           (product_error(p.f, f_high, product) + product_and(p.f, f_low, p.n * n_low));
  T start = p.n * n_high;
  T main = start + product;
  return main + (sum_error(start, product, main) + rest);
}
template <class T> [[gnu::always_inline]] inline T log2(T x) {
  constexpr T low = static_cast<T>(1.44269504088896340736L - static_cast<long double>(log2_e<T>));
  return log_ends(x, log_scaled(log_parts(x), T(1), T(0), log2_e<T>, low));
}
template <class T> [[gnu::always_inline]] inline T log10(T x) {
  constexpr T log10_e = static_cast<T>(0.43429448190325182765L);
  constexpr T low = static_cast<T>(0.43429448190325182765L - static_cast<long double>(log10_e));
  constexpr T log10_2 = std::is_same_v<T, float> ? T(0.30102539) : T(0.30102999566406183);
  constexpr T log10_2_low =
      static_cast<T>(0.30102999566398119521L - static_cast<long double>(log10_2));
  return log_ends(x, log_scaled(log_parts(x), log10_2, log10_2_low, log10_e, low));
}

// --- powers ---

// log and exp good to some 1e-10 (relative to 1), for float results.
[[gnu::always_inline]] inline double log_for_float(double x) {
  constexpr uint64_t root = 0x3fe6a09e667f3bcdu;  // sqrt(1/2)
  uint64_t u = std::bit_cast<uint64_t>(x) + (0x3ff0000000000000u - root);
  double n = std::bit_cast<double>((u >> 52) | 0x4330000000000000u) - 4503599627370496.0 - 1023.0;
  double f = std::bit_cast<double>((u & 0x000fffffffffffffu) + root) - 1.0;
  double s = f / (2.0 + f);
  double z = s * s;
  constexpr double c[] = {3.333333254257980e-01, 2.000021695335343e-01, 1.426603240377291e-01,
                          1.183441359094783e-01};
  return n * ln2<double> + 2.0 * (s + s * z * horner(z, c));
}
[[gnu::always_inline]] inline double exp_for_float(double x) {
  double sum = x * log2_e<double> + round_d;
  double r = x - (sum - round_d) * ln2<double>;
  constexpr double c[] = {5.000000077868545e-01, 1.666666686055136e-01, 4.166627006215457e-02,
                          8.333264389469432e-03, 1.394606454836149e-03, 1.991836614199997e-04};
  double value = (1.0 + (r + r * r * horner(r, c))) * power_of_two(sum);
  value = x < -200.0 ? 0.0 : value;
  return x > 200.0 ? inf<double> : value;
}
// |x|^y
[[gnu::always_inline]] inline float power_of_size(float x, float y) {
  auto a = static_cast<double>(std::fabs(x));
  double l = log_for_float(a);
  l = a == 0.0 ? -inf<double> : l;
  l = a == inf<double> ? inf<double> : l;
  return static_cast<float>(exp_for_float(static_cast<double>(y) * l));
}
// x^y, given |x|^y: signs, and the numbers that std::pow makes exceptions of.
[[gnu::always_inline]] inline float signed_power(float x, float y, float size) {
  bool whole = std::trunc(y) == y;
  bool odd = whole & (std::trunc(0.5f * y) != 0.5f * y);
  float value = (std::bit_cast<uint32_t>(x) >> 31) & odd ? -size : size;
  value = (x < 0.0f) & (x != -inf<float>)&!whole ? nan<float> : value;
  value = (std::fabs(x) == 1.0f) & (std::fabs(y) == inf<float>) ? 1.0f : value;
  value = (x != x) | (y != y) ? nan<float> : value;
  return (y == 0.0f) | (x == 1.0f) ? 1.0f : value;
}
[[gnu::always_inline]] inline float pow(float x, float y) {
  return signed_power(x, y, power_of_size(x, y));
}
[[gnu::always_inline]] inline double pow(double x, double y) { return std::pow(x, y); }

// The number next to a on the way to b.
template <class T> [[gnu::always_inline]] inline T next_after(T a, T b) {
  using I = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const I bits = std::bit_cast<I>(a);
  const I outwards = (a < b) == (a > T(0)) ? I{1} : ~I{0};  // the size grows, or shrinks
  const T next = std::bit_cast<T>(bits + outwards);
  const T least = std::copysign(std::bit_cast<T>(I{1}), b);
  const T value = a == T(0) ? least : next;
  return (a != a) | (b != b) ? a + b : a == b ? b : value;
}

// --- sums of exponentials ---

// log(e^a + e^b).
template <class T> [[gnu::always_inline]] inline T logaddexp(T a, T b) {
  T top = a > b ? a : b;
  T value = top + log1p(exp(-std::fabs(a - b)));
  value = a == b ? a + ln2<T> : value;  // equal infinities too
  return (a != a) | (b != b) ? nan<T> : value;
}
template <class T> [[gnu::always_inline]] inline T logaddexp2(T a, T b) {
  T top = a > b ? a : b;
  T value = top + log1p(exp2(-std::fabs(a - b))) * log2_e<T>;
  value = a == b ? a + T(1) : value;
  return (a != a) | (b != b) ? nan<T> : value;
}

}  // namespace vm
}  // namespace
}  // namespace clew::kernels

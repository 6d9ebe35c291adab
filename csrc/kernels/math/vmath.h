// exp, log, tanh ... of float and double without branches and calls, so that loops over them
// vectorise.
// May include: base, kernels.
// Invariant: within 2 units in the last place of the true value, most within 1, erfinv of double
// and sigmoid 2.5, atan2 3 (tests/ops/test_accuracy.py); infinities and nan as the C library has
// them. Everything is in an anonymous namespace: each instruction set keeps its copy.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/math/erf_table.h"

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

// The rounding error of `product` = a * b.
[[gnu::always_inline]] inline float product_error(float a, float b, float product) {
#ifdef __FMA__
  return std::fma(a, b, -product);
#else
  return static_cast<float>(static_cast<double>(a) * b - product);
#endif
}
[[gnu::always_inline]] inline double product_error(double a, double b, double product) {
#ifdef __FMA__
  return std::fma(a, b, -product);
#else
  return (void)a, (void)b, (void)product, 0.0;  // left out: it would cost more than the product
#endif
}
// a * b + c, fused where the processor has the instruction. If c is a product as well, this states
// which of the two is rounded; the compiler might choose differently for vectors and for single
// elements.
template <class T> [[gnu::always_inline]] inline T product_and(T a, T b, T c) {
#ifdef __FMA__
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
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

// Near 0 a series in x^2; farther out 1 - 2^p(x), where p stands for the logarithm of erfc.
[[gnu::always_inline]] inline float erf(float x) {
  constexpr float near[] = {1.2837917e-01f, -3.7612623e-01f, 1.1283545e-01f, -2.6852062e-02f,
                            5.1850197e-03f, -7.981631e-04f,  7.7613935e-05f};
  // Around a number whose logarithm is nearly a float.
  constexpr float far[] = {-2.7583175f,    -3.8643394e+00f, -1.2205231e+00f, -5.8560282e-02f,
                           1.3980859e-02f, -2.6096248e-03f, 2.7091603e-04f};
  float a = std::fabs(x);
  float inside = x + x * horner(x * x, near);
  float p = horner((a > 4.0f ? 4.0f : a) - 1.0234375f, far);
  float sum = p + round_f;
  float outside = 1.0f - horner(p - (sum - round_f), exp2_series) * power_of_two(sum);
  return a < 1.0f ? inside : std::copysign(outside, x);
}
// Near 0 a series in x^2; farther out Taylor's series around the nearest entry r of the table,
// whose terms are Hermite's polynomials.
[[gnu::always_inline]] inline double erf(double x) {
  constexpr double last = static_cast<double>(erf_last) / erf_steps;
  const double size = std::fabs(x), a = size < last ? size : last;
  const double sum = a * erf_steps + round_d;
  const auto k = std::bit_cast<int64_t>(sum) - std::bit_cast<int64_t>(round_d);
  const double r = (sum - round_d) * (1.0 / erf_steps), d = a - r, z = r * r;
  const double c[] = {1.0,
                      -r,
                      (2.0 * z - 1.0) * (1.0 / 3),
                      r * (3.0 - 2.0 * z) * (1.0 / 6),
                      ((4.0 * z - 12.0) * z + 3.0) * (1.0 / 30),
                      r * ((20.0 - 4.0 * z) * z - 15.0) * (1.0 / 90)};
  const ErfPoint point = erf_points[k];
  const double far = point.value + (point.low + point.slope * (d * horner(d, c)));
  constexpr double near[] = {0.1283791670955126,    -0.37612638903183754, 0.1128379167095507,
                             -0.02686617064473118,  0.005223977518708808, -0.0008548198441497106,
                             0.00011983889826181858};
  const double inside = x + x * horner(x * x, near);
  return size < 0.125 ? inside : std::copysign(x != x ? x : far, x);
}

// erfc of a float: e^-x^2 times a polynomial in 3 / (3 + |x|), in double for the sake of the tail.
[[gnu::always_inline]] inline double erfc_of_float(double x) {
  constexpr double c[] = {0.18803688964308718,  0.1886640750800192,     0.17160722390222063,
                          0.19130378861176128,  0.00047369788892729758, 0.39911315732915276,
                          -0.43595692387753648, 0.53185526689956952,    -0.29051625958039429,
                          0.055419081900338237};
  double a = std::fabs(x);
  a = a > 11.0 ? 11.0 : a;
  double t = 3.0 / (3.0 + a);
  double y = exp_moderate(-a * a) * t * horner(t, c);
  y = x < 0 ? 2.0 - y : y;
  return x != x ? x : y;
}

// e^a^2 erfc(a) times a + 1/2, for 0 <= a <= 27.5: a polynomial in t = (a - 3.75) / (a + 3.75), as
// a sum of two.
struct Pair {
  double high, low;
};
[[gnu::always_inline]] inline Pair erfc_factor(double a) {
  constexpr double c[] = {-0.14024059858554702,   0.003585415485462962,    0.0822767384901514,
                          -0.10880393014166122,   0.0923043211602044,      -0.05869339859169503,
                          0.028362277420960855,   -0.009746579533019986,   0.0017556258432912797,
                          0.0002937134869639806,  -0.0002901540840708324,  5.16498977804983e-05,
                          2.2384499859081618e-05, -1.1446436106237418e-05, -9.7489415820499e-07,
                          1.7557884269656721e-06, -5.3784157583767485e-08, -2.631083440776198e-07,
                          1.8262416970357618e-08, 4.088938312997672e-08,   1.8700718187864986e-10,
                          -5.048406803065797e-09, -9.89345734709571e-10};
  constexpr double first = 1.2375126308378275 * 0.5, first_low = 1.0722759485881639e-16 * 0.5;
  const double t = (a - 3.75) / (a + 3.75);
  const double more = 0.5 * (t * two_chains(t, c)), factor = first + more;
  return {factor, sum_error(first, more, factor) + first_low};
}
// erfc of a double: e^-x^2 times that factor, over |x| + 1/2. The bell is a sum of two as well, and
// what the division lost is put back.
[[gnu::always_inline]] inline double erfc(double x) {
  double a = std::fabs(x);
  a = a > 27.5 ? 27.5 : a;
  // e^-a^2 = (start + rest) 2^n
  const double square = a * a, square_low = product_error(a, a, square);
  const double sum = -square * log2_e<double> + round_d, n = sum - round_d;
  const double near = -square - n * ln2_high<double>;
  const double r = near - n * ln2_low<double>;
  const double r_low = ((near - r) - n * ln2_low<double>)-square_low;
  const double start = 1.0 + r, tail = expm1_tail(r);
  const double rest = sum_error(1.0, r, start) + product_and(r_low, start + tail, tail);
  const double below = a + 0.5;
  const double below_low = a > 0.5 ? sum_error(a, 0.5, below) : sum_error(0.5, a, below);
  const Pair factor = erfc_factor(a);
  const double above = start * factor.high;
  const double above_low =
      product_error(start, factor.high, above) + product_and(rest, factor.high, start * factor.low);
  const double inverse = 1.0 / below, q = above * inverse;
  const double left = product_error(q, below, above) - (above_low - q * below_low);
  const double value = raise(q - left * inverse, sum);
  const double far = x < 0.0 ? 2.0 - value : value;
  // 1 - erf(x), erf(x) being less than 1/2
  constexpr double erf_series[] = {0.1283791670955126,     -0.37612638903183754,
                                   0.11283791670955096,    -0.026866170645100065,
                                   0.0052239776241852776,  -0.0008548326769459364,
                                   0.00012055304117671538, -1.492371987381728e-05,
                                   1.6386580835627187e-06, -1.4757128853145018e-07};
  const double inside = 1.0 - (x + x * horner(square, erf_series));
  return x != x ? x : a < 0.46 ? inside : far;
}

// --- the normal distribution, for gelu ---

// 2^x, 0 from -126.5 down and infinity from 127.5 up, for -127 <= x <= 128; not for subnormal
// results.
[[gnu::always_inline]] inline float exp2_moderate(float x) {
  float sum = x + round_f;
  return two_chains(x - (sum - round_f), exp2_series) * power_of_two(sum);
}

// P(X > |x|) of a normal X is bell * rest, where bell = e^(-x^2 / 2), and rest is a polynomial in
// 1 / (1 + 0.21 |x|). From |x| = 13.25 on, bell is 0.
struct NormalTail {
  float size, bell, rest;
};
[[gnu::always_inline]] inline NormalTail normal_tail(float x) {
  constexpr float c[] = {8.370606565e-02f,  8.515483952e-02f,  6.862207083e-02f,
                         1.269715713e-01f,  -9.862154532e-02f, 3.559480110e-01f,
                         -3.358131746e-01f, 2.862216416e-01f,  -7.218948077e-02f};
  float a = std::fabs(x);
  a = a > 13.25f ? 13.25f : a;
  float t = 1.0f / (1.0f + 0.21f * a);
  return {a, exp2_moderate(a * a * -0.72134752044448170f), t * two_chains(t, c)};
}
[[gnu::always_inline]] inline float gelu(float x) {
  NormalTail t = normal_tail(x);
  return (x < 0.0f ? 0.0f : x) - t.size * (t.bell * t.rest);
}
[[gnu::always_inline]] inline float gelu_slope(float x) {
  NormalTail t = normal_tail(x);
  float left = t.bell * (t.rest - t.size * 0.39894228040143267794f);
  return x < 0.0f ? left : 1.0f - left;
}
// sigmoid(-2 sqrt(2 / pi) (a + 0.044715 a^3)), the tail that gelu's tanh form takes; 0 for the
// largest a, which is |x|.
[[gnu::always_inline]] inline float gelu_tanh_tail(float a) {
  return 1.0f / (1.0f + exp2_moderate(a * (a * a * (0.044715f * 2.3022081984f) + 2.3022081984f)));
}
[[gnu::always_inline]] inline double gelu_tanh_tail(double a) {
  return 1.0 /
         (1.0 + exp_moderate(a * (a * a * (0.044715 * 1.5957691216057308) + 1.5957691216057308)));
}
template <class T> [[gnu::always_inline]] inline T gelu_tanh_size(T x) {
  // The powers of these have infinity's exponent.
  constexpr T most = std::is_same_v<T, float> ? T(10.06097) : T(21.1597899);
  T a = std::fabs(x);
  return a > most ? most : a;
}
template <class T> [[gnu::always_inline]] inline T gelu_tanh(T x) {
  T a = gelu_tanh_size(x);
  return (x < T(0) ? T(0) : x) - a * gelu_tanh_tail(a);
}
template <class T> [[gnu::always_inline]] inline T gelu_tanh_slope(T x) {
  T a = gelu_tanh_size(x);
  T tail = gelu_tanh_tail(a);
  T du = T(1.5957691216057308) * (T(1) + T(3 * 0.044715) * a * a);
  T left = tail - a * (tail * (T(1) - tail)) * du;
  return x < T(0) ? left : T(1) - left;
}
[[gnu::always_inline]] inline double gelu(double x) {
  return x < -40.0 ? -0.0 : 0.5 * x * erfc(x * -0.70710678118654752440);
}
[[gnu::always_inline]] inline double gelu_slope(double x) {
  double cdf = 0.5 * erfc(x * -0.70710678118654752440);
  return product_and(x, 0.39894228040143267794 * exp(-0.5 * x * x), cdf);
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

// x times a function of w = -log(1 - x^2): a polynomial over all that floats reach, in double,
// whose relative error is 2e-9.
[[gnu::always_inline]] inline float erfinv(float x) {
  constexpr double c[] = {2.6702438965,    1.415621299,      -0.32522644345,   0.12716175394,
                          -0.037887954694, -0.01467151244,   0.041789117608,   -0.046353943173,
                          0.033415360191,  -0.012945376639,  -0.0011965865227, 0.006002890472,
                          -0.013019969514, 0.018098833514,   -0.0051792501471, -0.011124486354,
                          0.0087294301102, 0.00075140038181, -0.002362638097,  0.00053718085724};
  auto wide = static_cast<double>(x);
  double w = -log_for_float(1.0 - wide * wide);
  auto value = static_cast<float>(wide * two_chains(w * (1 / 8.05) - 1.0, c));
  value = std::fabs(x) < 1.0f ? value : std::copysign(inf<float>, x);
  return std::fabs(x) <= 1.0f ? value : nan<float>;
}
// Up to w = 6.25 the slope at 0 and w times a polynomial, farther out a polynomial in the root of
// w. What the roundings of the last products and sums lose is put back.
[[gnu::always_inline]] inline double erfinv(double x) {
  constexpr double near[] = {
      0.24557684391371032,     -0.0054186614881222882,  -0.013436559985088158,
      0.0062031368000126071,   -0.00050446101807376904, -0.00081947958343692206,
      0.00041253805578889618,  -1.8142664953593812e-05, -6.6463290620102653e-05,
      2.9058802791240069e-05,  8.1865100855712379e-07,  -5.6272778363379297e-06,
      2.0253612962160945e-06,  2.5562799141583196e-07,  -4.7547729714074925e-07,
      1.3757282552601388e-07,  3.6792246113580503e-08,  -4.1256767129946506e-08,
      7.7878845254541834e-09,  5.5874536539584005e-09,  -2.7597855919983795e-09,
      -3.1864269542961973e-10, 3.0490010975664964e-10};
  constexpr double far[] = {
      1.8180811747236365,      0.0020239307699238995,   -0.0033068394198309246,
      0.0020664928144223118,   -0.0011020499881782689,  0.00063894071937842126,
      -0.00049849676582650927, 0.00049805548588014565,  -0.00050268795916229433,
      0.00043663713876492357,  -0.00029277420353817724, 0.00012009199209650547,
      1.6282877561607909e-05,  -7.8683497017941335e-05, 7.3977512502734668e-05,
      -3.7318346270859457e-05, 3.2800452658670603e-06,  1.1871900509549053e-05,
      -1.0732624518953023e-05, 4.3674755687459002e-06,  -3.0466665868186506e-07,
      -9.5146954027239548e-07, 9.9765995309810091e-07,  -4.7850171718148839e-07,
      -3.099984888695327e-08,  1.2417122154323459e-07,  -3.4628249956675447e-08};
  constexpr double slope = 0.886226925452758, slope_low = -3.8333e-17;  // half the root of pi
  constexpr double middle_far = 4.142724044720679, middle_far_low = 3.9303e-16;
  double a = std::fabs(x);
#ifdef __FMA__
  double w = -log(std::fma(-a, a, 1.0));
#else
  double w = -log((1.0 - a) * (1.0 + a));
#endif
  bool inside = w < 6.25;
  double t = (std::sqrt(w) - 4.3) * (1 / 1.8);
  double constant = inside ? slope : middle_far;
  double rest = inside ? w * two_chains(w * 0.32 - 1.0, near) : t * two_chains(t, far);
  double factor = constant + rest;
  double low = (inside ? slope_low : middle_far_low) + sum_error(constant, rest, factor);
  double product = factor * x;
  double value = product + (product_error(factor, x, product) + low * x);
  return std::copysign(a == 1.0 ? inf<double> : value, x);
}

// --- arcs ---

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

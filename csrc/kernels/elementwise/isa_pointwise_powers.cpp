// Float loops of pow and its slope, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: signs, infinities and nan are std::pow's; a float power is within 1.25 units in the
// last place (exponents that are small multiples of a half 1, 3 has 1.5); neighbours change no bit.
#include <utility>

#include "kernels/core/lanes.h"
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/pointwise_loops.h"
#include "kernels/math/vmath.h"

namespace clew::kernels::CLEW_ISA {

namespace {

template <int k> [[gnu::always_inline]] inline double product(double x) {
  if constexpr (k == 0)
    return 1.0;
  else if constexpr (k % 2 == 0)
    return product<k / 2>(x * x);
  else
    return product<k / 2>(x * x) * x;
}

// x^0.5: that of -0 and -infinity is 0 and infinity.
template <class T> [[gnu::always_inline]] inline T root(T x) {
  return std::sqrt(x == -vm::inf<T> ? vm::inf<T> : x) + T(0);
}

// x^(halves / 2). A cube is rounded after each product, so that x**3 is PyTorch's to the last bit.
template <class T, int halves> [[gnu::always_inline]] inline T short_power(T x) {
  constexpr int size = halves < 0 ? -halves : halves;
  if constexpr (halves == 6) return x * x * x;
  const auto a = static_cast<double>(x);
  double value;
  if constexpr (size % 2 == 0) {
    value = product<size / 2>(a);
  } else {
    value = product<size / 2>(std::fabs(a)) * root(a);
  }
  return static_cast<T>(halves < 0 ? 1.0 / value : value);
}

template <class T> using PowerRow = void (*)(T* to, const T* from, int64_t n);

template <class T, int halves> void power_row(T* to, const T* from, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = short_power<T, halves>(from[i]);
}

// The loop that computes x^y by multiplications, or null if y has none. For y < 0 it inverts a
// product, which may overflow although x^y does not; floats compute in double, but doubles cannot,
// so they take positive exponents only.
template <class T> PowerRow<T> short_power_row(T y) {
  constexpr int most = 8, first = std::is_same_v<T, float> ? -most : 1;
  const T twice = T(2) * y;
  if (!(twice >= T(first) && twice <= T(most)) || std::trunc(twice) != twice) return nullptr;
  return [&]<int... i>(std::integer_sequence<int, i...>) {
    constexpr PowerRow<T> rows[] = {power_row<T, i + first>...};
    return rows[static_cast<int>(twice) - first];
  }
  (std::make_integer_sequence<int, most - first + 1>{});
}

// Any power, n being at most block_size.
template <class T> void power_rows(T* out, const T* x, const T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = vm::pow(x[i], y[i]);
}

#ifdef __FMA__

// A number is 2^n m, with m in one of eight cells around 1, 9/8 ... 15/8. Times 2^-log, which is
// nearly a float, m lies within 1/16 of 1. (Twice over, for vectors of sixteen.)
constexpr uint32_t first_cell = 0x3f800000u - (1u << 19), cell_bits = 20;
alignas(64) constexpr float cell_scales[] = {
    1.0f,         0.882894218f, 0.790561557f, 0.730134487f, 0.659479082f, 0.615143955f,
    0.571125329f, 0.535786986f, 1.0f,         0.882894218f, 0.790561557f, 0.730134487f,
    0.659479082f, 0.615143955f, 0.571125329f, 0.535786986f};
alignas(64) constexpr float cell_logs[] = {0.0f,
                                           0.1796875f,
                                           0.33905029296875f,
                                           0.453765869140625f,
                                           0.6006011962890625f,
                                           0.7010040283203125f,
                                           0.8081207275390625f,
                                           0.9002685546875f,
                                           0.0f,
                                           0.1796875f,
                                           0.33905029296875f,
                                           0.453765869140625f,
                                           0.6006011962890625f,
                                           0.7010040283203125f,
                                           0.8081207275390625f,
                                           0.9002685546875f};

void find_cells(const float* x, float* scale, float* log, int64_t n) {
  constexpr int N = lane_count<float>;
  using Words = Lanes_t<uint32_t>;
  const auto scales = load(cell_scales), logs = load(cell_logs);
  auto find = [&](const Words& bits, int64_t i) {
    const Words cell = ((bits & 0x7fffffffu) - first_cell) >> cell_bits;
    store(scale + i, __builtin_shuffle(scales, cell));
    store(log + i, __builtin_shuffle(logs, cell));
  };
  int64_t i = 0;
  for (; i + N <= n; i += N) find(std::bit_cast<Words>(load(x + i)), i);
  if (i == n) return;
  float last[N] = {};
  std::copy(x + i, x + n, last);
  find(std::bit_cast<Words>(load(last)), i);
}

// A product that no fused operation takes apart again.
[[gnu::always_inline]] inline float product_alone(float a, float b) {
  return std::fma(a, b, -0.0f);
}
struct Parts {
  float high, low;
};
// y log2 |x| in two floats, the second up to 1/800 of the first, for a finite |x| that is normal.
[[gnu::always_inline]] inline Parts log_times(float x, float y, float scale, float log) {
  constexpr float l = vm::log2_e<float>;
  const uint32_t u = (std::bit_cast<uint32_t>(x) & 0x7fffffffu) - first_cell;
  const float m = std::bit_cast<float>((u & 0x007fffffu) + first_cell);
  const float whole = static_cast<float>(static_cast<int32_t>(u) >> 23) + log;
  // m scale = 1 + r + rest
  const float scaled = product_alone(m, scale), rest = std::fma(m, scale, -scaled);
  const float r = scaled - 1.0f;
  // log2(1 + r) = r (w + w_rest) + r^3 tail, where w = l - r l / 2
  const float w = std::fma(r, -0.5f * l, l);
  const float w_rest =
      std::fma(std::fma(r, -0.5f, 1.0f), vm::log2_e_rest, std::fma(r, -0.5f * l, l - w));
  const float tail =
      std::fma(r * r, std::fma(r, std::fma(r, 0.207072586f, -0.241361216f), 0.288537532f),
               std::fma(r, -0.360672832f, 0.480898350f));
  const float p = product_alone(r, w);
  float low = std::fma(r, w, -p);
  low = std::fma(r, w_rest, low);
  low = std::fma(rest, std::fma(r, std::fma(r, l, -l), l), low);
  low = std::fma(r * r * r, tail, low);
  // |whole| is 0 or above |p|
  const float high = whole + p;
  low += p - (high - whole);
  const float z = product_alone(y, high);
  return {z, std::fma(y, low, std::fma(y, high, -z))};
}

// Recomputes the few elements that the fast loop does not cover.
void unusual_powers(float* out, const float* x, const float* y, const float* high, float* size,
                    int64_t n, float most) {
  int other = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float a = std::fabs(x[i]);
    const bool fits = (a >= std::numeric_limits<float>::min()) &
                      (a < vm::inf<float>)&(std::fabs(high[i]) <= most);
    size[i] = fits ? size[i] : vm::nan<float>;
    size[i] = a == 0.0f ? (y[i] > 0.0f ? 0.0f : vm::inf<float>) : size[i];
    other |= size[i] != size[i];
  }
  if (other) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      size[i] = size[i] == size[i] ? size[i] : vm::power_of_size(x[i], y[i]);
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = vm::signed_power(x[i], y[i], size[i]);
}

// In three loops, for in one each step would wait for the one before it.
void power_rows(float* out, const float* x, const float* y, int64_t n) {
  constexpr float most = 126.0f;
  constexpr auto tiny = std::bit_cast<int32_t>(std::numeric_limits<float>::min());
  alignas(64) float scale[block_size], log[block_size], high[block_size], low[block_size];
  find_cells(x, scale, log, n);
  // For positive numbers, bit patterns have the same order as the numbers; infinity and nan come
  // last.
  int32_t least = tiny, greatest = 0, largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Parts z = log_times(x[i], y[i], scale[i], log[i]);
    high[i] = z.high;
    low[i] = z.low;
    least = std::min(least, std::bit_cast<int32_t>(x[i]));
    greatest = std::max(greatest, std::bit_cast<int32_t>(x[i]));
    largest = std::max(largest, std::bit_cast<int32_t>(std::fabs(z.high)));
  }
  const bool other = least < tiny || greatest >= std::bit_cast<int32_t>(vm::inf<float>) ||
                     largest > std::bit_cast<int32_t>(most);
  float* to = other ? scale : out;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float sum = (high[i] + low[i]) + vm::round_f;
    const float f = (high[i] - (sum - vm::round_f)) + low[i];
    to[i] = vm::horner(f, vm::exp2_series) * vm::power_of_two(sum);
  }
  if (other) unusual_powers(out, x, y, high, scale, n, most);
}

// A double's sum, or product, and what rounding took from it.
struct Exact {
  double high, low;
};
[[gnu::always_inline]] inline Exact sum_of_falling(double a, double b) {  // |a| >= |b|, or a = 0
  const double high = a + b;
  return {high, (a - high) + b};
}
[[gnu::always_inline]] inline Exact exact_product(double a, double b) {
  const double high = a * b;
  return {high, std::fma(a, b, -high)};
}
// x^y for a normal x > 0 and a power from e^-700 to e^700: the logarithm in two doubles by
// log m = 2 artanh((m - 1) / (m + 1)), its relative error below 2^-64.
[[gnu::always_inline]] inline double moderate_power(double x, double y, double* log) {
  constexpr uint64_t root = 0x3fe6a09e667f3bcdu, one = 0x3ff0000000000000u;  // sqrt(1/2)
  constexpr double ln2_high = 0.69314718036912382, ln2_low = 1.9082149292705877e-10;
  constexpr double third = 1.0 / 3, third_low = 1.8512752095189988e-17;
  // The series from z / 5 on.
  constexpr double tail[] = {0.2,
                             0.14285714285714682,
                             0.11111111110827768,
                             0.09090909167798784,
                             0.07692297465037892,
                             0.06667403422915913,
                             0.058530860783925824,
                             0.05861945481131715};
  const uint64_t u = std::bit_cast<uint64_t>(x) + (one - root);
  const double n =
      std::bit_cast<double>((u >> 52) | 0x4330000000000000u) - 4503599627370496.0 - 1023.0;
  const double f = std::bit_cast<double>((u & 0x000fffffffffffffu) + root) - 1.0;
  const Exact below = sum_of_falling(2.0, f);
  const double s = f / below.high;
  const double s_low = (std::fma(-s, below.high, f) - s * below.low) / below.high;
  Exact z = exact_product(s, s);
  z.low += 2.0 * s * s_low;
  Exact p = sum_of_falling(third, z.high * vm::horner(z.high, tail));
  p.low += third_low;
  Exact w = exact_product(z.high, p.high);
  w.low += z.high * p.low + z.low * p.high;
  Exact more = exact_product(s, w.high);
  more.low += s * w.low + s_low * w.high;
  Exact v = sum_of_falling(s, more.high);
  v.low += s_low + more.low;
  Exact l = sum_of_falling(n * ln2_high, 2.0 * v.high);
  l.low += n * ln2_low + 2.0 * v.low;
  Exact e = exact_product(y, l.high);
  e.low += y * l.low;
  *log = e.high;
  const double sum = e.high * vm::log2_e<double> + vm::round_d, k = sum - vm::round_d;
  const double r = std::fma(-k, ln2_high, e.high) + std::fma(-k, ln2_low, e.low);
  return (1.0 + vm::expm1_core(r)) * vm::power_of_two(sum);
}
void power_rows(double* out, const double* x, const double* y, int64_t n) {
  double power[block_size], log[block_size];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) power[i] = moderate_power(std::fabs(x[i]), y[i], log + i);
  double others = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const double size = std::fabs(x[i]);
    const bool fits = (size >= std::numeric_limits<double>::min()) &
                      (size < vm::inf<double>)&(std::fabs(log[i]) <= 700.0);
    const bool whole = std::trunc(y[i]) == y[i];
    const bool odd = whole & (std::trunc(0.5 * y[i]) != 0.5 * y[i]);
    double value = odd & (x[i] < 0.0) ? -power[i] : power[i];
    value = !whole & (x[i] < 0.0) ? vm::nan<double> : value;
    power[i] = value;
    log[i] = fits ? 0.0 : 1.0;
    others += log[i];
  }
  // Computes the remaining elements one by one.
  for (int64_t i = 0; others != 0.0 && i < n; ++i)
    if (log[i] != 0.0) power[i] = std::pow(x[i], y[i]);
  std::copy_n(power, n, out);
}

#endif

template <class T>
void any_power(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  constexpr int64_t item = sizeof(T);
  if (s[0] != item || s[1] != item || s[2] != item)
    return block_rows<2, T, T, T>(any_power<T>, p, s, n, params);
  for (int64_t i = 0; i < n; i += block_size)
    power_rows(reinterpret_cast<T*>(p[0]) + i, reinterpret_cast<const T*>(p[1]) + i,
               reinterpret_cast<const T*>(p[2]) + i, std::min(block_size, n - i));
}

// x^y
template <class T>
void pow_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  if (s[2] == 0) {
    const T y = *reinterpret_cast<const T*>(p[2]);
    auto run = [&](auto f) { unary_loop<T, decltype(f), 0>(p, s, n, params); };
    if (y == T(2)) return run([](T a) { return a * a; });
    if (y == T(1)) return run([](T a) { return a; });
    if (y == T(-1)) return run([](T a) { return T(1) / a; });
    if (y == T(0.5)) return run([](T a) { return root(a); });
    if (const PowerRow<T> row = short_power_row(y)) {
      if (s[0] == sizeof(T) && s[1] == sizeof(T))
        return row(reinterpret_cast<T*>(p[0]), reinterpret_cast<const T*>(p[1]), n);
      alignas(64) T power[block_size];
      for (int64_t begin = 0; begin < n; begin += block_size) {
        const int64_t count = std::min(block_size, n - begin);
        gather<T>(p[1] + begin * s[1], s[1], power, count);
        row(power, power, count);
        scatter<T>(power, p[0] + begin * s[0], s[0], count);
      }
      return;
    }
  }
  any_power<T>(p, s, n, params);
}

// grad, x; c: the exponent
template <class T>
void pow_slope_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  const T exponent = params[0].to<T>();
  T less = exponent - T(1);
  alignas(64) T power[block_size], grad[block_size];
  const int64_t steps[] = {sizeof(T), s[2], 0};
  if (s[1] == 0) std::fill_n(grad, std::min(n, block_size), read<T>(p[1], 0));
  for (int64_t begin = 0; begin < n; begin += block_size) {
    const int64_t count = std::min(block_size, n - begin);
    char* const rows[] = {reinterpret_cast<char*>(power), p[2] + begin * s[2],
                          reinterpret_cast<char*>(&less)};
    pow_loop<T>(rows, steps, count, nullptr);
    const T* g = grad;
    if (s[1] == sizeof(T))
      g = reinterpret_cast<const T*>(p[1]) + begin;
    else if (s[1] != 0)
      gather<T>(p[1] + begin * s[1], s[1], grad, count);
    if (s[0] == sizeof(T)) {
      auto* out = reinterpret_cast<T*>(p[0]) + begin;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) out[i] = g[i] * (power[i] * exponent);
    } else {
      for (int64_t i = 0; i < count; ++i)
        at<T>(p[0], (begin + i) * s[0]) = g[i] * (power[i] * exponent);
    }
  }
}

}  // namespace

void init_powers();
void init_powers() {
  set_loops<2, pow_loop<float>, pow_loop<double>>(table::pow);
  set_loops<2, pow_slope_loop<float>, pow_slope_loop<double>>(table::pow_slope);
}

}  // namespace clew::kernels::CLEW_ISA

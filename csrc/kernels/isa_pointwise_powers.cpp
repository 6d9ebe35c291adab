// Float loops of pow and its slope, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: where the exponent is a small multiple of a half, products and a root in double give a
// float power within one unit in the last place; signs, infinities and nan are those of std::pow.
#include <utility>

#include "kernels/pointwise.h"
#include "kernels/pointwise_loops.h"
#include "kernels/vmath.h"

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

// x^(halves / 2)
template <class T, int halves> [[gnu::always_inline]] inline T short_power(T x) {
  constexpr int size = halves < 0 ? -halves : halves;
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

// The loop for x^y that products make; null where they do not. An inverse of a product that
// overflows is lost, which only a double notices: it keeps to exponents above 0.
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

// Any power. Those of finite numbers above 0 go without what std::pow says of the others, and in
// two loops, for in one each step would wait for the one before it.
template <class T> void power_rows(T* out, const T* x, const T* y, int64_t n) {
  int other = std::is_same_v<T, double>;
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t i = 0; i < n; ++i)
      other |= !((x[i] > 0.0f) & (x[i] < vm::inf<T>)&(std::fabs(y[i]) < vm::inf<T>));
    if (!other) {
      alignas(64) double log[block_size];
      for (int64_t i = 0; i < n; ++i)
        log[i] = static_cast<double>(y[i]) * vm::log_for_float(static_cast<double>(x[i]));
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(vm::exp_for_float(log[i]));
      return;
    }
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = vm::pow(x[i], y[i]);
}
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
  alignas(64) T power[block_size];
  const int64_t steps[] = {sizeof(T), s[2], 0};
  const bool dense = s[0] == sizeof(T) && s[1] == sizeof(T);
  for (int64_t begin = 0; begin < n; begin += block_size) {
    const int64_t count = std::min(block_size, n - begin);
    char* const rows[] = {reinterpret_cast<char*>(power), p[2] + begin * s[2],
                          reinterpret_cast<char*>(&less)};
    pow_loop<T>(rows, steps, count, nullptr);
    if (dense) {
      auto* out = reinterpret_cast<T*>(p[0]) + begin;
      auto* g = reinterpret_cast<const T*>(p[1]) + begin;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) out[i] = g[i] * (power[i] * exponent);
    } else {
      for (int64_t i = 0; i < count; ++i)
        at<T>(p[0], (begin + i) * s[0]) = read<T>(p[1], (begin + i) * s[1]) * (power[i] * exponent);
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

// Loop templates: a function of one to four numbers becomes a Loop over strided operands.
// May include: base, kernels.
// Invariant: everything is in an anonymous namespace, so each instruction set keeps its own copy.
#pragma once
#include <cmath>
#include <type_traits>

#include "base/fits.h"
#include "base/ndview.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace clew::kernels {

// What Params refuses; out of line, or every loop would hold the making of the message.
[[noreturn]] void refuse_complex(DType elements);
[[noreturn]] void refuse_fraction(double alpha);
[[noreturn]] void refuse_bool(DType elements);

namespace {

inline void widen(const f16* a, float* out, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(out + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i))));
  }
#endif
  for (; i < n; ++i) out[i] = static_cast<float>(a[i]);
}
inline void narrow(const float* a, f16* out, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < n; ++i) out[i] = static_cast<f16>(a[i]);
}
inline void widen(const bf16* a, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = std::bit_cast<float>(static_cast<uint32_t>(a[i].bits) << 16);
  }
}
// The bits of x as bfloat16.
inline uint32_t rounded_bits(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return x != x ? (u >> 16) | 0x40u : rounded;
}
inline void narrow(const float* a, bf16* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i].bits = static_cast<uint16_t>(rounded_bits(a[i]));
}

template <class T> inline T& at(char* p, int64_t offset) {
  return *reinterpret_cast<T*>(p + offset);
}
template <class T> inline const T& read(const char* p, int64_t offset) {
  return *reinterpret_cast<const T*>(p + offset);
}

// The op's scalar parameters, converted once a row. Integral elements take the whole part of a
// fraction, but the factor (alpha) of a binary op must be an integer.
template <class T, int P, int operands> struct Params {
  T value[P == 0 ? 1 : P] = {};
  explicit Params(const Scalar* p) {
    for (int i = 0; i < P; ++i) {
      if constexpr (!is_complex_v<T>) {
        if (p[i].is_complex()) refuse_complex(dtype_of<T>());
      }
      if constexpr (std::is_integral_v<T>) {
        if constexpr (operands == 2) {
          if (p[i].is_float()) refuse_fraction(p[i].re);
        }
        require_fits("scalar argument", p[i], dtype_of<T>());
      }
      value[i] = p[i].to<T>();
    }
  }
};
template <int P, class F, class T, class... A> inline auto call(const T* params, A... a) {
  if constexpr (P == 0)
    return F{}(a...);
  else
    return F{}(a..., params);
}
template <class T, class F, int P, int N> struct result_of;
template <class T, class F, int P> struct result_of<T, F, P, 1> {
  using type = decltype(call<P, F>(static_cast<const T*>(nullptr), T{}));
};
template <class T, class F, int P> struct result_of<T, F, P, 2> {
  using type = decltype(call<P, F>(static_cast<const T*>(nullptr), T{}, T{}));
};
template <class T, class F, int P> struct result_of<T, F, P, 3> {
  using type = decltype(call<P, F>(static_cast<const T*>(nullptr), T{}, T{}, T{}));
};

// Elements of a block of rows that are not what a loop takes.
constexpr int64_t block_size = 256;

template <class H, class T> void gather(const char* from, int64_t step, T* to, int64_t n) {
  if constexpr (!std::is_same_v<T, H>) {
    if (step == sizeof(H)) return widen(reinterpret_cast<const H*>(from), to, n);
  }
  if (step == 2 * sizeof(H)) {  // every other one: vectors are loaded and thinned
    auto* p = reinterpret_cast<const H*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(p[2 * i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(read<H>(from, i * step));
}
template <class H, class R> void scatter(const R* from, char* to, int64_t step, int64_t n) {
  if constexpr (!std::is_same_v<R, H>) {
    if (step == sizeof(H)) return narrow(from, reinterpret_cast<H*>(to), n);
  }
  for (int64_t i = 0; i < n; ++i) at<H>(to, i * step) = static_cast<H>(from[i]);
}

// Runs a loop for dense rows of T (its result: R) on blocks of rows that are strided, or hold H.
// Operand k may be the number params[k - 1] if there are `numbers`, else params are the loop's own.
template <int N, class H, class T, class R, bool numbers = false>
[[gnu::noinline]] void block_rows(Loop loop, char* const* p, const int64_t* s, int64_t n,
                                  const Scalar* params) {
  using Stored = std::conditional_t<std::is_same_v<R, T>, H, R>;  // tests of halves give bools
  const bool dense_result = std::is_same_v<R, Stored> && s[0] == sizeof(R);
  alignas(64) T block[N][block_size];
  alignas(64) R result[block_size];
  char* rows[N + 1];
  int64_t steps[N + 1] = {sizeof(R)};
  for (int k = 1; k <= N; ++k) {
    rows[k] = reinterpret_cast<char*>(block[k - 1]);
    steps[k] = sizeof(T);
    if (s[k] != 0) continue;
    if constexpr (std::is_same_v<T, H>) {
      std::fill_n(block[k - 1], std::min(n, block_size), read<T>(p[k], 0));
    } else {
      const bool number = numbers && params[k - 1].has_value();
      block[k - 1][0] = number ? params[k - 1].to<T>() : static_cast<T>(read<H>(p[k], 0));
      steps[k] = 0;
    }
  }
  for (int64_t begin = 0; begin < n; begin += block_size) {
    int64_t count = std::min(block_size, n - begin);
    for (int k = 1; k <= N; ++k) {
      if (s[k] == 0) continue;
      char* from = p[k] + begin * s[k];
      if (std::is_same_v<T, H> && s[k] == sizeof(T)) {
        rows[k] = from;
      } else {
        gather<H>(from, s[k], block[k - 1], count);
      }
    }
    char* to = p[0] + begin * s[0];
    rows[0] = dense_result ? to : reinterpret_cast<char*>(result);
    loop(rows, steps, count, numbers ? nullptr : params);
    if (!dense_result) scatter<Stored>(result, to, s[0], count);
  }
}

// The loops are flattened: around a call that is not inlined nothing is vectorised.
template <class T, class F, int P>
[[gnu::flatten]] void unary_rows(char* const* p, int64_t n, const Scalar* params) {
  using R = typename result_of<T, F, P, 1>::type;
  const Params<T, P, 1> c(params);
  auto* o = reinterpret_cast<R*>(p[0]);
  auto* a = reinterpret_cast<const T*>(p[1]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = call<P, F>(c.value, a[i]);
}
template <class T, class F, int P>
void unary_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  using R = typename result_of<T, F, P, 1>::type;
  if (s[0] == sizeof(R) && s[1] == sizeof(T))
    unary_rows<T, F, P>(p, n, params);
  else
    block_rows<1, T, T, R>(unary_loop<T, F, P>, p, s, n, params);
}

// A function whose operands may change places: one number for all is always the second.
template <class F> struct Symmetric : F {};
template <class F> Symmetric(F) -> Symmetric<F>;
template <class F> constexpr bool symmetric = false;
template <class F> constexpr bool symmetric<Symmetric<F>> = true;

// The second operand: a row (0), or one number for all (2); the first one: (1).
template <class T, class F, int P, int single>
[[gnu::flatten]] void binary_rows(char* const* p, int64_t n, const Scalar* params) {
  using R = typename result_of<T, F, P, 2>::type;
  const Params<T, P, 2> c(params);
  auto* o = reinterpret_cast<R*>(p[0]);
  auto* a = reinterpret_cast<const T*>(p[1]);
  auto* b = reinterpret_cast<const T*>(p[2]);
  const T x = single == 1 ? *a : T();
  const T y = single == 2 ? *b : T();
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (single == 1)
      o[i] = call<P, F>(c.value, x, b[i]);
    else if constexpr (single == 2)
      o[i] = call<P, F>(c.value, a[i], y);
    else
      o[i] = call<P, F>(c.value, a[i], b[i]);
  }
}
template <class T, class F, int P>
void number_first(char* const* p, int64_t n, const Scalar* params) {
  if constexpr (symmetric<F>) {
    char* const rows[] = {p[0], p[2], p[1]};
    binary_rows<T, F, P, 2>(rows, n, params);
  } else {
    binary_rows<T, F, P, 1>(p, n, params);
  }
}
template <class T, class F, int P>
[[gnu::noinline]] void binary_loop(char* const* p, const int64_t* s, int64_t n,
                                   const Scalar* params) {
  using R = typename result_of<T, F, P, 2>::type;
  constexpr int64_t item = sizeof(T);
  const bool dense = s[0] == sizeof(R);
  if (dense && s[1] == item && s[2] == item)
    binary_rows<T, F, P, 0>(p, n, params);
  else if (dense && s[1] == item && s[2] == 0)
    binary_rows<T, F, P, 2>(p, n, params);
  else if (dense && s[1] == 0 && s[2] == item)
    number_first<T, F, P>(p, n, params);
  else
    block_rows<2, T, T, R>(binary_loop<T, F, P>, p, s, n, params);
}
// F of the operands in the other order: a > b is b < a.
template <class T, class F>
void swapped_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  char* const rows[] = {p[0], p[2], p[1]};
  const int64_t steps[] = {s[0], s[2], s[1]};
  binary_loop<T, F, 0>(rows, steps, n, params);
}
template <class F, class... T> void swapped(LoopTable& table, TypeList<T...>, F) {
  ((table.fn[static_cast<int>(dtype_of<T>())] = swapped_loop<T, F>), ...);
}

// The third operand is a row, or one number for all, as in lerp(a, b, 0.1).
template <class T, class F, int P, bool single>
[[gnu::flatten]] void ternary_rows(char* const* p, int64_t n, const Scalar* params) {
  using R = typename result_of<T, F, P, 3>::type;
  const Params<T, P, 3> c(params);
  auto* o = reinterpret_cast<R*>(p[0]);
  auto* x = reinterpret_cast<const T*>(p[1]);
  auto* y = reinterpret_cast<const T*>(p[2]);
  auto* z = reinterpret_cast<const T*>(p[3]);
  const T last = single ? *z : T();
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = call<P, F>(c.value, x[i], y[i], single ? last : z[i]);
}
template <class T, class F, int P>
void ternary_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  using R = typename result_of<T, F, P, 3>::type;
  constexpr int64_t item = sizeof(T);
  const bool dense = s[0] == sizeof(R) && s[1] == item && s[2] == item;
  if (dense && s[3] == item)
    ternary_rows<T, F, P, false>(p, n, params);
  else if (dense && s[3] == 0)
    ternary_rows<T, F, P, true>(p, n, params);
  else
    block_rows<3, T, T, R>(ternary_loop<T, F, P>, p, s, n, params);
}

template <int N, class T, class F, int P> constexpr Loop plain_loop() {
  if constexpr (N == 1)
    return unary_loop<T, F, P>;
  else if constexpr (N == 2)
    return binary_loop<T, F, P>;
  else
    return ternary_loop<T, F, P>;
}

// A float loop (result R) for rows of H.
template <int N, class H, class R, Loop loop>
void half_rows(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  block_rows<N, H, float, R>(loop, p, s, n, params);
}

template <int N, class H, Loop f32>
void block_rows_beside_numbers(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  block_rows<N, H, float, float, true>(f32, p, s, n, params);
}
// Offers a float loop of N operands for halves beside numbers.
template <int N, Loop f32> void set_beside_numbers(LoopTable& table) {
  table.beside_numbers[0] = block_rows_beside_numbers<N, f16, f32>;
  table.beside_numbers[1] = block_rows_beside_numbers<N, bf16, f32>;
}

// A hand-written loop for float and double, and its half forms.
template <int N, Loop f32, Loop f64> void set_loops(LoopTable& table) {
  table.fn[static_cast<int>(DType::Float32)] = f32;
  table.fn[static_cast<int>(DType::Float64)] = f64;
  table.fn[static_cast<int>(DType::Float16)] = half_rows<N, f16, float, f32>;
  table.fn[static_cast<int>(DType::BFloat16)] = half_rows<N, bf16, float, f32>;
}

constexpr int64_t guarded_block = 1024;  // elements that are looked at together

// A function with a fast form that is right where F::fits(x ...) holds; other numbers go through
// F::slow, each by itself: the same number gives the same bits wherever it stands. A block is
// looked at while its results are made, but where they replace the numbers: there before.
template <class T, class F>
[[gnu::flatten]] void guarded_rows(char* const* p, int64_t n, const Scalar*) {
  auto* o = reinterpret_cast<T*>(p[0]);
  auto* a = reinterpret_cast<const T*>(p[1]);
  auto* b = reinterpret_cast<const T*>(p[F::inputs]);  // a itself if there is one input
  auto of = [=](auto f, int64_t i) __attribute__((always_inline)) {
    if constexpr (F::inputs == 1)
      return f(a[i]);
    else
      return f(a[i], b[i]);
  };
  auto fits = [](auto... x) { return F::fits(x...); };
  auto fast = [](auto... x) { return F::fast(x...); };
  auto slow = [](auto... x) { return F::slow(x...); };
  const bool apart = o != a && o != b;
  for (int64_t begin = 0; begin < n; begin += guarded_block) {
    const int64_t end = std::min(n, begin + guarded_block);
    int bad = 0;
    if (apart) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        bad |= !of(fits, i);
        o[i] = of(fast, i);
      }
    } else {
      for (int64_t i = begin; i < end; ++i) bad |= !of(fits, i);
      if (!bad) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) o[i] = of(fast, i);
      }
    }
    for (int64_t i = begin; bad && i < end; ++i) {
      if (!of(fits, i))
        o[i] = of(slow, i);
      else if (!apart)
        o[i] = of(fast, i);
    }
  }
}
template <class T, class F>
void guarded_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  bool dense = true;
  for (int k = 0; k <= F::inputs; ++k) dense = dense && s[k] == sizeof(T);
  if (dense)
    guarded_rows<T, F>(p, n, params);
  else
    block_rows<F::inputs, T, T, T>(guarded_loop<T, F>, p, s, n, params);
}
template <class F> void guarded(LoopTable& table, F) {
  set_loops<F::inputs, guarded_loop<float, F>, guarded_loop<double, F>>(table);
}

// Writes the loops of f for the listed types into the table. P: how many scalar parameters f gets
// as its last argument.
template <int N, int P = 0, class F, class... Ts> void set(LoopTable& table, TypeList<Ts...>, F) {
  auto loop = []<class T>() -> Loop {
    if constexpr (is_half_v<T>) {
      using R = typename result_of<float, F, P, N>::type;
      return half_rows<N, T, R, plain_loop<N, float, F, P>()>;
    } else {
      return plain_loop<N, T, F, P>();
    }
  };
  ((table.fn[static_cast<int>(dtype_of<Ts>())] = loop.template operator()<Ts>()), ...);
}
template <int P = 0, class L, class F> void unary(LoopTable& table, L types, F f) {
  set<1, P>(table, types, f);
}
template <int P = 0, class L, class F> void binary(LoopTable& table, L types, F f) {
  set<2, P>(table, types, f);
}
template <int P = 0, class L, class F> void ternary(LoopTable& table, L types, F f) {
  set<3, P>(table, types, f);
}
// The halves of what set() writes, beside numbers.
template <int N, class F> void beside_numbers(LoopTable& table, F) {
  set_beside_numbers<N, plain_loop<N, float, F, 0>()>(table);
}

using Integers = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using Signed = TypeList<int8_t, int16_t, int32_t, int64_t>;
using Bools = TypeList<bool>;

// Arithmetic that wraps around for integers (signed overflow is undefined in C++).
template <class T>
using wide_unsigned = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
template <class T> inline T wrap_add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>) {
    using U = wide_unsigned<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else
    return a + b;
}
template <class T> inline T wrap_sub(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = wide_unsigned<T>;
    return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
  } else
    return a - b;
}
template <class T> inline T wrap_mul(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (std::is_integral_v<T>) {
    using U = wide_unsigned<T>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  } else
    return a * b;
}

}  // namespace
}  // namespace clew::kernels

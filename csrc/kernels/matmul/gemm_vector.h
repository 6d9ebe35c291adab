// Vectors of one instruction set and the element types that products read and write with them.
// May include: base/dtype.h, kernels/core/lanes.h. Only isa_*.cpp files include it.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
#pragma once
#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif
#include <bit>
#include <cstring>
#include <utility>

#include "base/dtype.h"
#include "kernels/core/lanes.h"

#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

template <class X, int bytes> struct VectorOf {
  typedef X type __attribute__((vector_size(bytes)));
};
template <class S> using Vector = Lanes_t<S>;
template <class S> constexpr int lanes = lane_count<S>;

// How an element type is computed with: scalar S, `planes` parts an element (2 for complex).
template <class T> struct Element {
  using S = T;
  static constexpr int planes = 1;
  static S load(const T* p, int) { return *p; }
  static void store(T* p, const S* v) { *p = v[0]; }
};
template <class T, class U> struct IntegerElement {
  using S = U;
  static constexpr int planes = 1;
  static S load(const T* p, int) { return static_cast<U>(*p); }
  static void store(T* p, const S* v) { *p = static_cast<T>(v[0]); }
};
template <> struct Element<uint8_t> : IntegerElement<uint8_t, uint32_t> {};
template <> struct Element<int8_t> : IntegerElement<int8_t, uint32_t> {};
template <> struct Element<int16_t> : IntegerElement<int16_t, uint32_t> {};
template <> struct Element<f16> {
  using S = float;
  static constexpr int planes = 1;
  static S load(const f16* p, int) { return static_cast<float>(*p); }
  static void store(f16* p, const S* v) { *p = static_cast<f16>(v[0]); }
};
template <> struct Element<bf16> {
  using S = float;
  static constexpr int planes = 1;
  static S load(const bf16* p, int) {
    return std::bit_cast<float>(static_cast<uint32_t>(p->bits) << 16);
  }
  static void store(bf16* p, const S* v) {
    const uint32_t u = std::bit_cast<uint32_t>(v[0]);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    p->bits =
        static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};
template <class R> struct Parts { R part[2]; };
template <class R> struct Element<Parts<R>> {
  using S = R;
  static constexpr int planes = 2;
  static S load(const Parts<R>* p, int plane) { return p->part[plane]; }
  static void store(Parts<R>* p, const S* v) {
    p->part[0] = v[0];
    p->part[1] = v[1];
  }
};

// A vector of S from as many contiguous elements of T.
template <class T> inline Vector<typename Element<T>::S> load_lanes(const T* p) {
  using S = typename Element<T>::S;
  constexpr int L = lanes<S>;
  Vector<S> v{};
  if constexpr (sizeof(T) == sizeof(S)) {
    std::memcpy(&v, p, sizeof v);
  } else if constexpr (std::is_same_v<T, bf16>) {
    typename VectorOf<uint16_t, 2 * L>::type bits;
    std::memcpy(&bits, p, sizeof bits);
    const auto wide = __builtin_convertvector(bits, Vector<uint32_t>) << 16;
    std::memcpy(&v, &wide, sizeof v);
  } else if constexpr (std::is_same_v<T, f16>) {
#if defined(__AVX512F__)
    v = _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__F16C__)
    v = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
    for (int l = 0; l < L; ++l) v[l] = static_cast<float>(p[l]);
#endif
  } else {
    typename VectorOf<T, static_cast<int>(sizeof(T)) * L>::type narrow;
    std::memcpy(&narrow, p, sizeof narrow);
    v = __builtin_convertvector(narrow, Vector<S>);
  }
  return v;
}

template <class T> inline void store_lanes(T* p, Vector<typename Element<T>::S> v) {
  using S = typename Element<T>::S;
  constexpr int L = lanes<S>;
  if constexpr (sizeof(T) == sizeof(S)) {
    std::memcpy(p, &v, sizeof v);
  } else if constexpr (std::is_same_v<T, bf16>) {
    using U = Vector<uint32_t>;
    U u;
    std::memcpy(&u, &v, sizeof v);
    const U rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const U quiet = (u >> 16) | 0x40u;
    const auto nan = reinterpret_cast<Vector<int32_t>>(u & 0x7fffffffu) > 0x7f800000;
    const auto bits =
        __builtin_convertvector(nan ? quiet : rounded, typename VectorOf<uint16_t, 2 * L>::type);
    std::memcpy(static_cast<void*>(p), &bits, sizeof bits);
  } else if constexpr (std::is_same_v<T, f16>) {
#if defined(__AVX512F__)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtps_ph(0xffff, v, 0));
#elif defined(__F16C__)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, 0));
#else
    for (int l = 0; l < L; ++l) p[l] = static_cast<f16>(v[l]);
#endif
  } else {
    const auto narrow =
        __builtin_convertvector(v, typename VectorOf<T, static_cast<int>(sizeof(T)) * L>::type);
    std::memcpy(p, &narrow, sizeof narrow);
  }
}

// Copies n elements in pieces of fixed size: for the few that a small row has, a call costs more
// than the copy.
template <class S> [[gnu::always_inline]] inline void copy_row(S* to, const S* from, int64_t n) {
  for (; n >= 8; n -= 8, to += 8, from += 8) std::memcpy(to, from, 8 * sizeof(S));
  if (n & 4) {
    std::memcpy(to, from, 4 * sizeof(S));
    to += 4, from += 4;
  }
  if (n & 2) {
    std::memcpy(to, from, 2 * sizeof(S));
    to += 2, from += 2;
  }
  if (n & 1) *to = *from;
}

// Copies n elements, fewer than a vector has.
template <class S> [[gnu::always_inline]] inline void copy_part(S* to, const S* from, int64_t n) {
  int64_t at = 0;
  unroll<4>([&]<int bit> {
    constexpr int piece = 8 >> bit;
    if constexpr (piece < lanes<S>) {
      if (n & piece) {
        std::memcpy(to + at, from + at, piece * sizeof(S));
        at += piece;
      }
    }
  });
}

// The first n lanes, n smaller than a vector has; the others are zero.
template <class S> [[gnu::always_inline]] inline Vector<S> load_part(const S* p, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<S, float>)
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1u), p);
  if constexpr (std::is_same_v<S, double>)
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1u), p);
#endif
  S all[lanes<S>] = {};
  copy_part(all, p, n);
  Vector<S> v;
  std::memcpy(&v, all, sizeof v);
  return v;
}
template <class S> [[gnu::always_inline]] inline void store_part(S* p, Vector<S> v, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<S, float>)
    return _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1u), v);
  if constexpr (std::is_same_v<S, double>)
    return _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1u), v);
#endif
  S all[lanes<S>];
  std::memcpy(all, &v, sizeof v);
  copy_part(p, all, n);
}

template <class V, int... I>
[[gnu::always_inline]] inline V low_halves(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int L = static_cast<int>(sizeof...(I));
  return __builtin_shufflevector(a, b, (I / 2 + I % 2 * L)...);
}
template <class V, int... I>
[[gnu::always_inline]] inline V high_halves(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int L = static_cast<int>(sizeof...(I));
  return __builtin_shufflevector(a, b, (L / 2 + I / 2 + I % 2 * L)...);
}
// Rows become columns: with R rows in v (a power of two), v read as one long vector then holds
// element 0 of each row, element 1 of each row and so on.
template <class S, int R> [[gnu::always_inline]] inline void interleave(Vector<S>* v) {
  constexpr auto all = std::make_integer_sequence<int, lanes<S>>{};
  for (int step = 1; step < R; step *= 2) {
    Vector<S> w[R];
    unroll<R / 2>([&]<int i> {
      w[2 * i] = low_halves(v[i], v[i + R / 2], all);
      w[2 * i + 1] = high_halves(v[i], v[i + R / 2], all);
    });
    unroll<R>([&]<int i> { v[i] = w[i]; });
  }
}

// Which element of a (or of b, behind it) lane i of a sum over neighbours takes: within blocks of
// 16 bytes, where shuffles are quick, or whole blocks.
template <class S, bool blocks> constexpr int neighbour(int i, int odd) {
  constexpr int L = lanes<S>, E = 16 / static_cast<int>(sizeof(S));
  constexpr int all = blocks ? L / E : E, half = all / 2;
  const int at = blocks ? i / E : i % E;
  const int from = (at % half) * 2 + odd, other = at < half ? 0 : L;
  return other + (blocks ? from * E + i % E : i / E * E + from);
}
template <class S, bool blocks, int... I>
[[gnu::always_inline]] inline Vector<S> pair_sums(Vector<S> a, Vector<S> b,
                                                  std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, neighbour<S, blocks>(I, 0)...) +
         __builtin_shufflevector(a, b, neighbour<S, blocks>(I, 1)...);
}
// The sum of each vector's lanes: lane r of the result belongs to v[r]. v has as many vectors as
// lanes, and is used up.
template <class S, int n = lanes<S>>
[[gnu::always_inline]] inline Vector<S> lane_sums(Vector<S> (&v)[lanes<S>]) {
  constexpr int L = lanes<S>, E = 16 / static_cast<int>(sizeof(S));
  if constexpr (n == 1) {
    return v[0];
  } else {
    // The first steps join the elements of a block, the others blocks.
    unroll<n / 2>([&]<int i> {
      v[i] =
          pair_sums<S, (n <= L / E)>(v[2 * i], v[2 * i + 1], std::make_integer_sequence<int, L>());
    });
    return lane_sums<S, n / 2>(v);
  }
}

}  // namespace
}  // namespace clew::kernels::CLEW_ISA

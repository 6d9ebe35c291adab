// The vector loops of random numbers, compiled once for each instruction set.
// May include: base/mersenne.h, kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage; products and sums
// round one by one, so that all instruction sets give the same bits.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma clang fp contract(off)
#endif
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/mersenne.h"
#include "kernels/core/stream.h"
#include "kernels/random/random_loops.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

using mersenne::middle;
using mersenne::temper;
using mersenne::twist;
constexpr int size = mersenne::words;

// No word depends on one less than 227 places before it: 28 vectors of 8 at a time.
void extend(uint32_t* x, int64_t blocks) {
  constexpr int run = 224;
  auto words = [](uint32_t * to, int n) __attribute__((always_inline)) {
    const uint32_t *a = to - size, *m = to - (size - middle);
#pragma GCC ivdep
    for (int i = 0; i < n; ++i) to[i] = m[i] ^ twist(a[i], a[i + 1]);
  };
  for (uint32_t *to = x + size, *end = to + blocks * size; to < end; to += size) {
    words(to, run);
    words(to + run, run);
    words(to + 2 * run, size - 2 * run);
  }
}
// Half of the recurrences read what stands beside them, the other half the next even word: no word
// depends on one less than 113 places before it in its half.
#ifdef __AVX512F__
// twist() of sixteen, and the word it is added to.
[[gnu::always_inline]] inline __m512i recurrence(__m512i a, __m512i b, __m512i middle_word) {
  const auto y = _mm512_ternarylogic_epi32(_mm512_set1_epi32(INT32_MIN), a, b, 0xca);
  const auto odd = _mm512_test_epi32_mask(b, _mm512_set1_epi32(1));
  const auto term = _mm512_maskz_set1_epi32(odd, static_cast<int>(0x9908b0dfu));
  return _mm512_ternarylogic_epi32(_mm512_maskz_srli_epi32(0xffff, y, 1), term, middle_word, 0x96);
}
void extend_apart(uint32_t* even, uint32_t* odd, int64_t blocks, const float* soon) {
  constexpr int half = size / 2, lanes = 16, kept = 8;
  const uint32_t *e = even, *o = odd;
  uint32_t *to_even = even + half, *to_odd = odd + half;
  int64_t left = blocks * half;
  if (left <= 0) return;
  // Keeps the last 128 words in registers; a load would have to wait for their stores.
  __m512i es[kept], os[kept];
#pragma GCC unroll 8
  for (int k = 0; k < kept; ++k) {
    es[k] = _mm512_loadu_si512(to_even + lanes * (k - kept));
    os[k] = _mm512_loadu_si512(to_odd + lanes * (k - kept));
  }
  auto step = [&](int k, __mmask16 wanted) __attribute__((always_inline)) {
    const auto a = _mm512_loadu_si512(e), b = _mm512_loadu_si512(o), c = _mm512_loadu_si512(e + 1);
    const auto from_odd = _mm512_maskz_alignr_epi32(0xffff, os[(k + 1) % kept], os[k], 14);
    const auto from_even = _mm512_maskz_alignr_epi32(0xffff, es[(k + 1) % kept], es[k], 15);
    es[k] = recurrence(a, b, from_odd);
    os[k] = recurrence(b, c, from_even);
    _mm512_mask_storeu_epi32(to_even, wanted, es[k]);
    _mm512_mask_storeu_epi32(to_odd, wanted, os[k]);
    __builtin_prefetch(soon, 0, 2);
    soon += lanes;
    e += lanes, o += lanes, to_even += lanes, to_odd += lanes;
  };
  for (; left >= kept * lanes; left -= kept * lanes) {
#pragma GCC unroll 8
    for (int k = 0; k < kept; ++k) step(k, 0xffff);
  }
#pragma GCC unroll 8
  for (int k = 0; k < kept; ++k) {
    if (left <= 0) break;
    step(k, static_cast<__mmask16>(left < lanes ? (1u << left) - 1 : 0xffff));
    left -= lanes;
  }
}
#else
void extend_apart(uint32_t* even, uint32_t* odd, int64_t blocks, const float* soon) {
  constexpr int half = size / 2, run = 112;
  auto words = [](const uint32_t* e, const uint32_t* o, uint32_t* to_even, uint32_t* to_odd, int n)
      __attribute__((always_inline)) {
#pragma GCC ivdep
    for (int i = 0; i < n; ++i) {
      to_even[i] = o[i + middle / 2] ^ twist(e[i], o[i]);
      to_odd[i] = e[i + middle / 2 + 1] ^ twist(o[i], e[i + 1]);
    }
  };
  for (; blocks > 0; --blocks, even += half, odd += half) {
    for (int i = 0; i < half; i += run) {
      for (int k = 0; k < run; k += 16) __builtin_prefetch(soon + k, 0, 2);
      soon += run;
      words(even + i, odd + i, even + half + i, odd + half + i, i + run <= half ? run : half - i);
    }
  }
}
#endif
void temper_all(uint32_t* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = temper(x[i]);
}

#ifdef __AVX2__
// All ones in each pair of words that is below the limit.
[[gnu::always_inline]] inline __m256i pairs_below(const uint32_t* words, __m256i limit) {
  const auto pair = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
  const auto number = _mm256_and_si256(_mm256_shuffle_epi32(pair, 0b10110001),
                                       _mm256_set1_epi64x((int64_t{1} << 53) - 1));
  return _mm256_cmpgt_epi64(limit, number);
}
// The same of sixteen pairs, in 16 bits each: 0 1 4 5 8 9 12 13, then the others.
[[gnu::always_inline]] inline __m256i sixteen_below(const uint32_t* words, __m256i limit) {
  auto eight = [=](const uint32_t* at) {
    const auto first = _mm256_castsi256_ps(pairs_below(at, limit));
    const auto last = _mm256_castsi256_ps(pairs_below(at + 8, limit));
    return _mm256_castps_si256(_mm256_shuffle_ps(first, last, 0b10001000));
  };
  return _mm256_packs_epi32(eight(words), eight(words + 16));
}
#endif
void below(uint8_t* __restrict out, const uint32_t* __restrict words, int64_t n, uint64_t limit) {
  int64_t i = 0;
#ifdef __AVX2__
  const auto limits = _mm256_set1_epi64x(static_cast<int64_t>(limit));
  for (; i + 32 <= n; i += 32) {
    const auto both = _mm256_packs_epi16(sixteen_below(words + 2 * i, limits),
                                         sixteen_below(words + 2 * i + 32, limits));
    const auto ones = _mm256_and_si256(both, _mm256_set1_epi8(1));
    const auto low = _mm256_castsi256_si128(ones), high = _mm256_extracti128_si256(ones, 1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm_unpacklo_epi16(low, high));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i + 16), _mm_unpackhi_epi16(low, high));
  }
#endif
  // The first word of a pair is the upper half.
  for (; i < n; ++i) {
    const uint64_t number = static_cast<uint64_t>(words[2 * i]) << 32 | words[2 * i + 1];
    out[i] = (number & ((uint64_t{1} << 53) - 1)) < limit;
  }
}

#ifdef __AVX2__
[[gnu::always_inline]] inline __m256 either(__m256i kept, float yes, float no) {
  return _mm256_blendv_ps(_mm256_set1_ps(no), _mm256_set1_ps(yes), _mm256_castsi256_ps(kept));
}
#endif
// Dropped elements are multiplied by 0, so NaN stays NaN.
void masked(float* __restrict out, const float* __restrict x, const uint8_t* __restrict mask,
            int64_t n, float a, float b, float dropped) {
  int64_t i = 0;
#ifdef __AVX2__
  for (; i + 8 <= n; i += 8) {
    const auto bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(mask + i));
    const auto kept = _mm256_cmpgt_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_setzero_si256());
    const auto y = _mm256_mul_ps(_mm256_loadu_ps(x + i), either(kept, a, 0));
    _mm256_storeu_ps(out + i, _mm256_add_ps(y, either(kept, b, dropped)));
  }
#endif
  for (; i < n; ++i) out[i] = x[i] * (mask[i] ? a : 0.0f) + (mask[i] ? b : dropped);
}

template <bool shifted, bool streamed>
void drop_by(float* __restrict out, uint8_t* __restrict mask, const float* __restrict x,
             const uint32_t* __restrict upper, const uint32_t* __restrict lower, int64_t n,
             uint64_t limit, float a, float b, float dropped) {
  int64_t i = 0;
  auto plainly = [&](int64_t count) {
    for (int64_t k = i; k < i + count; ++k) {
      const uint64_t number = static_cast<uint64_t>(temper(upper[k])) << 32 | temper(lower[k]);
      mask[k] = (number & ((uint64_t{1} << 53) - 1)) < limit;
    }
    masked(out + i, x + i, mask + i, count, a, b, dropped);
    i += count;
  };
#if defined(__AVX512BW__)
  // The upper words decide, but where one is the limit's.
  const auto top = _mm512_set1_epi32(static_cast<int32_t>(limit >> 32));
  const auto factor = _mm512_set1_ps(a);
  while (i + 64 <= n) {
    __mmask16 kept[4];
    unsigned doubtful = 0;
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      auto y = _mm512_loadu_si512(upper + i + 16 * q);
      y = _mm512_xor_si512(y, _mm512_maskz_srli_epi32(0xffff, y, 11));
      y = _mm512_ternarylogic_epi32(y, _mm512_maskz_slli_epi32(0xffff, y, 7),
                                    _mm512_set1_epi32(static_cast<int>(0x9d2c5680u)), 0x78);
      y = _mm512_ternarylogic_epi32(y, _mm512_maskz_slli_epi32(0xffff, y, 15),
                                    _mm512_set1_epi32(static_cast<int>(0xefc60000u)), 0x78);
      y = _mm512_ternarylogic_epi32(y, _mm512_maskz_srli_epi32(0xffff, y, 18),
                                    _mm512_set1_epi32((1 << 21) - 1), 0x28);
      kept[q] = _mm512_cmplt_epu32_mask(y, top);
      doubtful |= _mm512_cmpeq_epu32_mask(y, top);
    }
    if (doubtful) {
      plainly(64);
      continue;
    }
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      auto y = _mm512_mul_ps(_mm512_loadu_ps(x + i + 16 * q), _mm512_maskz_mov_ps(kept[q], factor));
      if constexpr (shifted)
        y = _mm512_add_ps(
            y, _mm512_mask_blend_ps(kept[q], _mm512_set1_ps(dropped), _mm512_set1_ps(b)));
      if constexpr (streamed)
        _mm512_stream_ps(out + i + 16 * q, y);
      else
        _mm512_storeu_ps(out + i + 16 * q, y);
    }
    const auto all =
        _mm512_kunpackd(_mm512_kunpackw(kept[3], kept[2]), _mm512_kunpackw(kept[1], kept[0]));
    _mm512_storeu_si512(mask + i, _mm512_maskz_set1_epi8(all, 1));
    i += 64;
  }
#elif defined(__AVX2__)
  // The upper words decide, but where one is the limit's.
  const auto top = _mm256_set1_epi32(static_cast<int32_t>(limit >> 32));
  while (i + 32 <= n) {
    __m256i kept[4], doubtful = _mm256_setzero_si256();
    for (int q = 0; q < 4; ++q) {
      auto y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(upper + i + 8 * q));
      y = _mm256_xor_si256(y, _mm256_srli_epi32(y, 11));
      y = _mm256_xor_si256(y, _mm256_and_si256(_mm256_slli_epi32(y, 7),
                                               _mm256_set1_epi32(static_cast<int>(0x9d2c5680u))));
      y = _mm256_xor_si256(y, _mm256_and_si256(_mm256_slli_epi32(y, 15),
                                               _mm256_set1_epi32(static_cast<int>(0xefc60000u))));
      y = _mm256_xor_si256(y, _mm256_srli_epi32(y, 18));
      y = _mm256_and_si256(y, _mm256_set1_epi32((1 << 21) - 1));
      kept[q] = _mm256_cmpgt_epi32(top, y);
      doubtful = _mm256_or_si256(doubtful, _mm256_cmpeq_epi32(top, y));
    }
    if (!_mm256_testz_si256(doubtful, doubtful)) {
      plainly(32);
      continue;
    }
    for (int q = 0; q < 4; ++q) {
      const auto factor = _mm256_and_ps(_mm256_castsi256_ps(kept[q]), _mm256_set1_ps(a));
      auto y = _mm256_mul_ps(_mm256_loadu_ps(x + i + 8 * q), factor);
      if constexpr (shifted) y = _mm256_add_ps(y, either(kept[q], b, dropped));
      if constexpr (streamed)
        _mm256_stream_ps(out + i + 8 * q, y);
      else
        _mm256_storeu_ps(out + i + 8 * q, y);
    }
    const auto bytes = _mm256_packs_epi16(_mm256_packs_epi32(kept[0], kept[1]),
                                          _mm256_packs_epi32(kept[2], kept[3]));
    const auto sorted =
        _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(mask + i),
                        _mm256_and_si256(sorted, _mm256_set1_epi8(1)));
    i += 32;
  }
#endif
  plainly(n - i);
  if (streamed) stream_end();
}
void drop(float* out, uint8_t* mask, const float* x, const uint32_t* upper, const uint32_t* lower,
          int64_t n, uint64_t limit, float a, float b, float dropped, bool streamed) {
  // Adding -0 changes nothing.
  auto nothing = [](float y) { return std::bit_cast<uint32_t>(y) == 0x80000000u; };
  const bool shifted = !(nothing(b) && nothing(dropped));
  auto* by = shifted ? (streamed ? drop_by<true, true> : drop_by<true, false>)
                     : (streamed ? drop_by<false, true> : drop_by<false, false>);
  by(out, mask, x, upper, lower, n, limit, a, b, dropped);
}

constexpr int block = 16;

// Natural logarithm of x in (0, 1], a multiple of 2^-24: within 2 units in the last place, and
// vectorisable.
inline float log_unit(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  uint32_t shifted = bits + (0x3f800000u - 0x3f3504f3u);
  int exponent = static_cast<int>(shifted >> 23) - 127;
  float m = std::bit_cast<float>((shifted & 0x007fffffu) + 0x3f3504f3u);
  float s = (m - 1) / (m + 1);
  float z = s * s;
  // 2 * atanh(s) by its series; |s| < 0.1716.
  float p = 2.0f / 9 * z + 2.0f / 7;
  p = p * z + 2.0f / 5;
  p = p * z + 2.0f / 3;
  float e = static_cast<float>(exponent);
  return e * 0.693359375f + (s * p * z + (e * -2.12194440e-4f + 2 * s));
}

// Cosine and sine of 2 pi u, u in [0, 1): exact reduction to an eighth of a turn, then the two
// Taylor series.
inline void turn(float u, float& cosine, float& sine) {
  float t = u * 4;
  int quadrant = static_cast<int>(t + 0.5f);
  float x = (t - static_cast<float>(quadrant)) * static_cast<float>(std::numbers::pi / 2);
  float z = x * x;
  float s = x + x * z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 + z * (1.0f / 362880))));
  float c = 1 - z * 0.5f +
            z * z * (1.0f / 24 + z * (-1.0f / 720 + z * (1.0f / 40320 + z * (-1.0f / 3628800))));
  float a = quadrant & 1 ? s : c;
  float b = quadrant & 1 ? c : s;
  cosine = ((quadrant + 1) & 2) ? -a : a;
  sine = (quadrant & 2) ? -b : b;
}

inline void normal_block(float* x, float mean, float std) {
  for (int j = 0; j < block / 2; ++j) {
    float radius = std::sqrt(-2 * log_unit(1 - x[j]));
    float c, s;
    turn(x[j + block / 2], c, s);
    x[j] = radius * c * std + mean;
    x[j + block / 2] = radius * s * std + mean;
  }
}
void normals(float* x, int64_t blocks, float mean, float std) {
  for (int64_t k = 0; k < blocks; ++k) normal_block(x + k * block, mean, std);
}

}  // namespace

extern const RandomLoops random_table;
const RandomLoops random_table = {.extend = extend,
                                  .temper = temper_all,
                                  .extend_apart = extend_apart,
                                  .below = below,
                                  .masked = masked,
                                  .drop = drop,
                                  .normals = normals};

}  // namespace clew::kernels::CLEW_ISA

// Running sums of one line, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#include <cstring>

#include "kernels/core/stream.h"
#include "kernels/reduce/scan_loops.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

#ifdef __AVX2__
// Four at a time: wider ones, whose permutations take longer, were slower where they were tried.
using Lanes = __m256d;
constexpr int lanes = 4;
inline Lanes load(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
inline Lanes all(double x) { return _mm256_set1_pd(x); }
inline Lanes last(Lanes x) { return _mm256_permute4x64_pd(x, 0xff); }
inline Lanes reversed(Lanes x) { return _mm256_permute4x64_pd(x, 0x1b); }
inline Lanes prefix(Lanes x) {
  x += _mm256_blend_pd(_mm256_permute4x64_pd(x, 0x90), _mm256_setzero_pd(), 1);
  return x + _mm256_permute2f128_pd(x, x, 0x08);
}
inline double first(Lanes x) { return _mm256_cvtsd_f64(x); }
template <bool streamed> inline void store(float* p, Lanes a, Lanes b) {
  const auto both = _mm256_set_m128(_mm256_cvtpd_ps(b), _mm256_cvtpd_ps(a));
  if constexpr (streamed)
    _mm256_stream_ps(p, both);
  else
    _mm256_storeu_ps(p, both);
}
template <bool streamed, bool reverse>
void sum_of(float* out, const float* in, int64_t n, double start) {
  constexpr int64_t step = 2 * lanes;
  Lanes before = all(start);
  int64_t i = 0;
  // Only the last addition waits for the vectors before.
  for (; i + step <= n; i += step) {
    const int64_t at = reverse ? n - i - step : i;
    Lanes a = load(in + at), b = load(in + at + lanes);
    if constexpr (reverse) {
      const Lanes upper = reversed(b);
      b = reversed(a);
      a = upper;
    }
    a = prefix(a);
    b = prefix(b) + last(a);
    const Lanes sums = before + b;
    a += before;
    before += last(b);
    b = sums;
    if constexpr (reverse)
      store<streamed>(out + at, reversed(b), reversed(a));
    else
      store<streamed>(out + at, a, b);
  }
  double sum = first(before);
  for (; i < n; ++i) {
    const int64_t at = reverse ? n - 1 - i : i;
    sum += in[at];
    out[at] = static_cast<float>(sum);
  }
  if (streamed) stream_end();
}
void sum(float* out, const float* in, int64_t n, double start, bool reverse, bool streamed) {
  auto* by = reverse ? (streamed ? sum_of<true, true> : sum_of<false, true>)
                     : (streamed ? sum_of<true, false> : sum_of<false, false>);
  by(out, in, n, start);
}
// The same of numbers that are summed as what they are.
template <class T> struct FourOf { typedef T type __attribute__((vector_size(32))); };
template <class T, bool reverse> void sum_alike(T* out, const T* in, int64_t n, T sum) {
  using V = typename FourOf<T>::type;
  const auto prefix_of = [](V x) {
    const V none{};
    x += __builtin_shufflevector(x, none, 4, 0, 1, 2);
    return x + __builtin_shufflevector(x, none, 4, 4, 0, 1);
  };
  V before = V{} + sum;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const int64_t at = reverse ? n - i - 2 * lanes : i;
    V a, b;
    std::memcpy(&a, in + at, sizeof a);
    std::memcpy(&b, in + at + lanes, sizeof b);
    if constexpr (reverse) {
      const V upper = __builtin_shufflevector(b, b, 3, 2, 1, 0);
      b = __builtin_shufflevector(a, a, 3, 2, 1, 0);
      a = upper;
    }
    a = prefix_of(a);
    b = prefix_of(b) + __builtin_shufflevector(a, a, 3, 3, 3, 3);
    const V sums = before + b;
    a += before;
    before += __builtin_shufflevector(b, b, 3, 3, 3, 3);
    b = sums;
    if constexpr (reverse) {
      const V lower = __builtin_shufflevector(b, b, 3, 2, 1, 0);
      b = __builtin_shufflevector(a, a, 3, 2, 1, 0);
      a = lower;
    }
    std::memcpy(out + at, &a, sizeof a);
    std::memcpy(out + at + lanes, &b, sizeof b);
  }
  sum = before[0];
  for (; i < n; ++i) {
    const int64_t at = reverse ? n - 1 - i : i;
    sum += in[at];
    out[at] = sum;
  }
}
template <class T> void sum_line(T* out, const T* in, int64_t n, bool reverse) {
  (reverse ? sum_alike<T, true> : sum_alike<T, false>)(out, in, n, T(0));
}
double total(const float* in, int64_t n) {
  Lanes sums[4] = {all(0), all(0), all(0), all(0)};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    for (int k = 0; k < 4; ++k) sums[k] += load(in + i + k * lanes);
  double sum = first(last(prefix((sums[0] + sums[1]) + (sums[2] + sums[3]))));
  for (; i < n; ++i) sum += in[i];
  return sum;
}
#endif

}  // namespace

extern const ScanLoops scan_table;
#ifdef __AVX2__
const ScanLoops scan_table = {
    .sum = sum, .total = total, .sum_double = sum_line<double>, .sum_int64 = sum_line<uint64_t>};
#else
const ScanLoops scan_table = {};
#endif

}  // namespace clew::kernels::CLEW_ISA

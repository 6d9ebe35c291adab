// The tiles of a transposed copy, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#include <bit>
#include <cstring>

#include "kernels/core/stream.h"
#include "kernels/core/transpose_loops.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

#ifdef __AVX512F__
template <class T> struct LineOf {
  typedef T type __attribute__((vector_size(64)));  // an alias template would lose the attribute
};
template <class T> using Line = typename LineOf<T>::type;

// The low (high) halves of a and b, alternating.
[[gnu::always_inline]] inline void interleave(Line<uint32_t> a, Line<uint32_t> b,
                                              Line<uint32_t>* to) {
  to[0] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  to[1] =
      __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
[[gnu::always_inline]] inline void interleave(Line<uint64_t> a, Line<uint64_t> b,
                                              Line<uint64_t>* to) {
  to[0] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  to[1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

// Interleaving the first half of the rows with the second, once for each bit of the row number,
// transposes the square. Each line is read and written once, so it does not matter that lines which
// lie a power of two apart share few places of the nearest cache.
template <class T> void stream_tile(char* d, int64_t d_row, const char* s, int64_t s_col) {
  constexpr int n = static_cast<int>(line_bytes / sizeof(T));
  Line<T> v[n], next[n];
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k) std::memcpy(&v[k], s + k * s_col, line_bytes);
#pragma GCC unroll 4
  for (int step = 1; step < n; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) interleave(v[i], v[i + n / 2], &next[2 * i]);
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) v[i] = next[i];
  }
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(d + k * d_row), std::bit_cast<__m512i>(v[k]));
}
#endif

}  // namespace

extern const TransposeLoops transpose_table;
#ifdef __AVX512F__
const TransposeLoops transpose_table = {.stream_tile_of_four = stream_tile<uint32_t>,
                                        .stream_tile_of_eight = stream_tile<uint64_t>};
#else
const TransposeLoops transpose_table = {};
#endif

}  // namespace clew::kernels::CLEW_ISA

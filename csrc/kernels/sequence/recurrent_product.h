// Products of a few rows with a matrix that was packed once and is used at every step.
// May include: base, kernels/core/lanes.h. For isa_recurrent.cpp only.
// Invariant: everything is in an anonymous namespace: each instruction set keeps its own copy.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/core/lanes.h"

namespace clew::kernels {
namespace {
namespace packed {

constexpr int rows_max = lane_bytes == 64 ? 12 : 6;
// Rows of a panel that are used together: they stay in the first-level cache for all rows of A.
constexpr int64_t depth_block = 256;

template <class T> using Vector = Lanes_t<T>;
template <class T> constexpr int lanes = lane_count<T>;
template <class T> constexpr int panel_width = 2 * lanes<T>;

// B[k, n] in panels of two vectors' columns, zero beyond n.
template <class T> struct Matrix {
  int64_t k = 0, n = 0;
  T* data = nullptr;
  static int64_t elements(int64_t k, int64_t n) {
    return k * ((n + panel_width<T> - 1) / panel_width<T> * panel_width<T>);
  }
};

// From rows that are contiguous in k (a weight as it lies, used transposed) or in n.
template <class T>
Matrix<T> pack(T* to, const T* from, int64_t k, int64_t n, int64_t k_stride, int64_t n_stride) {
  constexpr int width = panel_width<T>;
  Matrix<T> m{k, n, to};
  for (int64_t j = 0; j < n; j += width, to += k * width) {
    const int64_t count = n - j < width ? n - j : width;
    const T* src = from + j * n_stride;
    if (count < width) std::memset(static_cast<void*>(to), 0, sizeof(T) * size_t(k) * width);
    if (n_stride == 1) {
      for (int64_t p = 0; p < k; ++p)
        std::memcpy(to + p * width, src + p * k_stride, sizeof(T) * size_t(count));
      continue;
    }
    // Eight columns at a time: the writes of one step share a cache line.
    int64_t c = 0;
    for (; c + 8 <= count; c += 8) {
      const T* s = src + c * n_stride;
      T* d = to + c;
      for (int64_t p = 0; p < k; ++p, d += width, s += k_stride)
        for (int i = 0; i < 8; ++i) d[i] = s[i * n_stride];
    }
    for (; c < count; ++c)
      for (int64_t p = 0; p < k; ++p) to[p * width + c] = src[c * n_stride + p * k_stride];
  }
  return m;
}

// c[MR][P panels] (+)= a[MR, depth] @ panels; `panel_step` lies between two panels, `ldc` between
// rows of c.
template <class T, int MR, int P>
void tile(int64_t depth, const T* a, int64_t lda, const T* b, int64_t panel_step, T* c, int64_t ldc,
          bool add) {
  using V = Vector<T>;
  constexpr int L = lanes<T>, N = 2 * P;
  V acc[MR][N];
  if (add) {
    unroll<MR>([&]<int i> {
      unroll<N>([&]<int j> { std::memcpy(&acc[i][j], c + i * ldc + j * L, sizeof(V)); });
    });
  } else {
    unroll<MR>([&]<int i> { unroll<N>([&]<int j> { acc[i][j] = V{}; }); });
  }
  for (int64_t p = 0; p < depth; ++p, b += 2 * L) {
    V row[N];
    unroll<N>(
        [&]<int j> { std::memcpy(&row[j], b + (j / 2) * panel_step + (j % 2) * L, sizeof(V)); });
    unroll<MR>([&]<int i> {
      const T x = a[i * lda + p];
      unroll<N>([&]<int j> { acc[i][j] += x * row[j]; });
    });
  }
  unroll<MR>([&]<int i> {
    unroll<N>([&]<int j> { std::memcpy(c + i * ldc + j * L, &acc[i][j], sizeof(V)); });
  });
}

template <class T>
using Tile = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, bool);
// One or two rows take several panels at once: one has too few sums to hide an addition's latency.
template <int rows> constexpr int panels_of = rows == 1 ? 4 : rows <= 3 ? 2 : 1;
template <class T> struct Tiles {
  Tile<T> best[rows_max] = {}, single[rows_max] = {};
  int panels[rows_max] = {};
  template <int... I> constexpr void fill(std::integer_sequence<int, I...>) {
    ((best[I] = tile<T, I + 1, panels_of<I + 1>>, single[I] = tile<T, I + 1, 1>,
      panels[I] = panels_of<I + 1>),
     ...);
  }
  constexpr Tiles() { fill(std::make_integer_sequence<int, rows_max>{}); }
};
template <class T> constexpr Tiles<T> tiles{};

// c[m, b.n] (+)= a[m, b.k] @ b.
template <class T>
void multiply(int64_t m, const T* a, int64_t lda, const Matrix<T>& b, T* c, int64_t ldc, bool add) {
  constexpr int width = panel_width<T>;
  if (b.k == 0 && !add) {
    for (int64_t i = 0; i < m; ++i) std::memset(c + i * ldc, 0, sizeof(T) * size_t(b.n));
  }
  const int64_t groups = (m + rows_max - 1) / rows_max;
  for (int64_t pc = 0; pc < b.k; pc += depth_block) {
    const int64_t depth = b.k - pc < depth_block ? b.k - pc : depth_block;
    const bool sum = add || pc > 0;
    for (int64_t j = 0; j < b.n;) {
      const T* panel = b.data + j * b.k + pc * width;
      int64_t taken = width;
      int64_t i = 0;
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t rows = (m - i + groups - g - 1) / (groups - g);
        const T* from = a + i * lda + pc;
        T* to = c + i * ldc + j;
        const int64_t wide = groups == 1 ? tiles<T>.panels[rows - 1] * width : width;
        if (j + wide <= b.n) {
          (wide > width ? tiles<T>.best : tiles<T>.single)[rows - 1](depth, from, lda, panel,
                                                                     b.k * width, to, ldc, sum);
          taken = wide;
        } else if (j + width <= b.n) {
          tiles<T>.single[rows - 1](depth, from, lda, panel, 0, to, ldc, sum);
        } else {
          // The last columns do not fill a panel.
          alignas(64) T part[rows_max * width];
          tiles<T>.single[rows - 1](depth, from, lda, panel, 0, part, width, false);
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t x = 0; x < b.n - j; ++x)
              to[r * ldc + x] = (sum ? to[r * ldc + x] : T(0)) + part[r * width + x];
        }
        i += rows;
      }
      j += taken;
    }
  }
}

}  // namespace packed
}  // namespace
}  // namespace clew::kernels

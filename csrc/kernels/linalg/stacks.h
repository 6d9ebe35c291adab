// Matrices of a batch as the loops and LAPACK want them: copies in rows or in columns.
// May include: base, kernels/linalg/matrices.h.
// Invariant: scratch is the thread's, and of one matrix at a time.
#pragma once
#include <algorithm>
#include <limits>

#include "base/scratch.h"
#include "kernels/linalg/matrices.h"

namespace clew::kernels {

extern LocalScratch matrix_scratch;  // for copies

template <class T> bool is_nan(T x) { return x != x; }

// to (n, m) in rows becomes the transposed matrix of from (m, n) in rows.
template <class T> void transpose(const T* from, int64_t m, int64_t n, T* to) {
  constexpr int64_t block = 16;
  for (int64_t i0 = 0; i0 < m; i0 += block) {
    const int64_t i1 = std::min(i0 + block, m);
    for (int64_t j0 = 0; j0 < n; j0 += block) {
      const int64_t j1 = std::min(j0 + block, n);
      for (int64_t j = j0; j < j1; ++j) {
        for (int64_t i = i0; i < i1; ++i) to[j * m + i] = from[i * n + j];
      }
    }
  }
}
// A copy in rows, or in columns.
template <class T> void load_rows(const Stack<T>& a, int64_t i, T* to) {
  if (a.columns)
    transpose(a[i], a.n, a.m, to);
  else
    std::copy_n(a[i], a.m * a.n, to);
}
template <class T> void load_columns(const Stack<T>& a, int64_t i, T* to) {
  if (a.columns)
    std::copy_n(a[i], a.m * a.n, to);
  else
    transpose(a[i], a.m, a.n, to);
}

template <class T> T nan_of() { return T(std::numeric_limits<lapack::Real<T>>::quiet_NaN()); }

// Gives back what this thread keeps for reflections.
void trim_reflections_room();

}  // namespace clew::kernels

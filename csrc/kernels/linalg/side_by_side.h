// LU factors of many tiny real matrices at once: a matrix in each lane of the vectors.
// May include: the standard library.
// Invariant: a matrix's results do not depend on what the others of its batch hold.
#pragma once
#include <cstdint>

namespace clew::kernels {

// Up to this many rows and columns; up to the second number where there are enough to fill lanes.
constexpr int64_t tiny_matrix = 8, most_side_by_side = 16, enough_side_by_side = 8;

// `count` matrices of n rows and columns, one behind the other, in rows or in columns.
template <class T> struct TinyStack {
  const T* data;
  int64_t n, count;
  bool columns;
};

template <class T> struct SideBySideLoops {
  // P A = L U, lu in columns, pivots and info as LAPACK has them.
  void (*factor)(const TinyStack<T>& a, T* lu, int32_t* pivots, int32_t* info);
  // A X = B, b and x (n, k) in rows; or the inverse, in columns, where b is null and k is n. Where
  // info is not 0, x is nan.
  void (*solve)(const TinyStack<T>& a, int64_t k, const T* b, T* x, int32_t* info);
  // The n pivots of each, the first with its sign changed if an odd number of rows was exchanged.
  void (*pivots)(const TinyStack<T>& a, T* to);
};

// The loops that this processor runs best.
template <class T> const SideBySideLoops<T>& side_by_side();

}  // namespace clew::kernels

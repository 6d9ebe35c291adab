// Decompositions of one small real matrix: loops of our own instead of LAPACK's calls.
// May include: the standard library.
// Invariant: matrices lie in columns; of what is only read, element (i, j) is a[i * row + j *
// column] where that is said.
#pragma once
#include <cstdint>

namespace clew::kernels {

// Up to this many rows and columns they are quicker than LAPACK.
constexpr int64_t small_eigh = 64, small_svdvals = 16, small_reflections = 48;
// From so many rows and columns on, LAPACK's reflections of singular vectors are slower.
constexpr int64_t large_svd_rows = 48;
// Doubles of room that a matrix needs, in lines that are filled up to whole vectors.
constexpr int64_t room_of_lines(int64_t count, int64_t length) { return count * (length + 8); }

// not_converged: LAPACK should try; outputs hold anything then.
enum class Outcome : uint8_t { done, not_finite, not_converged };

template <class T> struct DecompositionLoops {
  // Eigenvalues, ascending, and vectors (unless null) of the symmetric matrix whose lower triangle
  // is read, by its strides; room: 2 n + 4 lines of n.
  Outcome (*eigh)(int64_t n, const T* a, int64_t row, int64_t column, double* room, T* values,
                  T* vectors);
  // The n largest singular values of a (m, n), m >= n, read by its strides, descending; room: n + 1
  // lines of m.
  Outcome (*svdvals)(int64_t m, int64_t n, const T* a, int64_t row, int64_t column, double* room,
                     T* values);
  // Reflections of A = Q R below the diagonal of a (m, n), R above; room: n + 1 lines of m.
  void (*reflections)(int64_t m, int64_t n, T* a, T* tau, double* room);
  // The first n columns of the product of k reflections in their place; n + k lines of m.
  void (*product)(int64_t m, int64_t n, int64_t k, T* a, const T* tau, double* room);
  // c (m, n) becomes Q c or c Q, or the same with Q^T; k + the lines of c.
  void (*reflect)(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a,
                  const T* tau, T* c, double* room);
};

// The loops that this processor runs best.
template <class T> const DecompositionLoops<T>& decomposition_loops();

}  // namespace clew::kernels

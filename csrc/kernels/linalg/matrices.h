// Linear algebra of batches of matrices: small ones in loops of our own, others by LAPACK.
// May include: base, kernels/core/lapack.h.
// Invariant: inputs and outputs do not overlap; matrices of a batch lie one behind the other, each
// in rows unless it is said that it lies in columns.
#pragma once
#include <cstdint>

#include "kernels/core/lapack.h"

namespace clew::kernels {

template <class T> [[gnu::always_inline]] inline T conjugate_of(T x) {
  if constexpr (is_complex_v<T>)
    return T(x.real(), -x.imag());
  else
    return x;
}

// Up to this many rows and columns the loops below are quicker than a call.
constexpr int64_t small_matrix = 32;
// The same of triangular systems, whose right hand sides are often narrow.
constexpr int64_t small_triangle = 12;
// From so many rows on, and up to so many right hand sides, they are quicker than BLAS too.
constexpr int64_t narrow_rows = 96, narrow_columns = 8;

// Loops over one matrix, compiled once for each instruction set; matrices of n or m rows up to
// small_matrix.
template <class T> struct MatrixLoops {
  // P A = L U of a (n, n) in rows; `lu` in rows too. Returns the number of the first zero pivot.
  int (*lu)(int64_t n, const T* a, T* lu, int32_t* pivots);
  // A X = B from those factors; x (n, k) holds B.
  void (*lu_solve)(int64_t n, int64_t k, const T* lu, const int32_t* pivots, T* x);
  // L of A = L L^H, the lower triangle of `a` being read; returns the order of the first minor
  // that is not positive, up to which l is right.
  int (*cholesky)(int64_t n, const T* a, T* l);
  // A X = B, A (n, n) triangular; element (i, j) of it is a[i * row + j * column], conjugate if
  // `conjugate`. x (n, k) holds B.
  void (*triangular)(bool upper, bool unit, bool conjugate, int64_t n, int64_t k, const T* a,
                     int64_t row, int64_t column, T* x);
  // The same of any real A that lies in rows or in columns, for at most narrow_columns right hand
  // sides; room: as many times n.
  void (*narrow)(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t row,
                 int64_t column, T* x, T* room);
};

// A batch: matrices of m rows and n columns, in rows or in columns.
template <class T> struct Stack {
  const T* data;
  int64_t count, m, n;
  bool columns;
  const T* operator[](int64_t i) const { return data + i * m * n; }
};
// What a range of a batch is computed for.
struct Range {
  int64_t begin, end;
};

// lu and its pivots: lu in columns.
template <class T>
void lu_factor(Range of, const Stack<T>& a, T* lu, int32_t* pivots, int32_t* info);
// A X = B; a is square, b (n, k) and x in rows. Where info is not 0, x is nan.
template <class T>
void solve(Range of, const Stack<T>& a, const T* b, int64_t k, T* x, int32_t* info);
// x in columns.
template <class T> void inverse(Range of, const Stack<T>& a, T* x, int32_t* info);
// The product of the pivots and of the exchanges' signs; or the sign (phase) of that and the
// logarithm of its size.
template <class T> void determinant(Range of, const Stack<T>& a, T* det);
template <class T> void log_determinant(Range of, const Stack<T>& a, T* sign, lapack::Real<T>* log);
// From factors in columns, or in rows.
template <class T>
void lu_solve(Range of, const Stack<T>& lu, const int32_t* pivots, bool adjoint, int64_t k, T* x);
template <class T> void cholesky(Range of, const Stack<T>& a, bool upper, T* factor, int32_t* info);
template <class T>
void cholesky_solve(Range of, const Stack<T>& factor, bool upper, int64_t k, T* x);
// x (n, k) holds B.
template <class T>
void triangular(Range of, const Stack<T>& a, bool upper, bool unit, int64_t k, T* x);
// q (m, q_columns) and r (rows of r, n), both in columns; q may be null.
template <class T>
void qr(Range of, const Stack<T>& a, T* q, int64_t q_columns, T* r, int64_t r_rows, int32_t* info);
// h in columns.
template <class T> void reflections(Range of, const Stack<T>& a, T* h, T* tau, int32_t* info);
// q (m, n) in columns.
template <class T>
void reflection_product(Range of, const Stack<T>& h, const T* tau, int64_t k, T* q, int32_t* info);
// x (rows, width) in columns holds what is multiplied.
template <class T>
void reflect(Range of, const Stack<T>& h, const T* tau, int64_t k, bool left, bool adjoint,
             int64_t rows, int64_t width, T* x, int32_t* info);
// vectors in columns, or null.
template <class T>
void eigh(Range of, const Stack<T>& a, bool upper, lapack::Real<T>* values, T* vectors,
          int32_t* info);
template <class T>
void eig(Range of, const Stack<T>& a, lapack::Complex<T>* values, lapack::Complex<T>* vectors,
         int32_t* info);
// u (m, m or k) and vh (n or k, n) in columns; both null for values alone. info of a matrix with
// nan is `not_finite`; one with infinities has nan for results.
constexpr int32_t not_finite = -4;
template <class T>
void svd(Range of, const Stack<T>& a, bool full, T* u, lapack::Real<T>* s, T* vh, int32_t* info);
// ld in columns.
template <class T>
void ldl(Range of, const Stack<T>& a, bool hermitian, T* ld, int32_t* pivots, int32_t* info);
// x (n, k) in columns holds B.
template <class T>
void ldl_solve(Range of, const Stack<T>& ld, const int32_t* pivots, bool hermitian, int64_t k, T* x,
               int32_t* info);
// x (max(m, n), k) in columns holds B.
template <class T>
void least_squares(Range of, const Stack<T>& a, lapack::Driver driver, double rcond, int64_t k,
                   T* x, lapack::Real<T>* values, int64_t* rank, int32_t* info);

// Gives back what this thread keeps for large matrices.
void trim_matrix_scratch();

}  // namespace clew::kernels

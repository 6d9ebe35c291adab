// Linear systems of batches by triangular factors: LU, Cholesky, LDL; what goes to LAPACK.
// May include: base, kernels.
// Invariant: a matrix is computed by one thread; what a thread writes belongs to its matrices.
#include "kernels/linalg/matrices.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/instruction_set.h"
#include "kernels/linalg/side_by_side.h"
#include "kernels/linalg/spectra.h"
#include "kernels/linalg/stacks.h"

namespace clew::kernels {

using lapack::Real;

CLEW_IN_EACH_SET(extern const MatrixLoops<float> matrices_float;
                 extern const MatrixLoops<double> matrices_double;
                 extern const MatrixLoops<c64> matrices_c64;
                 extern const MatrixLoops<c128> matrices_c128;)

LocalScratch matrix_scratch;

namespace {

template <class T> const MatrixLoops<T>& matrix_loops() {
  return of_type<T>(CLEW_CHOSEN(matrices_float), CLEW_CHOSEN(matrices_double),
                    CLEW_CHOSEN(matrices_c64), CLEW_CHOSEN(matrices_c128));
}

LocalScratch second_scratch, pivot_scratch;

template <class T> const T* in_rows(const Stack<T>& a, int64_t i, LocalScratch& scratch) {
  if (!a.columns) return a[i];
  T* made = scratch.of<T>(a.m * a.n);
  load_rows(a, i, made);
  return made;
}
template <class T> bool small(const Stack<T>& a) { return a.m == a.n && a.n <= small_matrix; }

// Whether matrices are factored side by side; they are the range's.
template <class T> bool tiny(const Stack<T>& a) {
  return !is_complex_v<T> && a.m == a.n && a.n > 0 &&
         a.n <= (a.count < enough_side_by_side ? tiny_matrix : most_side_by_side);
}
template <class T> TinyStack<T> tiny_stack(Range of, const Stack<T>& a) {
  return {a[of.begin], a.n, of.end - of.begin, a.columns};
}

// The factors of one square matrix: in rows when small, else in columns.
template <class T> int factor(const Stack<T>& a, int64_t i, T* lu, int32_t* pivots) {
  if (small(a)) return matrix_loops<T>().lu(a.n, in_rows(a, i, second_scratch), lu, pivots);
  load_columns(a, i, lu);
  return lapack::getrf(a.n, a.n, lu, pivots);
}
// Exchanges rows of x (n, k), from the first pivot on or backward.
template <class T> void exchange(int64_t n, int64_t k, const int32_t* pivots, bool backward, T* x) {
  for (int64_t s = 0; s < n; ++s) {
    const int64_t i = backward ? n - 1 - s : s, other = pivots[i] - 1;
    if (other != i) std::swap_ranges(x + i * k, x + (i + 1) * k, x + other * k);
  }
}
// X of A X = B from those factors; x (n, k) in rows holds B.
template <class T> void solve_with(int64_t n, int64_t k, const T* lu, const int32_t* pivots, T* x) {
  if (n <= small_matrix) return matrix_loops<T>().lu_solve(n, k, lu, pivots, x);
  // Of x BLAS sees the transposed matrix: X^T U^T L^T = (P^T B)^T.
  exchange(n, k, pivots, false, x);
  lapack::trsm(false, 'T', true, k, n, lu, x);
  lapack::trsm(true, 'T', false, k, n, lu, x);
}

}  // namespace

template <class T>
void lu_factor(Range of, const Stack<T>& a, T* lu, int32_t* pivots, int32_t* info) {
  const int64_t size = a.m * a.n, k = std::min(a.m, a.n);
  if constexpr (!is_complex_v<T>) {
    if (tiny(a))
      return side_by_side<T>().factor(tiny_stack(of, a), lu + of.begin * size,
                                      pivots + of.begin * k, info + of.begin);
  }
  for (int64_t i = of.begin; i < of.end; ++i) {
    if (small(a)) {
      T* made = matrix_scratch.of<T>(size);
      info[i] = matrix_loops<T>().lu(a.n, in_rows(a, i, second_scratch), made, pivots + i * k);
      transpose(made, a.n, a.n, lu + i * size);
      continue;
    }
    load_columns(a, i, lu + i * size);
    info[i] = lapack::getrf(a.m, a.n, lu + i * size, pivots + i * k);
  }
}
template <class T>
void solve(Range of, const Stack<T>& a, const T* b, int64_t k, T* x, int32_t* info) {
  const int64_t n = a.n;
  if constexpr (!is_complex_v<T>) {
    if (tiny(a))
      return side_by_side<T>().solve(tiny_stack(of, a), k, b + of.begin * n * k,
                                     x + of.begin * n * k, info + of.begin);
  }
  for (int64_t i = of.begin; i < of.end; ++i) {
    T *lu = matrix_scratch.of<T>(n * n), *to = x + i * n * k;
    int32_t* pivots = pivot_scratch.of<int32_t>(n);
    info[i] = factor(a, i, lu, pivots);
    if (info[i]) {
      std::fill_n(to, n * k, nan_of<T>());
      continue;
    }
    std::copy_n(b + i * n * k, n * k, to);
    solve_with(n, k, lu, pivots, to);
  }
}
template <class T> void inverse(Range of, const Stack<T>& a, T* x, int32_t* info) {
  const int64_t n = a.n;
  if constexpr (!is_complex_v<T>) {
    if (tiny(a))
      return side_by_side<T>().solve(tiny_stack(of, a), n, nullptr, x + of.begin * n * n,
                                     info + of.begin);
  }
  for (int64_t i = of.begin; i < of.end; ++i) {
    T* to = x + i * n * n;
    int32_t* pivots = pivot_scratch.of<int32_t>(n);
    if (!small(a)) {
      info[i] = factor(a, i, to, pivots);
      if (info[i] == 0) info[i] = lapack::getri(n, to, pivots);
    } else {
      T *lu = matrix_scratch.of<T>(2 * n * n), *rows = lu + n * n;
      info[i] = factor(a, i, lu, pivots);
      std::fill_n(rows, n * n, T(0));
      for (int64_t j = 0; j < n; ++j) rows[j * n + j] = T(1);
      if (info[i] == 0) solve_with(n, n, lu, pivots, rows);
      transpose(rows, n, n, to);
    }
    if (info[i]) std::fill_n(to, n * n, nan_of<T>());
  }
}

namespace {

// f(number of the matrix, its pivots, their distance, whether an odd number of rows was exchanged).
template <class T, class F> void each_diagonal(Range of, const Stack<T>& a, F&& f) {
  const int64_t n = a.n;
  if constexpr (!is_complex_v<T>) {
    if (tiny(a)) {
      T* pivots = matrix_scratch.of<T>((of.end - of.begin) * n);
      side_by_side<T>().pivots(tiny_stack(of, a), pivots);
      for (int64_t i = of.begin; i < of.end; ++i) f(i, pivots + (i - of.begin) * n, 1, false);
      return;
    }
  }
  for (int64_t i = of.begin; i < of.end; ++i) {
    T* lu = matrix_scratch.of<T>(n * n);
    int32_t* pivots = pivot_scratch.of<int32_t>(n);
    if (small(a)) {
      matrix_loops<T>().lu(n, in_rows(a, i, second_scratch), lu, pivots);
    } else {
      load_columns(a, i, lu);
      lapack::getrf(n, n, lu, pivots);
    }
    bool odd = false;
    for (int64_t j = 0; j < n; ++j) odd ^= pivots[j] != j + 1;
    f(i, lu, n + 1, odd);
  }
}

}  // namespace

template <class T> void determinant(Range of, const Stack<T>& a, T* det) {
  each_diagonal(of, a, [&](int64_t i, const T* pivots, int64_t step, bool odd) {
    T product(1);
    for (int64_t j = 0; j < a.n; ++j) product *= pivots[j * step];
    det[i] = odd ? -product : product;
  });
}
template <class T> void log_determinant(Range of, const Stack<T>& a, T* sign, Real<T>* log) {
  each_diagonal(of, a, [&](int64_t i, const T* pivots, int64_t step, bool odd) {
    T phase(1);
    Real<T> sum(0);
    for (int64_t j = 0; j < a.n; ++j) {
      const T p = pivots[j * step];
      const Real<T> size = std::abs(p);
      if constexpr (is_complex_v<T>)
        phase *= size == 0 ? T(0) : p / size;
      else
        phase *= p > 0 ? T(1) : p < 0 ? T(-1) : T(0);
      sum += std::log(size);
    }
    sign[i] = odd ? -phase : phase;
    log[i] = sum;
  });
}

namespace {

// A triangular system with few right hand sides, for which BLAS takes as long as for many; false
// where it is not one.
template <class T>
bool solve_narrow(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t row,
                  int64_t column, T* x) {
  if (is_complex_v<T> || n < narrow_rows || k > narrow_columns) return false;
  matrix_loops<T>().narrow(upper, unit, n, k, a, row, column, x,
                           second_scratch.of<T>(narrow_columns * n));
  return true;
}

}  // namespace

template <class T>
void lu_solve(Range of, const Stack<T>& lu, const int32_t* pivots, bool adjoint, int64_t k, T* x) {
  const int64_t n = lu.n;
  // Element (i, j) is at i * row + j * column.
  const int64_t row = lu.columns ? 1 : n, column = lu.columns ? n : 1;
  for (int64_t i = of.begin; i < of.end; ++i) {
    T* to = x + i * n * k;
    const int32_t* p = pivots + i * n;
    auto part = [&](bool upper) {
      if (n <= small_triangle) {
        if (adjoint)
          matrix_loops<T>().triangular(!upper, !upper, true, n, k, lu[i], column, row, to);
        else
          matrix_loops<T>().triangular(upper, !upper, false, n, k, lu[i], row, column, to);
        return;
      }
      if (solve_narrow(upper != adjoint, !upper, n, k, lu[i], adjoint ? column : row,
                       adjoint ? row : column, to))
        return;
      // X^T A^T = B^T; what lies in columns is A, what lies in rows is A^T.
      const bool seen_upper = upper == lu.columns;
      const T* factors = lu[i];
      char op = lu.columns ? 'T' : 'N';
      if (adjoint) op = lu.columns ? 'N' : 'T';
      if (adjoint && is_complex_v<T>) {
        // X^T conj(A) = B^T is the conjugate of conj(X)^T A = conj(B)^T.
        for (int64_t c = 0; c < n * k; ++c) to[c] = conjugate_of(to[c]);
      }
      lapack::trsm(seen_upper, op, !upper, k, n, factors, to);
      if (adjoint && is_complex_v<T>) {
        for (int64_t c = 0; c < n * k; ++c) to[c] = conjugate_of(to[c]);
      }
    };
    if (adjoint) {
      part(true);
      part(false);
      exchange(n, k, p, true, to);
    } else {
      exchange(n, k, p, false, to);
      part(false);
      part(true);
    }
  }
}

template <class T>
void cholesky(Range of, const Stack<T>& a, bool upper, T* factor, int32_t* info) {
  const int64_t n = a.n;
  for (int64_t i = of.begin; i < of.end; ++i) {
    T* to = factor + i * n * n;
    if (n <= small_matrix) {
      // The upper triangle of A is the lower one of the transposed, conjugate matrix.
      const T* rows = a[i];
      if (upper != a.columns) {
        T* made = matrix_scratch.of<T>(n * n);
        transpose(a[i], n, n, made);
        rows = made;
      }
      if (is_complex_v<T> && upper) {
        T* made = matrix_scratch.of<T>(n * n);
        for (int64_t c = 0; c < n * n; ++c) made[c] = conjugate_of(rows[c]);
        rows = made;
      }
      info[i] = matrix_loops<T>().cholesky(n, rows, to);
      if (upper) {
        T* made = matrix_scratch.of<T>(n * n);
        transpose(to, n, n, made);
        for (int64_t c = 0; c < n * n; ++c) to[c] = conjugate_of(made[c]);
      }
      continue;
    }
    // LAPACK sees the transposed matrix, and its factors are the transposed ones.
    load_rows(a, i, to);
    info[i] = lapack::potrf(!upper, n, to);
    // Some libraries go on with nan.
    for (int64_t j = 0; j < n && info[i] == 0; ++j) {
      if (is_nan(to[j * (n + 1)])) info[i] = static_cast<int32_t>(j + 1);
    }
    for (int64_t r = 0; r < n; ++r) {
      if (upper)
        std::fill_n(to + r * n, r, T(0));
      else
        std::fill_n(to + r * n + r + 1, n - r - 1, T(0));
    }
  }
}

namespace {

template <class T>
void solve_triangle(const Stack<T>& a, int64_t i, bool upper, bool unit, bool adjoint, int64_t k,
                    T* x) {
  const int64_t n = a.n, row = a.columns ? 1 : n, column = a.columns ? n : 1;
  bool zero = false;
  for (int64_t j = 0; !unit && j < n; ++j) zero |= a[i][j * (n + 1)] == T(0);
  if (zero || n <= small_triangle) {
    // Division by a zero on the diagonal gives infinities and nan here; BLAS promises nothing.
    if (adjoint)
      matrix_loops<T>().triangular(!upper, unit, true, n, k, a[i], column, row, x);
    else
      matrix_loops<T>().triangular(upper, unit, false, n, k, a[i], row, column, x);
    return;
  }
  if (solve_narrow(upper != adjoint, unit, n, k, a[i], adjoint ? column : row,
                   adjoint ? row : column, x))
    return;
  // BLAS sees X^T op(A)^T = B^T.
  const bool both = adjoint && is_complex_v<T>;
  if (both) {
    for (int64_t c = 0; c < n * k; ++c) x[c] = conjugate_of(x[c]);
  }
  lapack::trsm(upper == a.columns, adjoint == a.columns ? 'N' : 'T', unit, k, n, a[i], x);
  if (both) {
    for (int64_t c = 0; c < n * k; ++c) x[c] = conjugate_of(x[c]);
  }
}

}  // namespace

template <class T>
void cholesky_solve(Range of, const Stack<T>& factor, bool upper, int64_t k, T* x) {
  for (int64_t i = of.begin; i < of.end; ++i) {
    T* to = x + i * factor.n * k;
    solve_triangle(factor, i, upper, false, upper, k, to);
    solve_triangle(factor, i, upper, false, !upper, k, to);
  }
}
template <class T>
void triangular(Range of, const Stack<T>& a, bool upper, bool unit, int64_t k, T* x) {
  for (int64_t i = of.begin; i < of.end; ++i)
    solve_triangle(a, i, upper, unit, false, k, x + i * a.n * k);
}

template <class T>
void ldl(Range of, const Stack<T>& a, bool hermitian, T* ld, int32_t* pivots, int32_t* info) {
  const int64_t n = a.n;
  for (int64_t i = of.begin; i < of.end; ++i) {
    T* to = ld + i * n * n;
    load_columns(a, i, to);
    info[i] = lapack::sytrf(hermitian, n, to, pivots + i * n);
    for (int64_t j = 1; j < n; ++j) std::fill_n(to + j * n, j, T(0));
  }
}
template <class T>
void ldl_solve(Range of, const Stack<T>& ld, const int32_t* pivots, bool hermitian, int64_t k, T* x,
               int32_t* info) {
  const int64_t n = ld.n;
  for (int64_t i = of.begin; i < of.end; ++i) {
    const T* seen = ld[i];
    if (!ld.columns) {
      T* made = matrix_scratch.of<T>(n * n);
      load_columns(ld, i, made);
      seen = made;
    }
    info[i] = lapack::sytrs(hermitian, n, k, seen, pivots + i * n, x + i * n * k);
  }
}

void trim_matrix_scratch() {
  for (const LocalScratch* s : {&matrix_scratch, &second_scratch, &pivot_scratch}) s->trim(1);
  trim_reflections_room();
  lapack::trim_scratch();
  trim_spectra_scratch();
}

#define CLEW_INSTANTIATE(T)                                                          \
  template void lu_factor(Range, const Stack<T>&, T*, int32_t*, int32_t*);           \
  template void solve(Range, const Stack<T>&, const T*, int64_t, T*, int32_t*);      \
  template void inverse(Range, const Stack<T>&, T*, int32_t*);                       \
  template void determinant(Range, const Stack<T>&, T*);                             \
  template void log_determinant(Range, const Stack<T>&, T*, Real<T>*);               \
  template void lu_solve(Range, const Stack<T>&, const int32_t*, bool, int64_t, T*); \
  template void cholesky(Range, const Stack<T>&, bool, T*, int32_t*);                \
  template void cholesky_solve(Range, const Stack<T>&, bool, int64_t, T*);           \
  template void triangular(Range, const Stack<T>&, bool, bool, int64_t, T*);         \
  template void ldl(Range, const Stack<T>&, bool, T*, int32_t*, int32_t*);           \
  template void ldl_solve(Range, const Stack<T>&, const int32_t*, bool, int64_t, T*, int32_t*);
CLEW_INSTANTIATE(float)
CLEW_INSTANTIATE(double)
CLEW_INSTANTIATE(c64)
CLEW_INSTANTIATE(c128)
#undef CLEW_INSTANTIATE

}  // namespace clew::kernels

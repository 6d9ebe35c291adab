// Linear algebra of batches: which matrices go to LAPACK, and how they are laid out for it.
// May include: base, kernels.
// Invariant: a matrix is computed by one thread; what a thread writes belongs to its matrices.
#include "kernels/linalg/matrices.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/scratch.h"
#include "kernels/core/instruction_set.h"
#include "kernels/linalg/decompositions.h"
#include "kernels/linalg/reflections.h"
#include "kernels/linalg/side_by_side.h"
#include "kernels/linalg/spectra.h"

namespace clew::kernels {

using lapack::Complex;
using lapack::Real;

CLEW_IN_EACH_SET(extern const MatrixLoops<float> matrices_float;
                 extern const MatrixLoops<double> matrices_double;
                 extern const MatrixLoops<c64> matrices_c64;
                 extern const MatrixLoops<c128> matrices_c128;)

namespace {

template <class T> const MatrixLoops<T>& matrix_loops() {
  return of_type<T>(CLEW_CHOSEN(matrices_float), CLEW_CHOSEN(matrices_double),
                    CLEW_CHOSEN(matrices_c64), CLEW_CHOSEN(matrices_c128));
}

LocalScratch matrix_scratch, second_scratch, pivot_scratch, reflections_room;

template <class T> bool is_nan(T x) { return x != x; }
template <class T> bool is_finite(T x) {
  if constexpr (is_complex_v<T>)
    return std::isfinite(x.real()) && std::isfinite(x.imag());
  else
    return std::isfinite(x);
}

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

template <class T> T nan_of() { return T(std::numeric_limits<Real<T>>::quiet_NaN()); }

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

namespace {

// Reflections of one matrix: small real ones in loops of our own.
template <class T> bool few(int64_t m, int64_t n) {
  return !is_complex_v<T> && std::max(m, n) <= small_reflections;
}
double* room_for(int64_t lines, int64_t length) {
  return reflections_room.of<double>(room_of_lines(lines, length));
}
template <class T> int geqrf(int64_t m, int64_t n, T* a, T* tau) {
  if constexpr (is_complex_v<T>) {
    return lapack::geqrf(m, n, a, tau);
  } else {
    if (few<T>(m, n))
      decomposition_loops<T>().reflections(m, n, a, tau, room_for(n + 1, m));
    else
      factor_in_blocks(m, n, a, tau);
    return 0;
  }
}
template <class T> int orgqr(int64_t m, int64_t n, int64_t k, T* a, const T* tau) {
  if constexpr (is_complex_v<T>) {
    return lapack::orgqr(m, n, k, a, tau);
  } else {
    if (few<T>(m, n))
      decomposition_loops<T>().product(m, n, k, a, tau, room_for(n + k, m));
    else
      product_in_blocks(m, n, k, a, tau);
    return 0;
  }
}
template <class T>
int ormqr(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a, const T* tau,
          T* c) {
  if constexpr (is_complex_v<T>) {
    return lapack::ormqr(left, adjoint, m, n, k, a, tau, c);
  } else {
    const int64_t length = left ? m : n, lines = left ? n : m;
    if (few<T>(m, n))
      decomposition_loops<T>().reflect(left, adjoint, m, n, k, a, tau, c,
                                       room_for(k + lines, length));
    else
      reflect_in_blocks(left, adjoint, m, n, k, a, length, tau, c, m);
    return 0;
  }
}

}  // namespace

template <class T>
void qr(Range of, const Stack<T>& a, T* q, int64_t q_columns, T* r, int64_t r_rows, int32_t* info) {
  const int64_t m = a.m, n = a.n, k = std::min(m, n);
  for (int64_t i = of.begin; i < of.end; ++i) {
    // Room for all columns of Q as well.
    T *h = matrix_scratch.of<T>(m * std::max(n, q_columns) + k),
      *tau = h + m * std::max(n, q_columns);
    load_columns(a, i, h);
    info[i] = geqrf(m, n, h, tau);
    T* to = r + i * r_rows * n;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t kept = std::min(j + 1, r_rows);
      std::copy_n(h + j * m, kept, to + j * r_rows);
      std::fill_n(to + j * r_rows + kept, r_rows - kept, T(0));
    }
    if (!q || info[i]) continue;
    std::copy_n(h, m * std::min(n, q_columns), q + i * m * q_columns);
    if (q_columns > n) std::fill_n(q + i * m * q_columns + m * n, m * (q_columns - n), T(0));
    info[i] = orgqr(m, q_columns, k, q + i * m * q_columns, tau);
  }
}
template <class T> void reflections(Range of, const Stack<T>& a, T* h, T* tau, int32_t* info) {
  for (int64_t i = of.begin; i < of.end; ++i) {
    T* to = h + i * a.m * a.n;
    load_columns(a, i, to);
    info[i] = geqrf(a.m, a.n, to, tau + i * std::min(a.m, a.n));
  }
}
template <class T>
void reflection_product(Range of, const Stack<T>& h, const T* tau, int64_t k, T* q, int32_t* info) {
  for (int64_t i = of.begin; i < of.end; ++i) {
    T* to = q + i * h.m * h.n;
    load_columns(h, i, to);
    info[i] = orgqr(h.m, h.n, k, to, tau + i * k);
  }
}
template <class T>
void reflect(Range of, const Stack<T>& h, const T* tau, int64_t k, bool left, bool adjoint,
             int64_t rows, int64_t width, T* x, int32_t* info) {
  for (int64_t i = of.begin; i < of.end; ++i) {
    const T* seen = h[i];
    if (!h.columns) {
      T* made = matrix_scratch.of<T>(h.m * h.n);
      load_columns(h, i, made);
      seen = made;
    }
    info[i] = ormqr(left, adjoint, rows, width, k, seen, tau + i * k, x + i * rows * width);
  }
}

namespace {

enum class Kind : uint8_t { finite, infinite, with_nan };
template <class T> Kind kind_of(const T* x, int64_t n) {
  // A sum of zeros: x * 0 is nan where x is not finite.
  T sum(0);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (is_complex_v<T>)
      sum += T(x[i].real() * 0, x[i].imag() * 0);
    else
      sum += x[i] * 0;
  }
  if (!is_nan(sum)) return Kind::finite;
  for (int64_t i = 0; i < n; ++i) {
    if (is_nan(x[i])) return Kind::with_nan;
  }
  return Kind::infinite;
}

}  // namespace

template <class T>
void eigh(Range of, const Stack<T>& a, bool upper, Real<T>* values, T* vectors, int32_t* info) {
  const int64_t n = a.n;
  for (int64_t i = of.begin; i < of.end; ++i) {
    T* to = vectors ? vectors + i * n * n : matrix_scratch.of<T>(n * n);
    if constexpr (!is_complex_v<T>) {
      // The lower triangle of the transposed matrix is the upper one.
      const bool across = a.columns != upper;
      if (n <= small_eigh && decomposition_loops<T>().eigh(
                                 n, a[i], across ? 1 : n, across ? n : 1, room_for(2 * n + 4, n),
                                 values + i * n, vectors ? to : nullptr) == Outcome::done) {
        info[i] = 0;
        continue;
      }
    }
    // Of a real matrix in rows LAPACK may see the transposed one, whose other triangle counts.
    // The lower triangle is read where there is a choice.
    const bool turned = !is_complex_v<T> && upper, read_upper = upper && !turned;
    T* copy = vectors && !is_complex_v<T> ? matrix_scratch.of<T>(n * n) : to;
    if (turned)
      load_rows(a, i, copy);
    else
      load_columns(a, i, copy);
    Kind kind = Kind::finite;
    for (int64_t j = 0; j < n && kind != Kind::with_nan; ++j) {
      kind = std::max(kind,
                      read_upper ? kind_of(copy + j * n, j + 1) : kind_of(copy + j * n + j, n - j));
    }
    if (kind != Kind::finite) {
      // With them LAPACK may not end.
      info[i] = kind == Kind::with_nan ? static_cast<int32_t>(n) : 0;
      std::fill_n(values + i * n, n, nan_of<Real<T>>());
      if (vectors) std::fill_n(to, n * n, nan_of<T>());
      continue;
    }
    if constexpr (!is_complex_v<T>) {
      if (vectors) {
        if (of_usual_size(copy, n * n)) {
          info[i] = large_eigh(n, copy, values + i * n, to);
          continue;
        }
        std::copy_n(copy, n * n, to);
      }
    }
    info[i] = lapack::syevd(vectors != nullptr, read_upper, n, to, values + i * n);
  }
}
template <class T>
void eig(Range of, const Stack<T>& a, Complex<T>* values, Complex<T>* vectors, int32_t* info) {
  const int64_t n = a.n;
  for (int64_t i = of.begin; i < of.end; ++i) {
    T* copy = matrix_scratch.of<T>(n * n);
    load_columns(a, i, copy);
    info[i] = lapack::geev(n, copy, values + i * n, vectors ? vectors + i * n * n : nullptr);
  }
}
namespace {

// Values of one matrix in loops of our own; false when LAPACK must find them.
template <class T> bool small_svdvals_of(const Stack<T>& a, int64_t i, Real<T>* s) {
  if constexpr (is_complex_v<T>) {
    return false;
  } else {
    const bool wide = a.m < a.n;
    const int64_t least = std::min(a.m, a.n), most = std::max(a.m, a.n);
    if (least > small_svdvals || most > small_eigh) return false;
    // Of a wide matrix the transposed one is looked at.
    const int64_t row = a.columns ? 1 : a.n, column = a.columns ? a.m : 1;
    return decomposition_loops<T>().svdvals(most, least, a[i], wide ? column : row,
                                            wide ? row : column, room_for(least + 1, most),
                                            s) == Outcome::done;
  }
}

// Vectors of one matrix that is not small, and near a square: of others LAPACK factors first.
template <class T>
bool svd_in_blocks(int64_t m, int64_t n, bool full, T* a, Real<T>* s, T* u, T* vh, int32_t* info) {
  if constexpr (is_complex_v<T>) {
    return false;
  } else {
    const int64_t least = std::min(m, n), most = std::max(m, n);
    if (least < large_svd_rows || most > 11 * least / 6 || !of_usual_size(a, m * n)) return false;
    *info = large_svd(full, m, n, a, s, u, vh);
    return true;
  }
}

}  // namespace

template <class T>
void svd(Range of, const Stack<T>& a, bool full, T* u, Real<T>* s, T* vh, int32_t* info) {
  const int64_t m = a.m, n = a.n, k = std::min(m, n);
  const int64_t us = m * (full ? m : k), vs = n * (full ? n : k);
  const bool vectors = u || vh;  // one of them may have no elements
  for (int64_t i = of.begin; i < of.end; ++i) {
    if (!vectors && k > 0 && small_svdvals_of(a, i, s + i * k)) {
      info[i] = 0;
      continue;
    }
    T* copy = matrix_scratch.of<T>(m * n + 1);
    load_columns(a, i, copy);
    const Kind kind = kind_of(copy, m * n);
    if (kind != Kind::finite) {
      info[i] = kind == Kind::with_nan ? not_finite : 0;
      std::fill_n(s + i * k, k, nan_of<Real<T>>());
      if (vectors) {
        std::fill_n(u + i * us, us, nan_of<T>());
        std::fill_n(vh + i * vs, vs, nan_of<T>());
      }
      continue;
    }
    if (k == 0 && vectors) {
      info[i] = 0;
      std::fill_n(u + i * us, us, T(0));
      std::fill_n(vh + i * vs, vs, T(0));
      for (int64_t j = 0; full && j < m; ++j) u[i * us + j * (m + 1)] = T(1);
      for (int64_t j = 0; full && j < n; ++j) vh[i * vs + j * (n + 1)] = T(1);
    } else if (vectors) {
      T *left = u + i * us, *right = vh + i * vs;
      if (!svd_in_blocks(m, n, full, copy, s + i * k, left, right, info + i))
        info[i] = lapack::gesdd(full ? 'A' : 'S', m, n, copy, s + i * k, left, right);
    } else {
      info[i] = lapack::gesdd<T>('N', m, n, copy, s + i * k, copy, copy);
    }
  }
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
template <class T>
void least_squares(Range of, const Stack<T>& a, lapack::Driver driver, double rcond, int64_t k,
                   T* x, Real<T>* values, int64_t* rank, int32_t* info) {
  using lapack::Driver;
  const int64_t m = a.m, n = a.n, least = std::min(m, n), rows = std::max(m, n);
  for (int64_t i = of.begin; i < of.end; ++i) {
    T *copy = matrix_scratch.of<T>(m * n), *to = x + i * rows * k;
    Real<T>* s = values + i * least;
    load_columns(a, i, copy);
    const Kind kind = std::max(kind_of(copy, m * n), kind_of(to, m * k));
    const bool iterates = driver == Driver::gelsd || driver == Driver::gelss;
    if (kind == Kind::with_nan || (kind == Kind::infinite && driver == Driver::gelsd)) {
      info[i] = not_finite;
      continue;
    }
    if (kind == Kind::infinite && iterates) {
      info[i] = 0;
      rank[i] = 0;
      std::fill_n(to, rows * k, nan_of<T>());
      std::fill_n(s, least, nan_of<Real<T>>());
      continue;
    }
    info[i] =
        lapack::least_squares(driver, m, n, k, copy, to, static_cast<Real<T>>(rcond), s, rank + i);
  }
}

void trim_matrix_scratch() {
  for (const LocalScratch* s :
       {&matrix_scratch, &second_scratch, &pivot_scratch, &reflections_room})
    s->trim(1);
  lapack::trim_scratch();
  trim_spectra_scratch();
}

#define CLEW_INSTANTIATE(T)                                                                      \
  template void lu_factor(Range, const Stack<T>&, T*, int32_t*, int32_t*);                       \
  template void solve(Range, const Stack<T>&, const T*, int64_t, T*, int32_t*);                  \
  template void inverse(Range, const Stack<T>&, T*, int32_t*);                                   \
  template void determinant(Range, const Stack<T>&, T*);                                         \
  template void log_determinant(Range, const Stack<T>&, T*, Real<T>*);                           \
  template void lu_solve(Range, const Stack<T>&, const int32_t*, bool, int64_t, T*);             \
  template void cholesky(Range, const Stack<T>&, bool, T*, int32_t*);                            \
  template void cholesky_solve(Range, const Stack<T>&, bool, int64_t, T*);                       \
  template void triangular(Range, const Stack<T>&, bool, bool, int64_t, T*);                     \
  template void qr(Range, const Stack<T>&, T*, int64_t, T*, int64_t, int32_t*);                  \
  template void reflections(Range, const Stack<T>&, T*, T*, int32_t*);                           \
  template void reflection_product(Range, const Stack<T>&, const T*, int64_t, T*, int32_t*);     \
  template void reflect(Range, const Stack<T>&, const T*, int64_t, bool, bool, int64_t, int64_t, \
                        T*, int32_t*);                                                           \
  template void eigh(Range, const Stack<T>&, bool, Real<T>*, T*, int32_t*);                      \
  template void eig(Range, const Stack<T>&, Complex<T>*, Complex<T>*, int32_t*);                 \
  template void svd(Range, const Stack<T>&, bool, T*, Real<T>*, T*, int32_t*);                   \
  template void ldl(Range, const Stack<T>&, bool, T*, int32_t*, int32_t*);                       \
  template void ldl_solve(Range, const Stack<T>&, const int32_t*, bool, int64_t, T*, int32_t*);  \
  template void least_squares(Range, const Stack<T>&, lapack::Driver, double, int64_t, T*,       \
                              Real<T>*, int64_t*, int32_t*);
CLEW_INSTANTIATE(float)
CLEW_INSTANTIATE(double)
CLEW_INSTANTIATE(c64)
CLEW_INSTANTIATE(c128)
#undef CLEW_INSTANTIATE

}  // namespace clew::kernels

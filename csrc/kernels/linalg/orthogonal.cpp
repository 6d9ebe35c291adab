// Matrices of batches by orthogonal transformations: QR, eigenvalues, SVD, least squares.
// May include: base, kernels.
// Invariant: a matrix is computed by one thread; what a thread writes belongs to its matrices.
#include <algorithm>

#include "kernels/linalg/decompositions.h"
#include "kernels/linalg/reflections.h"
#include "kernels/linalg/spectra.h"
#include "kernels/linalg/stacks.h"

namespace clew::kernels {

using lapack::Complex;
using lapack::Real;

static LocalScratch reflections_room;

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

void trim_reflections_room() { reflections_room.trim(1); }

#define CLEW_INSTANTIATE(T)                                                                      \
  template void qr(Range, const Stack<T>&, T*, int64_t, T*, int64_t, int32_t*);                  \
  template void reflections(Range, const Stack<T>&, T*, T*, int32_t*);                           \
  template void reflection_product(Range, const Stack<T>&, const T*, int64_t, T*, int32_t*);     \
  template void reflect(Range, const Stack<T>&, const T*, int64_t, bool, bool, int64_t, int64_t, \
                        T*, int32_t*);                                                           \
  template void eigh(Range, const Stack<T>&, bool, Real<T>*, T*, int32_t*);                      \
  template void eig(Range, const Stack<T>&, Complex<T>*, Complex<T>*, int32_t*);                 \
  template void svd(Range, const Stack<T>&, bool, T*, Real<T>*, T*, int32_t*);                   \
  template void least_squares(Range, const Stack<T>&, lapack::Driver, double, int64_t, T*,       \
                              Real<T>*, int64_t*, int32_t*);
CLEW_INSTANTIATE(float)
CLEW_INSTANTIATE(double)
CLEW_INSTANTIATE(c64)
CLEW_INSTANTIATE(c128)
#undef CLEW_INSTANTIATE

}  // namespace clew::kernels

// Factorizations and triangular systems of small matrices, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#if defined(__GNUC__) && !defined(__clang__)
// A product is rounded before it is subtracted, as in LAPACK: the second row of a singular matrix
// of small integers then becomes zero exactly.
#pragma GCC optimize("fp-contract=off")
#endif
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/linalg/matrices.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace clew::kernels::CLEW_ISA {
namespace {

using lapack::Real;

// LAPACK's size of a number, by which pivots are chosen.
template <class T> [[gnu::always_inline]] inline Real<T> size_of(T x) {
  if constexpr (is_complex_v<T>)
    return std::fabs(x.real()) + std::fabs(x.imag());
  else
    return std::fabs(x);
}
// to -= f * from over W elements; complex products as such, without a search for nan.
template <int W, class T>
[[gnu::always_inline]] inline void subtract(T* __restrict to, T f, const T* __restrict from) {
  if constexpr (is_complex_v<T>) {
    using R = Real<T>;
    const R re = f.real(), im = f.imag();
    R* t = reinterpret_cast<R*>(to);
    const R* s = reinterpret_cast<const R*>(from);
    for (int c = 0; c < W; ++c) {
      const R x = s[2 * c], y = s[2 * c + 1];
      t[2 * c] -= re * x - im * y;
      t[2 * c + 1] -= re * y + im * x;
    }
  } else {
    for (int c = 0; c < W; ++c) to[c] -= f * from[c];
  }
}
// The same for a number of elements that is not known.
template <class T>
[[gnu::always_inline]] inline void subtract(int64_t n, T* __restrict to, T f,
                                            const T* __restrict from) {
  int64_t c = 0;
  for (; c + 8 <= n; c += 8) subtract<8>(to + c, f, from + c);
  if (c + 4 <= n) {
    subtract<4>(to + c, f, from + c);
    c += 4;
  }
  for (; c < n; ++c) subtract<1>(to + c, f, from + c);
}
template <class T> [[gnu::always_inline]] inline T product(T a, T b) {
  if constexpr (is_complex_v<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else
    return a * b;
}

// Rows have W elements of room, zeros behind the n that count.
template <int W, bool Exact, class T>
int lu_in(int64_t given, const T* __restrict a, T* __restrict lu, int32_t* __restrict pivots) {
  const int64_t n = Exact ? W : given;
  alignas(64) T rows[W * W];
  alignas(64) T tail[W];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) rows[i * W + j] = a[i * n + j];
    for (int64_t j = n; j < W; ++j) rows[i * W + j] = T(0);
  }
  int zero = 0;
  for (int64_t j = 0; j < n; ++j) {
    int64_t top = j;
    Real<T> most = size_of(rows[j * W + j]);
    for (int64_t i = j + 1; i < n; ++i) {
      const Real<T> s = size_of(rows[i * W + j]);
      const bool more = s > most;
      most = more ? s : most;
      top = more ? i : top;
    }
    pivots[j] = static_cast<int32_t>(top + 1);
    // Short rows are swapped even with themselves: the branch would be mispredicted often.
    if (W <= 8 || top != j) {
      T kept[W];
      std::copy_n(rows + j * W, W, kept);
      std::copy_n(rows + top * W, W, rows + j * W);
      std::copy_n(kept, W, rows + top * W);
    }
    const T pivot = rows[j * W + j];
    if (pivot == T(0)) {
      if (!zero) zero = static_cast<int>(j + 1);
      continue;
    }
    for (int c = 0; c < W; ++c) tail[c] = c > j ? rows[j * W + c] : T(0);
    const T inverse = T(1) / pivot;
    const bool safe = std::isnormal(size_of(inverse));
    for (int64_t i = j + 1; i < n; ++i) {
      T* row = rows + i * W;
      const T f = safe ? product(row[j], inverse) : row[j] / pivot;
      subtract<W>(row, f, tail);
      row[j] = f;
    }
  }
  for (int64_t i = 0; i < n; ++i) std::copy_n(rows + i * W, n, lu + i * n);
  return zero;
}
template <class T> int lu(int64_t n, const T* a, T* to, int32_t* pivots) {
  if constexpr (is_complex_v<T>) {  // real ones are done side by side
    if (n == 4) return lu_in<4, true>(n, a, to, pivots);
    if (n == 8) return lu_in<8, true>(n, a, to, pivots);
    if (n < 4) return lu_in<4, false>(n, a, to, pivots);
    if (n < 8) return lu_in<8, false>(n, a, to, pivots);
  }
  if (n == 16) return lu_in<16, true>(n, a, to, pivots);
  if (n < 16) return lu_in<16, false>(n, a, to, pivots);
  return lu_in<32, false>(n, a, to, pivots);
}

template <class T>
void triangular(bool upper, bool unit, bool conjugate, int64_t n, int64_t k, const T* a,
                int64_t row, int64_t column, T* x) {
  for (int64_t s = 0; s < n; ++s) {
    const int64_t i = upper ? n - 1 - s : s;
    T* to = x + i * k;
    for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); ++j) {
      const T f = a[i * row + j * column];
      subtract(k, to, conjugate ? conjugate_of(f) : f, x + j * k);
    }
    if (unit) continue;
    T d = a[i * row + i * column];
    if (conjugate) d = conjugate_of(d);
    for (int64_t c = 0; c < k; ++c) to[c] /= d;
  }
}
template <class T> void lu_solve(int64_t n, int64_t k, const T* lu, const int32_t* pivots, T* x) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t other = pivots[i] - 1;
    if (other != i) std::swap_ranges(x + i * k, x + (i + 1) * k, x + other * k);
  }
  triangular(false, true, false, n, k, lu, n, 1, x);
  triangular(true, false, false, n, k, lu, n, 1, x);
}

template <int W, class T> int cholesky_in(int64_t n, const T* a, T* l) {
  alignas(64) T rows[W * W];
  alignas(64) T across[W];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) rows[i * W + j] = j <= i ? a[i * n + j] : T(0);
    for (int64_t j = n; j < W; ++j) rows[i * W + j] = T(0);
  }
  int order = 0;
  for (int64_t j = 0; j < n; ++j) {
    Real<T> pivot;
    if constexpr (is_complex_v<T>)
      pivot = rows[j * W + j].real();
    else
      pivot = rows[j * W + j];
    if (!(pivot > 0)) {
      rows[j * W + j] = pivot;
      order = static_cast<int>(j + 1);
      break;
    }
    pivot = std::sqrt(pivot);
    rows[j * W + j] = pivot;
    for (int c = 0; c < W; ++c) across[c] = T(0);
    for (int64_t i = j + 1; i < n; ++i) {
      const T f = rows[i * W + j] / pivot;
      rows[i * W + j] = f;
      across[i] = conjugate_of(f);
    }
    for (int64_t i = j + 1; i < n; ++i) subtract<W>(rows + i * W, rows[i * W + j], across);
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) l[i * n + j] = j <= i ? rows[i * W + j] : T(0);
  }
  // What comes after the minor that is not positive stays as it was.
  for (int64_t i = order; order && i < n; ++i)
    std::copy(a + i * n + order - 1, a + i * n + i + 1, l + i * n + order - 1);
  return order;
}
template <class T> int cholesky(int64_t n, const T* a, T* l) {
  if (n <= 4) return cholesky_in<4>(n, a, l);
  if (n <= 8) return cholesky_in<8>(n, a, l);
  if (n <= 16) return cholesky_in<16>(n, a, l);
  return cholesky_in<32>(n, a, l);
}

// --- large triangles, few right hand sides ---

// Vectors are passed between functions of this file only, all of which are inlined.
template <class T> struct VectorOf {
  typedef T type __attribute__((vector_size(64)));  // NOLINT: an alias cannot have it
};
template <class T> using Vector = typename VectorOf<T>::type;
template <class T> constexpr int64_t lanes = 64 / sizeof(T);
template <class T> [[gnu::always_inline]] inline Vector<T> load(const T* from) {
  Vector<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// Of R rows of A, contiguous, the sums of their elements from..to times each of the K columns,
// which are taken from those columns' elements `at`...
template <int R, int K, class T>
[[gnu::always_inline]] inline void subtract_dots(const T* a, int64_t row, int64_t from, int64_t to,
                                                 T* x, int64_t n, int64_t at) {
  Vector<T> sums[R][K] = {};
  int64_t j = from;
  for (; j + lanes<T> <= to; j += lanes<T>) {
    Vector<T> column[K];
    for (int c = 0; c < K; ++c) column[c] = load(x + c * n + j);
    for (int r = 0; r < R; ++r) {
      const Vector<T> v = load(a + r * row + j);
      for (int c = 0; c < K; ++c) sums[r][c] += v * column[c];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < K; ++c) {
      T sum(0);
      for (int64_t k = j; k < to; ++k) sum += a[r * row + k] * x[c * n + k];
      for (int64_t l = 0; l < lanes<T>; ++l) sum += sums[r][c][l];
      x[c * n + at + r] -= sum;
    }
  }
}
// From R vectors of each of the K columns: those columns' elements at.. times `size` columns of A,
// contiguous.
template <int R, int K, class T>
[[gnu::always_inline]] inline void subtract_columns(const T* a, int64_t column, int64_t i, T* x,
                                                    int64_t n, int64_t at, int64_t size) {
  Vector<T> kept[R][K];
  for (int c = 0; c < K; ++c) {
    for (int r = 0; r < R; ++r) kept[r][c] = load(x + c * n + i + r * lanes<T>);
  }
  for (int64_t j = 0; j < size; ++j) {
    for (int r = 0; r < R; ++r) {
      const Vector<T> v = load(a + (at + j) * column + i + r * lanes<T>);
      for (int c = 0; c < K; ++c) kept[r][c] -= v * x[c * n + at + j];
    }
  }
  for (int c = 0; c < K; ++c) {
    for (int r = 0; r < R; ++r)
      std::memcpy(x + c * n + i + r * lanes<T>, &kept[r][c], sizeof(Vector<T>));
  }
}
// The same of elements from..to.
template <int K, class T>
[[gnu::always_inline]] inline void subtract_columns(const T* a, int64_t column, int64_t from,
                                                    int64_t to, T* x, int64_t n, int64_t at,
                                                    int64_t size) {
  constexpr int R = K > 4 ? 2 : 4;
  int64_t i = from;
  for (; i + R * lanes<T> <= to; i += R * lanes<T>)
    subtract_columns<R, K>(a, column, i, x, n, at, size);
  for (; i + lanes<T> <= to; i += lanes<T>) subtract_columns<1, K>(a, column, i, x, n, at, size);
  for (; i < to; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      const T v = a[(at + j) * column + i];
      for (int c = 0; c < K; ++c) x[c * n + i] -= v * x[c * n + at + j];
    }
  }
}
// A block of at most B rows of the triangle, and of the K columns, n elements from each other.
template <int B, int K, class T>
[[gnu::always_inline]] inline void solve_block(bool upper, bool unit, int64_t size, const T* a,
                                               int64_t row, int64_t column, T* x, int64_t n) {
  T block[B][K], inverse[B];
  for (int64_t r = 0; r < size; ++r) {
    inverse[r] = unit ? T(1) : T(1) / a[r * (row + column)];
    for (int c = 0; c < K; ++c) block[r][c] = x[c * n + r];
  }
  for (int64_t s = 0; s < size; ++s) {
    const int64_t i = upper ? size - 1 - s : s;
    T known[K];
    for (int c = 0; c < K; ++c) known[c] = block[i][c] *= inverse[i];
    const int64_t end = upper ? i : size;
    for (int64_t r = upper ? 0 : i + 1; r < end; ++r) {
      const T f = a[r * row + i * column];
      for (int c = 0; c < K; ++c) block[r][c] -= f * known[c];
    }
  }
  for (int64_t r = 0; r < size; ++r) {
    for (int c = 0; c < K; ++c) x[c * n + r] = block[r][c];
  }
}
// By blocks of rows, each after what is known was taken from it, or before it is taken from the
// others, as A lies in memory. `room` holds the K columns one behind the other.
template <int K, class T>
void narrow_in(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t row, int64_t column,
               T* x, T* room) {
  constexpr int64_t B = 16;
  for (int64_t i = 0; i < n; ++i) {
    for (int c = 0; c < K; ++c) room[c * n + i] = c < k ? x[i * k + c] : T(0);
  }
  for (int64_t done = 0; done < n; done += B) {
    const int64_t size = std::min(B, n - done), first = upper ? n - done - size : done;
    if (column == 1) {
      const int64_t from = upper ? first + size : 0, to = upper ? n : first;
      constexpr int R = K > 4 ? 2 : 4;
      int64_t r = 0;
      for (; r + R <= size; r += R)
        subtract_dots<R, K>(a + (first + r) * row, row, from, to, room, n, first + r);
      for (; r < size; ++r)
        subtract_dots<1, K>(a + (first + r) * row, row, from, to, room, n, first + r);
    }
    solve_block<B, K>(upper, unit, size, a + first * (row + column), row, column, room + first, n);
    if (column != 1) {
      subtract_columns<K>(a, column, upper ? 0 : first + size, upper ? first : n, room, n, first,
                          size);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < k; ++c) x[i * k + c] = room[c * n + i];
  }
}
template <class T>
void narrow(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t row, int64_t column,
            T* x, T* room) {
  if constexpr (!is_complex_v<T>) {
    if (k == 1) return narrow_in<1>(upper, unit, n, k, a, row, column, x, room);
    if (k == 2) return narrow_in<2>(upper, unit, n, k, a, row, column, x, room);
    if (k <= 4) return narrow_in<4>(upper, unit, n, k, a, row, column, x, room);
    return narrow_in<8>(upper, unit, n, k, a, row, column, x, room);
  }
}

}  // namespace

#define CLEW_LOOPS(T, name)         \
  extern const MatrixLoops<T> name; \
  const MatrixLoops<T> name = {lu<T>, lu_solve<T>, cholesky<T>, triangular<T>, narrow<T>};
CLEW_LOOPS(float, matrices_float)
CLEW_LOOPS(double, matrices_double)
CLEW_LOOPS(c64, matrices_c64)
CLEW_LOOPS(c128, matrices_c128)
#undef CLEW_LOOPS

}  // namespace clew::kernels::CLEW_ISA

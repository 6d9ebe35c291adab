// LU factors of many tiny matrices, a matrix in each lane; compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage; lanes beyond the
// last matrix hold identities.
#if defined(__GNUC__) && !defined(__clang__)
// A product is rounded before it is subtracted, as in LAPACK: the second row of a singular matrix
// of small integers then becomes zero exactly.
#pragma GCC optimize("fp-contract=off")
#endif
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/core/lanes.h"
#include "kernels/linalg/side_by_side.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace clew::kernels::CLEW_ISA {
namespace {

template <class T> using V = Lanes_t<T>;
// What comparing two such vectors gives.
template <class T> using M = decltype(V<T>{} < V<T>{});
template <class T> constexpr int64_t L = lane_count<T>;
template <class T> [[gnu::always_inline]] inline M<T> number(int64_t v) {
  return M<T>{} + static_cast<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>(v);
}

constexpr int64_t most_rows = most_side_by_side, most_columns = 8;

template <class T> [[gnu::always_inline]] inline V<T> size_of(V<T> x) { return x < 0 ? -x : x; }

// Where element (i, j) of a matrix lies in it.
struct Strides {
  int64_t row, column;
};

// Element (i, j) of `count` matrices of n rows and k columns, size elements from each other, is
// vector i * k + j; the lanes that are left over get `fill(i, j)`.
template <class T, class F>
[[gnu::always_inline]] inline void gather(const T* from, int64_t size, Strides s, int64_t n,
                                          int64_t k, int64_t count, V<T>* to, F&& fill) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      const T* at = from + i * s.row + j * s.column;
      T* lane = reinterpret_cast<T*>(to + i * k + j);
      if (count == L<T>) {
        for (int64_t l = 0; l < L<T>; ++l) lane[l] = at[l * size];
      } else {
        for (int64_t l = 0; l < L<T>; ++l) lane[l] = l < count ? at[l * size] : T(fill(i, j));
      }
    }
  }
}
template <class T>
[[gnu::always_inline]] inline void scatter(const V<T>* from, int64_t size, Strides s, int64_t n,
                                           int64_t k, int64_t count, T* to) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      T* at = to + i * s.row + j * s.column;
      const T* lane = reinterpret_cast<const T*>(from + i * k + j);
      for (int64_t l = 0; l < count; ++l) at[l * size] = lane[l];
    }
  }
}

template <class T> struct Factors {
  alignas(64) V<T> a[most_rows * most_rows];  // L below the diagonal, U above
  alignas(64) M<T> top[most_rows];            // the row that row j was exchanged with
  alignas(64) M<T> zero;                      // the number of the first zero pivot, from 1, or 0
};

// Rows i > j of x (n, k) change places with row j where i is `top`.
template <class T>
[[gnu::always_inline]] inline void exchange(int64_t n, int64_t k, int64_t j, M<T> top, V<T>* x) {
  for (int64_t c = 0; c < k; ++c) {
    const V<T> before = x[j * k + c];
    V<T> after = before;
    for (int64_t i = j + 1; i < n; ++i) {
      const M<T> here = top == number<T>(i);
      const V<T> other = x[i * k + c];
      after = here ? other : after;
      x[i * k + c] = here ? before : other;
    }
    x[j * k + c] = after;
  }
}

template <class T>
[[gnu::always_inline]] inline void factor_lanes(const TinyStack<T>& a, int64_t first, int64_t count,
                                                Factors<T>& f) {
  const int64_t n = a.n;
  gather<T>(a.data + first * n * n, n * n, a.columns ? Strides{1, n} : Strides{n, 1}, n, n, count,
            f.a, [](int64_t i, int64_t j) { return i == j; });
  f.zero = M<T>{};
  for (int64_t j = 0; j < n; ++j) {
    V<T> greatest = size_of<T>(f.a[j * n + j]);
    M<T> top = number<T>(j);
    for (int64_t i = j + 1; i < n; ++i) {
      const V<T> size = size_of<T>(f.a[i * n + j]);
      const M<T> more = size > greatest;
      greatest = more ? size : greatest;
      top = more ? number<T>(i) : top;
    }
    f.top[j] = top;
    exchange<T>(n, n, j, top, f.a);
    // A column of zeros is left as it is.
    const V<T> pivot = f.a[j * n + j], none{};
    const M<T> zero = pivot == 0;
    f.zero = (zero & (f.zero == 0)) ? number<T>(j + 1) : f.zero;
    V<T> tail[most_rows];
    for (int64_t c = j + 1; c < n; ++c) tail[c] = zero ? none : f.a[j * n + c];
    for (int64_t i = j + 1; i < n; ++i) {
      V<T>* row = f.a + i * n;
      const V<T> factor = zero ? none : row[j] / pivot;
      row[j] = zero ? row[j] : factor;
      for (int64_t c = j + 1; c < n; ++c) row[c] -= factor * tail[c];
    }
  }
}

// f(number of the first, count) of each group of matrices that lanes hold.
template <class T, class F> [[gnu::always_inline]] inline void groups(int64_t count, F&& f) {
  for (int64_t first = 0; first < count; first += L<T>) f(first, std::min(L<T>, count - first));
}

template <class T> void factor(const TinyStack<T>& a, T* lu, int32_t* pivots, int32_t* info) {
  const int64_t n = a.n;
  groups<T>(a.count, [&](int64_t first, int64_t count) {
    Factors<T> f;
    factor_lanes(a, first, count, f);
    scatter<T>(f.a, n * n, {1, n}, n, n, count, lu + first * n * n);
    for (int64_t l = 0; l < count; ++l) {
      info[first + l] = static_cast<int32_t>(f.zero[l]);
      for (int64_t j = 0; j < n; ++j)
        pivots[(first + l) * n + j] = static_cast<int32_t>(f.top[j][l] + 1);
    }
  });
}

// X of A X = B, in place of B, which has k columns.
template <class T>
[[gnu::always_inline]] inline void solve_lanes(int64_t n, int64_t k, const Factors<T>& f, V<T>* x) {
  for (int64_t j = 0; j < n; ++j) exchange<T>(n, k, j, f.top[j], x);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      for (int64_t c = 0; c < k; ++c) x[i * k + c] -= f.a[i * n + j] * x[j * k + c];
    }
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    for (int64_t j = i + 1; j < n; ++j) {
      for (int64_t c = 0; c < k; ++c) x[i * k + c] -= f.a[i * n + j] * x[j * k + c];
    }
    for (int64_t c = 0; c < k; ++c) x[i * k + c] /= f.a[i * n + i];
  }
  const V<T> nan = V<T>{} + std::numeric_limits<T>::quiet_NaN();
  for (int64_t e = 0; e < n * k; ++e) x[e] = f.zero == 0 ? x[e] : nan;
}

template <class T> void solve(const TinyStack<T>& a, int64_t k, const T* b, T* x, int32_t* info) {
  const int64_t n = a.n;
  groups<T>(a.count, [&](int64_t first, int64_t count) {
    Factors<T> f;
    factor_lanes(a, first, count, f);
    for (int64_t l = 0; l < count; ++l) info[first + l] = static_cast<int32_t>(f.zero[l]);
    alignas(64) V<T> lanes[most_rows * most_columns];
    for (int64_t c = 0; c < k; c += most_columns) {
      const int64_t some = std::min(most_columns, k - c);
      if (b) {
        gather<T>(b + first * n * k + c, n * k, {k, 1}, n, some, count, lanes,
                  [](int64_t, int64_t) { return 0; });
      } else {
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < some; ++j) lanes[i * some + j] = V<T>{} + T(i == c + j);
        }
      }
      solve_lanes<T>(n, some, f, lanes);
      const Strides to = b ? Strides{k, 1} : Strides{1, n};
      scatter<T>(lanes, n * k, to, n, some, count, x + first * n * k + c * to.column);
    }
  });
}

template <class T> void pivots(const TinyStack<T>& a, T* to) {
  const int64_t n = a.n;
  groups<T>(a.count, [&](int64_t first, int64_t count) {
    Factors<T> f;
    factor_lanes(a, first, count, f);
    M<T> odd{};
    V<T> diagonal[most_rows];
    for (int64_t j = 0; j < n; ++j) {
      odd ^= f.top[j] != number<T>(j);
      diagonal[j] = f.a[j * (n + 1)];
    }
    diagonal[0] = odd ? -diagonal[0] : diagonal[0];
    scatter<T>(diagonal, n, {1, 0}, n, 1, count, to + first * n);
  });
}

}  // namespace

#define CLEW_LOOPS(T, name)             \
  extern const SideBySideLoops<T> name; \
  const SideBySideLoops<T> name = {factor<T>, solve<T>, pivots<T>};
CLEW_LOOPS(float, side_by_side_float)
CLEW_LOOPS(double, side_by_side_double)
#undef CLEW_LOOPS

}  // namespace clew::kernels::CLEW_ISA

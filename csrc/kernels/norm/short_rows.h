// Softmax and log(sum of exp) of neighbouring rows each of which a few registers hold.
// May include: kernels/norm/short_row.h, kernels/norm/softmax_exp.h, kernels/math/vmath.h.
// Invariant: everything has internal linkage; a row's result does not depend on where it stands.
#pragma once
#include <array>
#include <utility>

#include "kernels/math/vmath.h"
#include "kernels/norm/short_row.h"
#include "kernels/norm/softmax_exp.h"

namespace clew::kernels {

namespace {

// Rows whose exponentials are taken in step: one would leave the processor waiting.
template <int V> constexpr int in_step = V == 1 ? 4 : V == 2 ? 2 : 1;

// Takes the largest element off all of a row, and returns it; one beside a NaN may be missed.
template <int V, class C> [[gnu::always_inline]] inline C shift(Lanes_t<C>* v) {
  Lanes_t<C> top = v[0];
  for (int u = 1; u < V; ++u) top = v[u] > top ? v[u] : top;
  const C largest = join_all_lanes<C>(top, [](auto a, auto b) { return b > a ? b : a; });
  for (int u = 0; u < V; ++u) v[u] -= largest;
  return largest;
}
// The largest elements of R rows of n, and log(sum of exp(element - it)).
template <int R, class C, int V, bool part>
[[gnu::always_inline]] inline void log_sums_of(const ShortRow<C, V, part>& row, const C* x,
                                               int64_t n, C (&top)[R], double (&log)[R]) {
  constexpr int step = in_step<V>;
  static_assert(R % step == 0);
  for (int r = 0; r < R; r += step) {
    Lanes_t<C> v[step * V];
    for (int k = 0; k < step; ++k) {
      row.load_for_exp(x + (r + k) * n, v + k * V);
      top[r + k] = shift<V, C>(v + k * V);
    }
    terms_in_step<C>(v);
    for (int k = 0; k < step; ++k) log[r + k] = row.sum(v + k * V);
  }
  for (double& t : log) t = vm::log(t);
}

constexpr int rows_together = 8;  // whose logarithms are taken side by side

template <class C, int V, bool part, bool log>
void softmax_of_short(C* y, const C* x, int64_t rows, int64_t n) {
  const ShortRow<C, V, part> row(n);
  if constexpr (log) {
    in_groups<rows_together>(rows, n, {x}, y, [&](int64_t, const C* const(&at)[1], C* to) {
      const C* from = at[0];
      C top[rows_together];
      double total[rows_together];
      log_sums_of(row, from, n, top, total);
      for (int r = 0; r < rows_together; ++r) {
        Lanes_t<C> v[V];
        row.load(from + r * n, v);
        for (int u = 0; u < V; ++u) v[u] = (v[u] - top[r]) - static_cast<C>(total[r]);
        row.store(to + r * n, v);
      }
    });
  } else {
    constexpr int R = in_step<V>;
    in_groups<R>(rows, n, {x}, y, [&](int64_t, const C* const(&at)[1], C* to) {
      const C* from = at[0];
      Lanes_t<C> v[R * V];
      for (int r = 0; r < R; ++r) {
        row.load_for_exp(from + r * n, v + r * V);
        shift<V, C>(v + r * V);
      }
      exp_in_step<C>(v);
      for (int r = 0; r < R; ++r) {
        const auto by = static_cast<C>(1 / row.sum(v + r * V));
        for (int u = r * V; u < (r + 1) * V; ++u) v[u] *= by;
        row.store(to + r * n, v + r * V);
      }
    });
  }
}

// The gradient of softmax, whose result is y, or of its logarithm.
template <class C, int V, bool log> void back_of_short(C* dx, const C* g, const C* y, int64_t n) {
  const ShortRow<C, V, false> row(n);
  Lanes_t<C> v[V], made[V], terms[V];
  row.load(g, v);
  row.load(y, made);
  if constexpr (log) {
    exp_in_step<C>(made);
    const auto sum = static_cast<C>(row.sum(v));
    for (int u = 0; u < V; ++u) v[u] -= made[u] * sum;
  } else {
    for (int u = 0; u < V; ++u) terms[u] = v[u] * made[u];
    const auto dot = static_cast<C>(row.sum(terms));
    for (int u = 0; u < V; ++u) v[u] = made[u] * (v[u] - dot);
  }
  row.store(dx, v);
}

// log(sum of exp) of a row whose largest element is not finite.
template <class C> double log_sum_of_ends(const C* x, int64_t n, C top) {
  for (int64_t i = 0; i < n; ++i)
    if (x[i] != x[i]) return static_cast<double>(x[i]);
  return static_cast<double>(top);
}
template <class C, int V, bool part>
void log_sums_of_short(double* out, const C* x, int64_t rows, int64_t n) {
  const ShortRow<C, V, part> row(n);
  C* const nothing = nullptr;
  in_groups<rows_together>(rows, n, {x}, nothing, [&](int64_t first, const C* const(&at)[1], C*) {
    const C* from = at[0];
    C top[rows_together];
    double total[rows_together];
    log_sums_of(row, from, n, top, total);
    for (int64_t r = 0; r < least(rows_together, rows - first); ++r) {
      const bool finite = top[r] - top[r] == C(0);
      out[first + r] = finite ? static_cast<double>(top[r]) + total[r]
                              : log_sum_of_ends(from + r * n, n, top[r]);
    }
  });
}

template <class C> using BackOfShort = void (*)(C* dx, const C* g, const C* y, int64_t n);
template <class C> using SoftmaxOfShort = void (*)(C* y, const C* x, int64_t rows, int64_t n);
template <class C>
using LogSumsOfShort = void (*)(double* out, const C* x, int64_t rows, int64_t n);
// By the number of whole vectors in a row less one element.
template <class C, bool log>
constexpr auto softmax_of_vectors = []<int... V>(std::integer_sequence<int, V...>) {
  return std::array<SoftmaxOfShort<C>, row_vectors>{softmax_of_short<C, V + 1, false, log>...};
}
(std::make_integer_sequence<int, row_vectors>());
template <class C, bool log>
constexpr auto back_of_vectors = []<int... V>(std::integer_sequence<int, V...>) {
  return std::array<BackOfShort<C>, row_vectors>{back_of_short<C, V + 1, log>...};
}
(std::make_integer_sequence<int, row_vectors>());
template <class C>
constexpr auto log_sums_of_vectors = []<int... V>(std::integer_sequence<int, V...>) {
  return std::array<LogSumsOfShort<C>, row_vectors>{log_sums_of_short<C, V + 1, false>...};
}
(std::make_integer_sequence<int, row_vectors>());

}  // namespace
}  // namespace clew::kernels

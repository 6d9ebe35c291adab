// layer_norm and rms_norm of neighbouring rows each of which a few registers hold.
// May include: kernels/norm/short_row.h, kernels/norm/norm_loops.h.
// Invariant: everything has internal linkage; a row's result does not depend on where it stands.
#pragma once
#include <array>
#include <cmath>
#include <utility>

#include "kernels/norm/norm_loops.h"
#include "kernels/norm/short_row.h"

namespace clew::kernels {

namespace {

constexpr int norms_together = 8;  // rows whose divisions and roots are taken side by side

// What is kept for each element of a row, as the row is held; of null, `otherwise`.
template <class C, int V, bool part>
[[gnu::always_inline]] inline void load_weights(const ShortRow<C, V, part>& row, const C* w,
                                                int64_t n, C otherwise, Lanes_t<C>* to) {
  if (!w) {
    for (int u = 0; u < V; ++u) to[u] = spread(otherwise);
  } else if constexpr (part) {
    C room[lane_count<C>] = {};
    std::memcpy(room, w, static_cast<size_t>(n) * sizeof(C));
    row.load(room, to);
  } else {
    row.load(w, to);
  }
}

// As NormLoops::short_rows.
template <class C, int V, bool part>
void norm_of_short(C* y, C* means, C* rstds, const C* x, const C* w, const C* b, int64_t rows,
                   int64_t n, double eps) {
  constexpr int R = norms_together;
  const ShortRow<C, V, part> row(n);
  Lanes_t<C> scale[V], shift[V];
  load_weights(row, w, n, C(1), scale);
  load_weights(row, b, n, C(0), shift);
  const double per = 1 / static_cast<double>(n);
  in_groups<R>(rows, n, {x}, y, [&](int64_t first, const C* const(&at)[1], C* to) {
    double sum[R] = {}, off[R] = {}, squares[R];
    C near[R] = {}, by[R], more[R];
    if (means) {
      for (int r = 0; r < R; ++r) {
        Lanes_t<C> v[V];
        row.load(at[0] + r * n, v);
        sum[r] = row.sum(v);
      }
      for (int r = 0; r < R; ++r) near[r] = static_cast<C>(sum[r] * per);
    }
    for (int r = 0; r < R; ++r) {
      Lanes_t<C> v[V], square[V];
      row.load(at[0] + r * n, v);
      for (int u = 0; u < V; ++u) v[u] -= near[r], square[u] = v[u] * v[u];
      if (means) off[r] = row.sum(v);
      squares[r] = row.sum(square);
    }
    for (int r = 0; r < R; ++r) {
      // Deviations are from the rounded mean; their sum gives the correction.
      const double apart = off[r] * per, mean = static_cast<double>(near[r]) + apart;
      const double spread_ = squares[r] - off[r] * apart;
      const double inverse =
          1 / std::sqrt((spread_ > 0 || spread_ != spread_ ? spread_ : 0) * per + eps);
      near[r] = static_cast<C>(mean);
      by[r] = static_cast<C>(inverse);
      more[r] = static_cast<C>((static_cast<double>(near[r]) - mean) * inverse);
    }
    for (int64_t r = 0; r < least(R, rows - first); ++r) {
      if (means) means[first + r] = near[r];
      rstds[first + r] = by[r];
    }
    for (int r = 0; r < R; ++r) {
      Lanes_t<C> v[V];
      row.load(at[0] + r * n, v);
      for (int u = 0; u < V; ++u) v[u] = ((v[u] - near[r]) * by[r] + more[r]) * scale[u] + shift[u];
      row.store(to + r * n, v);
    }
  });
}

// As NormLoops::short_rows_grad.
template <class C, int V, bool part>
void back_of_short_norm(C* dx, C* dw, C* db, const C* g, const C* x, const C* w, const C* means,
                        const C* rstds, int64_t rows, int64_t n) {
  constexpr int R = norms_together, N = lane_count<C>;
  const ShortRow<C, V, part> row(n);
  Lanes_t<C> scale[V], sum_w[V] = {}, sum_b[V] = {};
  load_weights(row, w, n, C(1), scale);
  const double per = 1 / static_cast<double>(n);
  in_groups<R>(rows, n, {g, x}, dx, [&](int64_t first, const C* const(&at)[2], C* to) {
    double s1[R], s2[R];
    C mean[R] = {}, rstd[R] = {}, b[R], c[R];
    for (int64_t r = 0; r < least(R, rows - first); ++r) {
      if (means) mean[r] = means[first + r];
      rstd[r] = rstds[first + r];
    }
    for (int r = 0; r < R; ++r) {
      Lanes_t<C> v[V], from[V];
      row.load(at[0] + r * n, v);
      row.load(at[1] + r * n, from);
      for (int u = 0; u < V; ++u) v[u] *= scale[u], from[u] = v[u] * (from[u] - mean[r]);
      s1[r] = means ? row.sum(v) : 0;
      s2[r] = row.sum(from);
    }
    for (int r = 0; r < R; ++r) {
      const double inverse = static_cast<double>(rstd[r]);
      b[r] = static_cast<C>(-inverse * inverse * inverse * s2[r] * per);
      c[r] = static_cast<C>(-inverse * s1[r] * per);
    }
    for (int r = 0; r < R; ++r) {
      Lanes_t<C> v[V], from[V];
      row.load(at[0] + r * n, v);
      row.load(at[1] + r * n, from);
      for (int u = 0; u < V; ++u) {
        from[u] -= mean[r];
        sum_w[u] += v[u] * (from[u] * rstd[r]);
        sum_b[u] += v[u];
        v[u] = v[u] * scale[u] * rstd[r] + (from[u] * b[r] + c[r]);
      }
      row.store(to + r * n, v);
    }
  });
  if (!dw) return;
  C room[V * N];
  for (const auto& [sums, to] : {std::pair<const Lanes_t<C>*, C*>(sum_w, dw), {sum_b, db}}) {
    const Lanes_t<C> last = row.counted(sums[V - 1]);
    for (int u = 0; u < V - 1; ++u) store<C>(room + u * N, sums[u]);
    for (int64_t i = 0; i < (V - 1) * N; ++i) to[i] += room[i];
    store<C>(room, last);
    for (int64_t l = 0; l < N; ++l)
      if (const int64_t i = (part ? 0 : n - N) + l; i < n) to[i] += room[l];
  }
}

template <class C> using NormOfShort = decltype(NormLoops<C>::short_rows);
template <class C> using BackOfShortNorm = decltype(NormLoops<C>::short_rows_grad);
// By the number of whole vectors in a row less one element.
template <class C>
constexpr auto norms_of_vectors = []<int... V>(std::integer_sequence<int, V...>) {
  return std::array<NormOfShort<C>, row_vectors>{norm_of_short<C, V + 1, false>...};
}
(std::make_integer_sequence<int, row_vectors>());
template <class C>
constexpr auto backs_of_vectors = []<int... V>(std::integer_sequence<int, V...>) {
  return std::array<BackOfShortNorm<C>, row_vectors>{back_of_short_norm<C, V + 1, false>...};
}
(std::make_integer_sequence<int, row_vectors>());

}  // namespace
}  // namespace clew::kernels

// Softmax and log(sum of exp) of neighbouring rows each of which a few registers hold.
// May include: kernels/core/lanes.h, kernels/norm/softmax_exp.h, kernels/math/vmath.h.
// Invariant: everything has internal linkage; a row's result does not depend on where it stands.
#pragma once
#include <array>
#include <limits>
#include <utility>

#include "kernels/core/lanes.h"
#include "kernels/math/vmath.h"
#include "kernels/norm/softmax_exp.h"

namespace clew::kernels {

namespace {

constexpr int row_vectors = 8;
// Elements of the longest row.
template <class C> constexpr int64_t short_row_most = row_vectors* lane_count<C>;

// How V vectors hold a row of n elements. Where the last is not whole, it begins earlier: some of
// its lanes, which the vector before holds, too, are not added. A row of less than a vector
// (`part`) is followed by -inf, whose exp() adds nothing; what lies behind it is read and written.
template <class C, int V, bool part> class ShortRow {
 public:
  static constexpr int N = lane_count<C>;
  // Rows whose exponentials are taken in step: one would leave the processor waiting.
  static constexpr int in_step = V == 1 ? 4 : V == 2 ? 2 : 1;

  explicit ShortRow(int64_t n) : last_(part ? 0 : n - N) {
    for (int l = 0; l < N; ++l)
      counts_[l] = (part ? l < n : l >= int64_t{V} * N - n) ? ~Int(0) : Int(0);
  }
  [[gnu::always_inline]] void load(const C* x, Lanes_t<C>* v) const {
    for (int u = 0; u < V - 1; ++u) v[u] = kernels::load(x + u * N);
    v[V - 1] = kernels::load(x + last_);
    if constexpr (part)
      v[0] = lanes((bits(v[0]) & counts_) |
                   (bits(spread(-std::numeric_limits<C>::infinity())) & ~counts_));
  }
  [[gnu::always_inline]] void store(C* y, const Lanes_t<C>* v) const {
    for (int u = 0; u < V - 1; ++u) kernels::store(y + u * N, v[u]);
    kernels::store(y + last_, v[V - 1]);
  }
  // Takes the largest element off all, and returns it; one beside a NaN may be missed.
  [[gnu::always_inline]] static C shift(Lanes_t<C>* v) {
    Lanes_t<C> top = v[0];
    for (int u = 1; u < V; ++u) top = v[u] > top ? v[u] : top;
    const C largest = join_all_lanes<C>(top, [](auto a, auto b) { return b > a ? b : a; });
    for (int u = 0; u < V; ++u) v[u] -= largest;
    return largest;
  }
  [[gnu::always_inline]] double sum(const Lanes_t<C>* e) const {
    Lanes_t<C> all = part ? e[0] : lanes(bits(e[V - 1]) & counts_);
    for (int u = 0; u < V - 1; ++u) all += e[u];
    return sum_of_lanes<C>(all);
  }
  // The largest elements of R rows of n, and log(sum of exp(element - it)).
  template <int R>
  [[gnu::always_inline]] void log_sums(const C* x, int64_t n, C (&top)[R], double (&log)[R]) const {
    static_assert(R % in_step == 0);
    for (int r = 0; r < R; r += in_step) {
      Lanes_t<C> v[in_step * V];
      for (int k = 0; k < in_step; ++k) {
        load(x + (r + k) * n, v + k * V);
        top[r + k] = shift(v + k * V);
      }
      terms_in_step<C>(v);
      for (int k = 0; k < in_step; ++k) log[r + k] = sum(v + k * V);
    }
    for (double& t : log) t = vm::log(t);
  }

 private:
  using Int = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
  typedef Int Bits __attribute__((vector_size(lane_bytes)));
  static Bits bits(Lanes_t<C> v) { return reinterpret_cast<Bits>(v); }
  static Lanes_t<C> lanes(Bits v) { return reinterpret_cast<Lanes_t<C>>(v); }

  int64_t last_;
  Bits counts_;
};

// Calls run(first, x, y) for R rows at a time, of `rows` in all. The last ones, if they are fewer
// or if behind them there is no room for a vector, lie in a place of their own meanwhile.
template <int R, class C, class F>
[[gnu::always_inline]] inline void in_groups(int64_t rows, int64_t n, const C* x, C* y, F&& run) {
  constexpr int N = lane_count<C>;
  const int64_t room = n < N ? ceil_div(N - n, n) : 0;  // rows that must follow
  int64_t first = 0;
  for (; first + R + room <= rows; first += R) run(first, x + first * n, y ? y + first * n : y);
  if (first == rows) return;
  constexpr int64_t most_elements = short_row_most<C> * R + N;
  alignas(64) C from[most_elements], to[most_elements];
  std::memset(from, 0, static_cast<size_t>(R * n + N) * sizeof(C));
  for (; first < rows; first += R) {
    const size_t bytes = static_cast<size_t>(least(R, rows - first) * n) * sizeof(C);
    std::memcpy(from, x + first * n, bytes);
    run(first, from, y ? to : y);
    if (y) std::memcpy(y + first * n, to, bytes);
  }
}

constexpr int rows_together = 8;  // whose logarithms are taken side by side

template <class C, int V, bool part, bool log>
void softmax_of_short(C* y, const C* x, int64_t rows, int64_t n) {
  const ShortRow<C, V, part> row(n);
  if constexpr (log) {
    in_groups<rows_together>(rows, n, x, y, [&](int64_t, const C* from, C* to) {
      C top[rows_together];
      double total[rows_together];
      row.log_sums(from, n, top, total);
      for (int r = 0; r < rows_together; ++r) {
        Lanes_t<C> v[V];
        row.load(from + r * n, v);
        for (int u = 0; u < V; ++u) v[u] = (v[u] - top[r]) - static_cast<C>(total[r]);
        row.store(to + r * n, v);
      }
    });
  } else {
    constexpr int R = row.in_step;
    in_groups<R>(rows, n, x, y, [&](int64_t, const C* from, C* to) {
      Lanes_t<C> v[R * V];
      for (int r = 0; r < R; ++r) {
        row.load(from + r * n, v + r * V);
        row.shift(v + r * V);
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
  in_groups<rows_together>(rows, n, x, nothing, [&](int64_t first, const C* from, C*) {
    C top[rows_together];
    double total[rows_together];
    row.log_sums(from, n, top, total);
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

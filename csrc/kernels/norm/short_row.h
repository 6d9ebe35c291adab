// Rows of which a few registers hold one, and visiting them in groups.
// May include: kernels/core/lanes.h.
// Invariant: everything has internal linkage; a row's result does not depend on where it stands.
#pragma once
#include <limits>

#include "kernels/core/lanes.h"

namespace clew::kernels {

namespace {

constexpr int row_vectors = 8;
// Elements of the longest row.
template <class C> constexpr int64_t short_row_most = row_vectors* lane_count<C>;

// How V vectors hold a row of n elements. Where the last is not whole, it begins earlier: some of
// its lanes, which the vector before holds, too, are not added. What lies behind a row of less than
// a vector (`part`) is read and written.
template <class C, int V, bool part> class ShortRow {
 public:
  static constexpr int N = lane_count<C>;
  explicit ShortRow(int64_t n) : last_(part ? 0 : n - N) {
    for (int l = 0; l < N; ++l)
      counts_[l] = (part ? l < n : l >= int64_t{V} * N - n) ? ~Int(0) : Int(0);
  }
  [[gnu::always_inline]] void load(const C* x, Lanes_t<C>* v) const {
    for (int u = 0; u < V - 1; ++u) v[u] = kernels::load(x + u * N);
    v[V - 1] = kernels::load(x + last_);
  }
  // The same, with -inf, whose exp() adds nothing, behind a part.
  [[gnu::always_inline]] void load_for_exp(const C* x, Lanes_t<C>* v) const {
    load(x, v);
    if constexpr (part)
      v[0] = lanes((bits(v[0]) & counts_) |
                   (bits(spread(-std::numeric_limits<C>::infinity())) & ~counts_));
  }
  [[gnu::always_inline]] void store(C* y, const Lanes_t<C>* v) const {
    for (int u = 0; u < V - 1; ++u) kernels::store(y + u * N, v[u]);
    kernels::store(y + last_, v[V - 1]);
  }
  [[gnu::always_inline]] double sum(const Lanes_t<C>* e) const {
    Lanes_t<C> all = counted(e[V - 1]);
    for (int u = 0; u < V - 1; ++u) all += e[u];
    return sum_of_lanes<C>(all);
  }
  // Of the last vector, what is not another one's or behind the row; the rest is zero.
  [[gnu::always_inline]] Lanes_t<C> counted(const Lanes_t<C>& v) const {
    return lanes(bits(v) & counts_);
  }

 private:
  using Int = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
  typedef Int Bits __attribute__((vector_size(lane_bytes)));
  static Bits bits(Lanes_t<C> v) { return reinterpret_cast<Bits>(v); }
  static Lanes_t<C> lanes(Bits v) { return reinterpret_cast<Lanes_t<C>>(v); }

  int64_t last_;
  Bits counts_;
};

// Calls run(first, x, y) for R rows at a time, of `rows` in all, of K inputs x. The last ones, if
// they are fewer or if behind them there is no room for a vector, lie in a place of their own
// meanwhile.
template <int R, int K, class C, class F>
[[gnu::always_inline]] inline void in_groups(int64_t rows, int64_t n, const C* const (&x)[K], C* y,
                                             F&& run) {
  constexpr int N = lane_count<C>;
  const int64_t room = n < N ? ceil_div(N - n, n) : 0;  // rows that must follow
  int64_t first = 0;
  const C* at[K];
  for (; first + R + room <= rows; first += R) {
    for (int k = 0; k < K; ++k) at[k] = x[k] + first * n;
    run(first, at, y ? y + first * n : y);
  }
  if (first == rows) return;
  constexpr int64_t most_elements = short_row_most<C> * R + N;
  alignas(64) C from[K][most_elements], to[most_elements];
  for (int k = 0; k < K; ++k) at[k] = from[k];
  for (; first < rows; first += R) {
    const size_t bytes = static_cast<size_t>(least(R, rows - first) * n) * sizeof(C);
    for (int k = 0; k < K; ++k) {  // rows that are not there are zero
      std::memcpy(from[k], x[k] + first * n, bytes);
      std::memset(reinterpret_cast<char*>(from[k]) + bytes, 0,
                  static_cast<size_t>(R * n + N) * sizeof(C) - bytes);
    }
    run(first, at, y ? to : y);
    if (y) std::memcpy(y + first * n, to, bytes);
  }
}

}  // namespace
}  // namespace clew::kernels

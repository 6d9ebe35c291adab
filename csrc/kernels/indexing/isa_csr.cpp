// Products of sparse matrices in registers, compiled once for each instruction set.
// May include: base/read_once.h, kernels.
// Invariant: an index is read once, tested, and used from the copy; elements are added in order.
#include "base/read_once.h"
#include "kernels/core/lanes.h"
#include "kernels/indexing/csr_isa.h"

namespace clew::kernels::CLEW_ISA {

namespace {

constexpr int64_t ahead = 12;  // elements whose rows are on their way from memory

// The elements of one row.
struct Stretch {
  int64_t begin, end;
};
template <class T, class I>
[[gnu::always_inline]] inline bool stretch_of(const CsrRows<T, I>& c, int64_t row, Stretch& s) {
  s = {static_cast<int64_t>(read_once(c.crow[row])),
       static_cast<int64_t>(read_once(c.crow[row + 1]))};
  return s.begin >= 0 && s.begin <= s.end && s.end <= c.count;
}
// What a later element needs is fetched. Rows follow each other, so it may be one of the next.
template <class T, class I>
[[gnu::always_inline]] inline void fetch_for(const CsrRows<T, I>& c, int64_t e, const T* table,
                                             int bytes) {
  if (e >= c.count) return;
  const auto later = static_cast<uint64_t>(read_once(c.col[e]));
  if (later >= static_cast<uint64_t>(c.columns)) return;
  const auto* at = reinterpret_cast<const char*>(table + static_cast<int64_t>(later) * c.width);
  for (int i = 0; i < bytes; i += 64) __builtin_prefetch(at + i);
}

// `V` vectors of columns of one row, from `from` on.
template <int V, class T, class I>
[[gnu::always_inline]] inline bool some_columns(const CsrRows<T, I>& c, T* to, Stretch s,
                                                int64_t from) {
  constexpr int N = lane_count<T>;
  Lanes_t<T> sums[V];
  for (int v = 0; v < V; ++v) sums[v] = Lanes_t<T>{};
  for (int64_t e = s.begin; e < s.end; ++e) {
    fetch_for(c, e + ahead, c.second + from, V * lane_bytes);
    const auto at = static_cast<uint64_t>(read_once(c.col[e]));
    if (at >= static_cast<uint64_t>(c.columns)) return false;
    const T* row = c.second + static_cast<int64_t>(at) * c.width + from;
    const Lanes_t<T> factor = spread(c.first[e]);
    for (int v = 0; v < V; ++v) sums[v] += factor * load(row + v * N);
  }
  for (int v = 0; v < V; ++v) store(to + from + v * N, sums[v]);
  return true;
}
// Fewer columns than a vector has.
template <class T, class I>
[[gnu::always_inline]] inline bool few_columns(const CsrRows<T, I>& c, T* to, Stretch s) {
  const int64_t n = c.width;
  T sums[lane_count<T>] = {};
  for (int64_t e = s.begin; e < s.end; ++e) {
    fetch_for(c, e + ahead, c.second, 1);
    const auto at = static_cast<uint64_t>(read_once(c.col[e]));
    if (at >= static_cast<uint64_t>(c.columns)) return false;
    const T* row = c.second + static_cast<int64_t>(at) * n;
    const T factor = c.first[e];
    for (int64_t j = 0; j < n; ++j) sums[j] += factor * row[j];
  }
  for (int64_t j = 0; j < n; ++j) to[j] = sums[j];
  return true;
}
template <class T, class I> int64_t product(const CsrRows<T, I>& c) {
  constexpr int N = lane_count<T>;
  for (int64_t r = c.begin; r < c.end; ++r) {
    Stretch s;
    if (!stretch_of(c, r, s)) return r;
    T* to = c.out + r * c.width;
    bool fits = true;
    if (c.width < N) {
      fits = few_columns(c, to, s);
    } else {
      int64_t j = 0;
      auto some = [&]<int V>() __attribute__((always_inline)) {
        for (; fits && j + V * N <= c.width; j += V * N) fits = some_columns<V>(c, to, s, j);
      };
      some.template operator()<16>();
      some.template operator()<8>();
      some.template operator()<4>();
      some.template operator()<2>();
      some.template operator()<1>();
      // The last few with some that are there already.
      if (fits && j < c.width) fits = some_columns<1>(c, to, s, c.width - N);
    }
    if (!fits) return r;
  }
  return -1;
}

template <class T> [[gnu::always_inline]] inline T dot(const T* a, const T* b, int64_t n) {
  constexpr int N = lane_count<T>;
  Lanes_t<T> sums[2] = {};
  int64_t j = 0;
  for (; j + 2 * N <= n; j += 2 * N) {
    sums[0] += load(a + j) * load(b + j);
    sums[1] += load(a + j + N) * load(b + j + N);
  }
  if (j + N <= n) {
    sums[0] += load(a + j) * load(b + j);
    j += N;
  }
  double total = n >= N ? sum_of_lanes<T>(sums[0] + sums[1]) : 0;
  for (; j < n; ++j) total += static_cast<double>(a[j] * b[j]);
  return static_cast<T>(total);
}
template <class T, class I> int64_t dots(const CsrRows<T, I>& c) {
  const int64_t bytes = c.width * static_cast<int64_t>(sizeof(T));
  const int near = bytes < 512 ? static_cast<int>(bytes) : 512;
  for (int64_t r = c.begin; r < c.end; ++r) {
    Stretch s;
    if (!stretch_of(c, r, s)) return r;
    const T* a = c.first + r * c.width;
    for (int64_t e = s.begin; e < s.end; ++e) {
      fetch_for(c, e + ahead, c.second, near);
      const auto at = static_cast<uint64_t>(read_once(c.col[e]));
      if (at >= static_cast<uint64_t>(c.columns)) return r;
      c.out[e] = dot(a, c.second + static_cast<int64_t>(at) * c.width, c.width);
    }
  }
  return -1;
}

}  // namespace

extern const CsrLoops csr_loops;
const CsrLoops csr_loops = {product<float, int32_t>,  product<float, int64_t>,
                            product<double, int32_t>, product<double, int64_t>,
                            dots<float, int32_t>,     dots<float, int64_t>,
                            dots<double, int32_t>,    dots<double, int64_t>};

}  // namespace clew::kernels::CLEW_ISA

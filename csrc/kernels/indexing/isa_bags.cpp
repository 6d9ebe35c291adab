// Sums of rows of a table in registers, compiled once for each instruction set.
// May include: kernels.
// Invariant: rows are added in the order of the indices, whatever the width.
#include "kernels/core/lanes.h"
#include "kernels/indexing/bags_isa.h"

namespace clew::kernels::CLEW_ISA {

namespace {

// `V` vectors of columns, or a part of one vector.
template <int V, class T>
[[gnu::always_inline]] inline void some_columns(T* to, const T* table, int64_t width,
                                                const int64_t* rows, const T* factors,
                                                int64_t count, T share) {
  constexpr int N = lane_count<T>, line = 64 / static_cast<int>(sizeof(T));
  constexpr int64_t ahead = 8;  // rows on their way from memory
  Lanes_t<T> sums[V];
  for (int v = 0; v < V; ++v) sums[v] = Lanes_t<T>{};
  for (int64_t k = 0; k < count; ++k) {
    if (k + ahead < count) {
      const T* later = table + rows[k + ahead] * width;
      for (int i = 0; i < V * N; i += line) __builtin_prefetch(later + i);
    }
    const T* row = table + rows[k] * width;
    if (factors) {
      for (int v = 0; v < V; ++v) sums[v] += factors[k] * load(row + v * N);
    } else {
      for (int v = 0; v < V; ++v) sums[v] += load(row + v * N);
    }
  }
  for (int v = 0; v < V; ++v) store(to + v * N, sums[v] * share);
}
template <class T> void sum_rows(const BagRows<T>& r) {
  constexpr int N = lane_count<T>;
  int64_t j = 0;
  auto some = [&]<int V>() __attribute__((always_inline)) {
    for (; j + V * N <= r.width; j += V * N)
      some_columns<V>(r.to + j, r.table + j, r.width, r.rows, r.factors, r.count, r.share);
  };
  some.template operator()<16>();
  some.template operator()<4>();
  some.template operator()<1>();
  for (; j < r.width; ++j) {
    T sum = 0;
    for (int64_t k = 0; k < r.count; ++k)
      sum += (r.factors ? r.factors[k] : T(1)) * r.table[r.rows[k] * r.width + j];
    r.to[j] = sum * r.share;
  }
}
template <class T> void add_row(T* to, const T* from, T factor, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) to[j] += factor * from[j];
}

}  // namespace

extern const BagLoops bag_loops;
const BagLoops bag_loops = {sum_rows<float>, sum_rows<double>, add_row<float>, add_row<double>};

}  // namespace clew::kernels::CLEW_ISA

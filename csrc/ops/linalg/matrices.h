// What operations on batches of matrices share: how a batch is read and its results lie, how its
// matrices are shared out.
// May include: ops, graph, tensor, kernels.
// Invariant: between pieces of about a second Ctrl-C is heard; no Python runs within one.
#pragma once
#include <algorithm>

#include "base/parallel.h"
#include "graph/node.h"
#include "kernels/linalg/matrices.h"
#include "ops/calls/shape.h"

namespace clew {

using kernels::Range;
using kernels::Stack;
using MatrixTypes = TypeList<float, double, c64, c128>;

constexpr NoRule written_in_python = no_rule("the public function has the rule");

// A batch of matrices whose elements may be read where they lie.
struct MatrixBatch {
  Tensor tensor;
  bool columns;
  int64_t count, m, n;
  template <class T> Stack<T> of() const { return {tensor.data<const T>(), count, m, n, columns}; }
};
inline int64_t count_of(const Tensor& x, int core) {
  int64_t count = 1;
  for (int d = 0; d < x.ndim() - core; ++d) count *= x.size(d);
  return count;
}
inline MatrixBatch batch_of(const Tensor& a) {
  const int64_t m = a.size(-2), n = a.size(-1), count = count_of(a, 2);
  if (a.is_contiguous()) return {a, false, count, m, n};
  bool columns = a.stride(-2) == 1 && a.stride(-1) == m;
  int64_t step = m * n;
  for (int d = a.ndim() - 3; d >= 0; --d) {
    columns &= a.size(d) == 1 || a.stride(d) == step;
    step *= a.size(d);
  }
  return {columns ? a : contiguous(a), columns, count, m, n};
}

// A copy, which no other thread writes: pivots that were checked are addresses from then on.
inline Tensor own_pivots(const Tensor& pivots) { return dense_copy(pivots); }

inline void check_matrix(const Call& c, const Tensor& a, bool square = false) {
  require(a.ndim() >= 2 && a.dtype() >= DType::Float32 && is_inexact(a.dtype()), c.name(),
          ": expected matrices of float32, float64, complex64 or complex128; got ", a);
  require(!square || a.size(-1) == a.size(-2), c.name(), ": expected square matrices; got ", a);
}
// The dims before the last `core` ones, and others after them.
inline Dims with_batch(const Tensor& a, std::initializer_list<int64_t> more, int core = 2) {
  Dims sizes(a.sizes().data(), a.ndim() - core);
  for (int64_t s : more) sizes.push_back(s);
  return sizes;
}
inline void check_beside(const Call& c, const Tensor& a, const Tensor& b, int core, DType dtype) {
  const bool fits = b.ndim() == a.ndim() - 2 + core && b.dtype() == dtype;
  require(fits && Dims(a.sizes().data(), a.ndim() - 2) == Dims(b.sizes().data(), b.ndim() - core),
          c.name(), ": the batch dimensions must be equal and the dtypes fit; got ", a, " and ", b);
}
// Matrices in columns.
inline void add_columns(OutSpecs& outs, DType dtype, Dims sizes) {
  Dims strides = contiguous_strides(sizes);
  const int last = sizes.size() - 1;
  strides[last - 1] = 1;
  strides[last] = std::max<int64_t>(sizes[last - 1], 1);
  outs.add(dtype, std::move(sizes)).strides = std::move(strides);
}
inline void add_info(OutSpecs& outs, const Tensor& a) { outs.add(DType::Int32, with_batch(a, {})); }

// From this cost on a matrix is worth the library's threads, or its own turn.
constexpr double for_threads = 2e8, between_interrupts = 1e9, for_a_piece = 1e5, for_any = 400;

// f(range) for all matrices of a batch; `cost`: the multiply-adds of one.
template <class F> void over_batch(int64_t count, double cost, F&& f) {
  cost = std::max(cost, 1.0) + for_any;
  const auto step = static_cast<int64_t>(std::clamp(between_interrupts / cost, 1.0, 1e9));
  const LongWork work(static_cast<int64_t>(std::min(cost * static_cast<double>(count), 1e15)));
  for (int64_t begin = 0; begin < count; begin += step) {
    stop_point();
    const int64_t end = std::min(begin + step, count), n = end - begin;
    const bool shared = n < num_threads() && cost > for_threads;
    const kernels::lapack::Threads threads(shared ? num_threads() : 1);
    const int64_t grain =
        shared ? n : static_cast<int64_t>(std::clamp(for_a_piece / cost, 1.0, 1e9));
    parallel_for(n, grain, [&](int64_t from, int64_t to) {
      f(Range{begin + from, begin + to});
      if (cost > for_threads) kernels::trim_matrix_scratch();
    });
  }
}
inline double cube(int64_t a, int64_t b, int64_t c) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}
template <class F> void with_type(const Tensor& x, F&& f) { dispatch(x.dtype(), MatrixTypes{}, f); }

// f.operator()<element type>(range) for all matrices of a batch.
template <class F> void each_matrix(const MatrixBatch& a, double cost, F&& f) {
  with_type(a.tensor, [&]<class T>() {
    over_batch(a.count, cost, [&](Range r) { f.template operator()<T>(r); });
  });
}

inline void need_lapack(const Call& c) {
  require(kernels::lapack::loaded(), c.name(), ": no LAPACK library was loaded");
}
inline MatrixBatch lapack_batch(const Call& c, const Tensor& a) {
  need_lapack(c);
  return batch_of(a);
}

}  // namespace clew

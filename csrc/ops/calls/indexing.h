// Indexing by tensors as C++ functions: advanced indexing, gather, scatter, embedding.
// May include: ops/ops.h.
// Invariant: indices are checked before anything is written that outlives an error.
#pragma once
#include <string_view>

#include "ops/ops.h"

namespace clew {

// The part of a tensor that ints, slices and new dimensions name. For each input dim: a start, and
// a step and length; step 0 takes one index and drops the dim. Bit k of `added` puts a dimension of
// size 1 at place k of the result.
struct BasicIndex {
  Dims start;
  Dims step;
  Dims length;
  int64_t added = 0;
  static constexpr auto members() {
    return std::tuple(&BasicIndex::start, &BasicIndex::step, &BasicIndex::length,
                      &BasicIndex::added);
  }
};
Tensor basic_index(const Tensor& x, const BasicIndex& part);  // a view

// The dims of the input that the places of an index count in.
struct IndexAttrs {
  Dims dims;
  static constexpr auto members() { return std::tuple(&IndexAttrs::dims); }
};
// Which places of the indexed dimensions are meant: row-major positions in the block they span,
// none negative.
struct IndexPlan {
  Tensor places;  // int64, of the shape the index tensors broadcast to
  Dims dims;      // strictly increasing
};
// indices[k] belongs to the next dimension of x (a mask of n dimensions to the next n); undefined
// takes all of a dimension. Throws IndexError for what does not fit.
IndexPlan plan_index(const Tensor& x, std::span<const Tensor> indices, std::string_view op);

// The same for a vector of int64 indices into one dimension, which comes back where none of them is
// negative.
Tensor places_along(const Tensor& index, int64_t size, int64_t dim, std::string_view op,
                    bool negative);

// The same for a mask, or index tensors of one shape, that are dense and short; false, with nothing
// done, where it is another case (an error, too).
bool plan_few(const Tensor& x, std::span<const Tensor> indices, IndexPlan& plan);

// The indexed dims become the places' dims, standing where the indexed ones stood when those are
// adjacent, else in front.
Tensor index_at(const Tensor& x, const Tensor& places, const Dims& dims);
Tensor index_put(const Tensor& x, const Tensor& values, const Tensor& places, const Dims& dims,
                 bool accumulate);
void index_put_(const Tensor& x, const Tensor& values, const Tensor& places, const Dims& dims,
                bool accumulate);

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
Tensor masked_select(const Tensor& x, const Tensor& mask);
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
// A kernel met an index out of range, and a search finds none: it was there for a while.
[[noreturn]] void fail_changed(std::string_view op);
// Whether nobody else holds an op's output: what was written there is not seen when the op fails.
inline bool is_fresh(const Tensor& out) {
  return Py_REFCNT(out.get()) == 1 && out->storage->refs == 1;
}
// Row-major positions of nonzero elements, int64[n]; not recorded.
Tensor nonzero_flat(const Tensor& x, std::string_view op);

}  // namespace clew

// An index for every element, along one dimension: what gather, scatter and their relatives share.
// May include: ops, graph, tensor, kernels.
// Invariant: every index is checked before the first write that outlives an error.
#pragma once
#include <string_view>

#include "graph/op.h"
#include "kernels/indexing/index.h"

namespace clew {

// A 0-d tensor as one of one element.
Tensor with_dim(const Tensor& t);
// Indices counted from the end, as indices counted from the start.
Tensor from_start(const Tensor& index, int64_t size);

void check_index(const Call& c, int which, int dim);
void check_range(const Tensor& index, const Tensor& x, int dim, std::string_view op);
void check_scatter(const Call& c, int dim);

// If index is a vector along dim that is expanded over the other dims, that vector: whole rows are
// then moved instead of elements. Undefined for other indices and for short rows.
Tensor repeated_line(const Tensor& index, int dim);

bool is_widened(DType d, kernels::Combine combine);
// dst[index] op= src; 16-bit floats are combined in 32 bits. With a base, out is made a copy of
// that first. An index that is out of range is refused, in the middle if nobody has looked before.
void scatter_into(const Tensor& out, int dim, const Tensor& index, const Tensor& src,
                  kernels::Combine combine, std::string_view op,
                  const kernels::NdView* base = nullptr);

// A gradient of the index's shape for a src that may be larger.
Tensor grow(const Tensor& g, const Dims& sizes);
// The gradient of what is written over.
Tensor zeroed(const Tensor& g, int64_t dim, const Tensor& index);

// scatter_reduce() under scatter()'s names: 'add' and 'multiply'.
Tensor scatter_with(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                    const Str& reduce, std::string_view op);

}  // namespace clew

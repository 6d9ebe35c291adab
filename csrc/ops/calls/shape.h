// Views as C++ functions: new shapes, orders and parts of the same elements; and the copies they
// sometimes need.
// May include: ops/ops.h.
// Invariant: every function here calls apply() once or returns its input; the elements stay
// where they are unless said.
#pragma once
#include <string>
#include <string_view>

#include "ops/ops.h"

namespace clew {

// wrap_dim for the name a Call gives, which is not terminated.
inline int wrapped(int64_t dim, int ndim, std::string_view op) {
  if (dim >= 0 && dim < ndim) [[likely]]
    return static_cast<int>(dim);
  if (dim < 0 && dim >= -ndim) return static_cast<int>(dim + ndim);
  return wrap_dim(dim, ndim, std::string(op).c_str());
}
// Strides under which `sizes`/`strides` show the same elements as `target`; nothing when only a
// copy can.
std::optional<Dims> view_strides(const Dims& sizes, const Dims& strides, const Dims& target);
// `target` with its one -1 replaced by what numel demands.
Dims infer_size(const Dims& target, int64_t numel, std::string_view op);

// The dims along which x shows the same elements again and again, and x with each of them once.
Dims repeated_dims(const Tensor& x);
Tensor without_repeats(const Tensor& x);

Tensor view(const Tensor& x, const Dims& size);
Tensor reshape(const Tensor& x, const Dims& size);  // copies only when no view exists
Tensor contiguous(const Tensor& x);                 // x itself when it is contiguous already
Tensor contiguous_copy(const Tensor& x);            // always fresh
// A tensor that repeats its elements (the gradient of a sum) as a dense one, for loops that read
// those faster; others stay.
Tensor written_out(const Tensor& x);
Tensor permute(const Tensor& x, const Dims& dims);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor t(const Tensor& x);              // matrix transpose of a 2-d tensor, else x
Tensor transposed(const Tensor& x);     // .mT
Tensor adjoint(const Tensor& x);        // .mH
Tensor reversed_dims(const Tensor& x);  // .T
Tensor expand(const Tensor& x, const Dims& size);
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, const Dims& dims);
Tensor unsqueeze(const Tensor& x, int64_t dim);
Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination);
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step);
Tensor as_strided(const Tensor& x, const Dims& size, const Dims& stride,
                  std::optional<int64_t> storage_offset = {});
Tensor view_as_real(const Tensor& x);
Tensor view_as_complex(const Tensor& x);

Tensor select(const Tensor& x, int64_t dim, int64_t index);
// Positive step; start and end are wrapped and clamped as Python's slices are.
Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
Tensors split_with_sizes(const Tensor& x, const Dims& split_sizes, int64_t dim = 0);
Tensors chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);

// Zeros of `size` with g written where the view took its elements from.
Tensor select_backward(const Tensor& g, const Dims& size, int64_t dim, int64_t index);
Tensor slice_backward(const Tensor& g, const Dims& size, int64_t dim, int64_t start, int64_t end,
                      int64_t step);
Tensor diagonal_backward(const Tensor& g, const Dims& size, int64_t offset, int64_t dim1,
                         int64_t dim2);
// A 0-stride block of zeros: costs one element, for gradients that did not arrive.
Tensor zero_block(const Dims& size, DType dtype, Device device);
// Gradient of input i of an op that is flat in it.
Tensor zeros_for(const Vjp& c, int i);

}  // namespace clew

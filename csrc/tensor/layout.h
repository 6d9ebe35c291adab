// How the elements of a fresh result lie in memory, given the tensors that it is made from.
// May include: base, tensor.
// Invariant: the strides returned are dense: they show each element of their own once.
#pragma once
#include <optional>
#include <span>

#include "tensor/tensor.h"

namespace clew {

// Strides of a dense tensor of `sizes` whose dims lie in the order of the operands' dims; the first
// operand that orders a pair of dims decides. Operands broadcast to `sizes`.
Dims ordered_strides(const Dims& sizes, std::span<const Tensor> operands);
// Those of a copy of x that keeps its layout: x's own where they are dense.
Dims kept_strides(const Tensor& x);
// Strides of `sizes` with the channels last.
Dims channels_last_strides(const Dims& sizes);
// x as it is where it is dense with its dims in order, or (`last`) with the channels last; else a
// copy that is.
Tensor dense(const Tensor& x, bool last);
// Whether x has 4 or 5 dims and its channels lie last. Ambiguous strides count as in order.
bool has_channels_last(const Tensor& x);
// Strides of `sizes` in x's memory format; none where the dims lie in order, or `sizes` has another
// number of dims.
std::optional<Dims> format_strides(const Tensor& x, const Dims& sizes);

}  // namespace clew

// Softmax and log-softmax along one axis, and their gradients.
// May include: base, kernels.
// Invariant: floating dtypes, the same for all operands; equal shapes.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

void softmax(const NdView& dst, const NdView& src, int dim, bool log);
// `out` is the result of softmax (or log-softmax), `grad` the gradient of it.
void softmax_backward(const NdView& dst, const NdView& grad, const NdView& out, int dim, bool log);

}  // namespace clew::kernels

// Activations as C++ functions, for gradient rules and composites.
// May include: graph/op.h.
// Invariant: each function only calls apply() with its OpDef.
#pragma once
#include "graph/op.h"

namespace clew {

Tensor relu(const Tensor& input);
Tensor gelu(const Tensor& input, bool tanh_form = false);
Tensor softplus(const Tensor& input, double beta = 1, double threshold = 20);

}  // namespace clew

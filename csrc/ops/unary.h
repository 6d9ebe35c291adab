// Functions of one number as C++ functions, for gradient rules and composites.
// May include: graph/op.h.
// Invariant: each function only calls apply() with its OpDef.
#pragma once
#include "graph/op.h"

namespace clew {

Tensor exp(const Tensor& input);
Tensor log(const Tensor& input);
Tensor sqrt(const Tensor& input);
Tensor tanh(const Tensor& input);
Tensor sigmoid(const Tensor& input);
Tensor clone(const Tensor& input);
Tensor to_dtype(const Tensor& input, DType dtype);  // the input itself when it has that dtype
Tensor conj(const Tensor& input);  // the input itself when it is real

}  // namespace clew

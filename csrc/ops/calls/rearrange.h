// Reordering, repeating and padding as C++ functions.
// May include: ops/ops.h.
// Invariant: results are fresh unless said otherwise.
#pragma once
#include "ops/ops.h"

namespace clew {

Tensor flip(const Tensor& x, const Dims& dims);
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims);
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);
// pad: before and after the last dimension, then the one before it ...; negative numbers cut off.
Tensor constant_pad(const Tensor& x, const Dims& pad, const Scalar& value = 0);

}  // namespace clew

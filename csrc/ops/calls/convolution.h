// Convolutions as C++ functions, for gradient rules and composites.
// May include: ops/ops.h.
// Invariant: each function only calls apply() with its OpDef.
#pragma once
#include "ops/ops.h"

namespace clew {

// Result of nd spatial dims from a batched input; bias may be undefined. Lists have one entry a
// spatial dim.
Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const Dims& stride, const Dims& padding, const Dims& dilation, bool transposed,
                   const Dims& output_padding, int64_t groups);

}  // namespace clew

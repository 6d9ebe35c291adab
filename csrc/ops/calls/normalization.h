// Normalisation layers as C++ functions.
// May include: ops/ops.h.
// Invariant: each function only calls apply() with its OpDef.
#pragma once
#include "ops/ops.h"

namespace clew {

Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps = 1e-5);
Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                std::optional<double> eps = {});

}  // namespace clew

// Softmax and log-softmax as C++ functions.
// May include: ops/ops.h.
// Invariant: each function only calls apply() with its OpDef.
#pragma once
#include "ops/ops.h"

namespace clew {

Tensor softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});
Tensor log_softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});

}  // namespace clew

// Joining tensors: cat, stack and their relatives.
// May include: ops/ops.h.
// Invariant: results are fresh and contiguous.
#pragma once
#include "ops/ops.h"

namespace clew {

Tensor cat(std::span<const Tensor> tensors, int64_t dim = 0);
Tensor stack(std::span<const Tensor> tensors, int64_t dim = 0);

}  // namespace clew

// Sorting as C++ functions.
// May include: ops/ops.h.
// Invariant: each function only calls apply() with its OpDef.
#pragma once
#include "ops/ops.h"

namespace clew {

// (values, indices); stable.
Tensors sort(const Tensor& x, int64_t dim = -1, bool descending = false);
Tensors topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true);

}  // namespace clew

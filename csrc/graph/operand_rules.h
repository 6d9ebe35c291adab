// Which dtypes elementwise operations refuse, although they would be promoted.
// May include: graph/op.h.
// Invariant: called for all operands except those of one common dtype that has a loop.
#pragma once
#include "graph/op.h"

namespace clew {

// Raises for operands that PyTorch refuses.
void check_operands(const OpDef& op, std::span<const Tensor> in);

}  // namespace clew

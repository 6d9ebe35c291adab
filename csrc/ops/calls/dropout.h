// What dropout is made of.
// May include: graph.
// Invariant: none.
#pragma once
#include "graph/op.h"

namespace clew {

// x * mask * scale, the same bits as dropout that drew that mask.
Tensor masked_scale(const Tensor& x, const Tensor& mask, double scale);

}  // namespace clew

// Adding gradients up without a graph.
// May include: graph/node.h.
// Invariant: what is written is nobody else's.
#pragma once
#include "graph/node.h"

namespace clew {

// into += g, without a graph.
void accumulate_into(const Tensor& into, const Tensor& g);

}  // namespace clew

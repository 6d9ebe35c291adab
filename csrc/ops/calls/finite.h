// Whether a tensor holds NaN or infinity.
// May include: graph/node.h.
// Invariant: nothing is written.
#pragma once
#include "graph/node.h"

namespace clew {

// Of a floating or complex tensor with elements in memory.
NonFinite non_finite(const Tensor& t);

}  // namespace clew

// Which tensors an operation may be given as out=.
// May include: graph.
// Invariant: nothing is written before out was accepted.
#pragma once
#include "graph/op.h"

namespace clew::python {

// Refuses an out that shares memory with an input in a way that the operation cannot do.
void check_out_memory(const OpDef& op, std::span<const Tensor> in, const Tensor& out);

}  // namespace clew::python

// Which tensors an operation may be given as out=.
// May include: graph.
// Invariant: nothing is written before out was accepted.
#pragma once
#include "graph/op.h"

namespace clew::python {

// Refuses an out that autograd forbids to write now.
void check_out_written(const Tensor& out, std::string_view op);
// Refuses an out that shares memory with an input in a way that the operation cannot do.
void check_out_memory(const OpDef& op, std::span<const Tensor> in, const Tensor& out);

}  // namespace clew::python

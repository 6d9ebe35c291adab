// Adding gradients up without a graph.
// May include: graph/node.h.
// Invariant: what is written is nobody else's.
#pragma once
#include "graph/node.h"

namespace clew {

// into += g, without a graph.
void accumulate_into(const Tensor& into, const Tensor& g);
// Other tensors over the same elements, with the same history, for a rule in which Python code runs
// that may hold these and give them another shape.
std::vector<Tensor> out_of_reach(std::span<const Tensor> grads);

}  // namespace clew

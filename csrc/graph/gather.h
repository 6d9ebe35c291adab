// Adding gradients up without a graph.
// May include: graph/node.h.
// Invariant: what is written is nobody else's.
#pragma once
#include "graph/node.h"

namespace clew {

// into += g, without a graph.
void accumulate_into(const Tensor& into, const Tensor& g);
// The right to give a tensor a .grad or to add to it. Kernels of large gradients let other threads
// run, so that two backward calls would both read the old .grad and one gradient would be lost.
class GradTurn {
  Tensor of_;  // undefined for small gradients, which no thread can come between

 public:
  GradTurn(const Tensor& of, const Tensor& grad);
  ~GradTurn();
  GradTurn(const GradTurn&) = delete;
};
// Other tensors over the same elements, with the same history, for a rule in which Python code runs
// that may hold these and give them another shape.
std::vector<Tensor> out_of_reach(std::span<const Tensor> grads);

}  // namespace clew

// Running the hooks that backward meets.
// May include: graph/node.h.
// Invariant: a hook may add or remove hooks, those of the same node too.
#pragma once
#include "graph/node.h"

namespace clew {

// Runs the hooks of the tensors that n made, and sets the .grad of those that retain it.
void run_tensor_hooks(Node& n, std::span<Tensor> grads);
// Runs n's own hooks before its rule; they may replace the incoming gradients.
void run_pre_hooks(Node& n, std::span<Tensor> grads);
// Runs n's own hooks after its rule; they may replace the gradients that the rule returned.
void run_post_hooks(Node& n, std::span<Tensor> outs, std::span<const Tensor> grads);
// Run a leaf's hooks before and after its gradient is added to .grad.
void run_leaf_hooks(const Tensor& leaf, Tensor& grad);
void run_post_accumulate_hooks(TensorObj* leaf);

}  // namespace clew

// Running the hooks that backward meets.
// May include: graph/node.h.
// Invariant: a hook may add or remove hooks, those of the same node too.
#pragma once
#include "graph/node.h"

namespace clew {

// The hooks of the tensors that n made, and the .grad of those that keep theirs.
void run_tensor_hooks(Node& n, std::span<Tensor> grads);
// Of n itself, before its rule runs: they may replace its gradients.
void run_pre_hooks(Node& n, std::span<Tensor> grads);
// After it: they may replace what it gives.
void run_post_hooks(Node& n, std::span<Tensor> outs, std::span<const Tensor> grads);
// Of a leaf: before its gradient is added to .grad, and after.
void run_leaf_hooks(const Tensor& leaf, Tensor& grad);
void run_post_accumulate_hooks(TensorObj* leaf);

}  // namespace clew

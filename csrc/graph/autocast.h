// autocast: ops that choose the dtype they run in, by name, inside a region the user opens.
// May include: graph.
// Invariant: while an op with a choice runs, autocast is off, so that its parts run in what it
// chose.
#pragma once
#include "graph/op.h"

namespace clew {

// What the current thread has chosen; whether autocast is on is autocasts().
struct AutocastSettings {
  DType dtype = DType::BFloat16;
  bool keeps_casts = true;  // whether a parameter is cast once in a region
};
extern constinit thread_local AutocastSettings autocast;

// apply() inside a region: casts the inputs of ops that have a policy.
void apply_autocast(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs);

// t in that dtype if autocast may change it: a CPU tensor of at most 32 bit floating point.
Tensor autocast_to(const Tensor& t, DType dtype);

// Nested autocast regions of this thread. Kept casts are dropped when the outermost one ends.
void enter_autocast_region();
void exit_autocast_region();
int autocast_depth();
void forget_casts();

}  // namespace clew

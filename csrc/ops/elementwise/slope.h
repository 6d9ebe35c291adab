// Gradients of functions of one number in one pass over memory.
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: a fused loop runs only where backward is not recorded; a recorded gradient is composed
// of public ops, so that derivatives of it follow from theirs.
#pragma once
#include "graph/modes.h"
#include "graph/op.h"
#include "kernels/core/loop_tables.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/rules.h"
#include "ops/calls/unary.h"

namespace clew {

// grad times the slope that the loop computes of a saved input or output.
template <const kernels::LoopTable* loops>
inline constexpr OpDef slope_op =
    elementwise({.signature = "_slope(Tensor grad, Tensor saved) -> Tensor",
                 .doc = "grad * slope(saved)",
                 .loops = loops,
                 .no_vjp = composed_when_recorded,
                 .inplace = false});

enum class Of : uint8_t { input, output };

// The gradient rule of a function whose slope follows from its input or output alone: the fused
// loop, or `slope` in terms of ops.
template <const kernels::LoopTable* loops, Of saved, Partial slope> void fused_vjp(Vjp& c) {
  Tensor t = saved == Of::input ? c.in(0) : c.out();
  if (!modes.grad && !t.is_complex()) return c.set(0, apply(slope_op<loops>, {c.last_grad(), t}));
  c.set(0, c.grad() * conj(slope(c)));
}

}  // namespace clew

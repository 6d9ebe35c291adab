// Rules that operations of several families have: a result like the first input, gradients that
// pass or vanish. May include: ops/ops.h. Invariant: each holds for every dtype and any number of
// dimensions.
#pragma once
#include "ops/ops.h"

namespace clew {

// A result of the first input's dtype and sizes, in order.
inline void same_shape(const Call& c, OutSpecs& outs) {
  outs.add(c.in[0].dtype(), c.in[0].sizes());
}
// The gradient passes as it is; the engine fits its shape and dtype to the input's.
inline void same_vjp(Vjp& c) { c.set(0, c.grad()); }
// A result that does not change for small changes of the inputs.
void zero_vjp(Vjp& c);

// Of a kernel that makes gradients.
constexpr NoRule composed_when_recorded =
    no_rule("gradients that are recorded are composed of other operations");
// Of a kernel that a public function asks for only then.
constexpr NoRule only_unrecorded = no_rule(
    "it runs only where no graph is recorded; otherwise its function is made of other operations");

}  // namespace clew

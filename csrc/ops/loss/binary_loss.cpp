// Cross entropies of two classes: of probabilities and of scores.
// May include: ops, graph, tensor, kernels.
// Invariant: a recorded gradient is composed of public ops.
#include "graph/modes.h"
#include "kernels/core/loop_tables.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/rules.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/ops.h"

namespace clew {
namespace {

namespace table = kernels::table;

constexpr OpDef bce_slope_op = elementwise(
    {.signature = "_binary_cross_entropy_slope(Tensor input, Tensor target, Tensor grad) -> Tensor",
     .doc = "grad * (input - target) / max(input * (1 - input), 1e-12)",
     .loops = &table::bce_slope,
     .no_vjp = composed_when_recorded,
     .inplace = false});
void bce_vjp(Vjp& c) {
  Tensor x = c.in(0), t = c.in(1), g = c.grad();
  if (c.needs(0)) {
    if (modes.grad)
      c.set(0, g * ((x - t) / clamp(x * (1 - x), Scalar(1e-12), Scalar())));
    else
      c.set(0, apply(bce_slope_op, {x, t, g}));
  }
  if (c.needs(1)) {
    auto held = [](const Tensor& log) { return clamp(log, Scalar(-100.0), Scalar()); };
    c.set(1, g * (held(log1p(-x)) - held(log(x))));
  }
}
constexpr OpDef bce_op = elementwise(
    {.signature = "_binary_cross_entropy(Tensor input, Tensor target) -> Tensor",
     .doc = "-target * log(input) - (1 - target) * log(1 - input), logarithms at least -100",
     .promote = Promote::to_float,
     .loops = &table::bce,
     .saves = {.always = in(0) | in(1)},
     .vjp = bce_vjp,
     .inplace = false,
     .flops = "6 * numel(input)"});

constexpr OpDef bce_logits_slope_op =
    elementwise({.signature = "_binary_cross_entropy_with_logits_slope(Tensor input, Tensor "
                              "target, Tensor grad) -> Tensor",
                 .doc = "grad * (sigmoid(input) - target)",
                 .loops = &table::bce_logits_slope,
                 .no_vjp = composed_when_recorded,
                 .inplace = false});
void bce_logits_vjp(Vjp& c) {
  Tensor x = c.in(0), t = c.in(1), g = c.grad();
  if (c.needs(0)) {
    if (modes.grad)
      c.set(0, g * ((1 - t) * sigmoid(x) - t * sigmoid(-x)));
    else
      c.set(0, apply(bce_logits_slope_op, {x, t, g}));
  }
  if (c.needs(1)) c.set(1, -g * x);
}
constexpr OpDef bce_logits_op = elementwise(
    {.signature = "_binary_cross_entropy_with_logits(Tensor input, Tensor target) -> Tensor",
     .doc = "_binary_cross_entropy() of sigmoid(input)",
     .promote = Promote::to_float,
     .loops = &table::bce_logits,
     .saves = {.always = in(0) | in(1)},
     .vjp = bce_logits_vjp,
     .inplace = false,
     .flops = "6 * numel(input)"});

constexpr const OpDef* list[] = {&bce_op, &bce_logits_op};

}  // namespace

extern const OpList binary_loss_ops;
const OpList binary_loss_ops = op_list(list);

}  // namespace clew

// Activations made of straight lines: leaky_relu, prelu, hardtanh, hardsigmoid, hardswish,
// shrinks, threshold.
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: each gradient is one fused loop; gradients at kinks are PyTorch's.
#include "graph/modes.h"
#include "kernels/core/loop_tables.h"
#include "ops/calls/activation.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/ops.h"

namespace clew {

namespace table = kernels::table;

namespace {

// grad * f'(input) of a function of straight lines: linear in grad, flat in input almost
// everywhere.
template <const OpDef& self, class Attrs> void line_vjp(Vjp& c) {
  if (c.needs(0)) {
    if constexpr (std::is_void_v<Attrs>)
      c.set(0, apply(self, {c.grad(), c.in(1)}));
    else
      c.set(0, apply(self, {c.grad(), c.in(1)}, c.as<Attrs>()));
  }
  if (c.needs(1)) c.set(1, zeros_for(c, 1));
}
// The rule is named here, because GCC 14 does not instantiate it when it is passed as an argument.
template <const OpDef& self, class Attrs>
consteval OpDef line_op(const char* signature, const kernels::LoopTable* loops,
                        const AttrInfo* attrs) {
  return elementwise({.signature = signature,
                      .doc = "grad times the slope at input",
                      .loops = loops,
                      .saves = {.always = in(1)},
                      .vjp = line_vjp<self, Attrs>,
                      .attrs = attrs,
                      .inplace = false});
}
template <const OpDef& backward, class Attrs> void by_input(Vjp& c) {
  if constexpr (std::is_void_v<Attrs>)
    c.set(0, apply(backward, {c.last_grad(), c.in(0)}));
  else
    c.set(0, apply(backward, {c.last_grad(), c.in(0)}, c.as<Attrs>()));
}

// --- leaky_relu, prelu ---

struct SlopeAttrs {
  Scalar negative_slope = 0.01;
  static constexpr auto members() { return std::tuple(&SlopeAttrs::negative_slope); }
};
extern const OpDef leaky_relu_backward_op;
constexpr OpDef leaky_relu_backward_op = line_op<leaky_relu_backward_op, SlopeAttrs>(
    "_leaky_relu_backward(Tensor grad, Tensor input, Scalar negative_slope) -> Tensor",
    &table::leaky_relu_backward, &attr_info<SlopeAttrs>);
constexpr OpDef leaky_relu_op = elementwise({
    .signature =
        "nn.functional.leaky_relu(Tensor input, Scalar negative_slope=0.01, bool inplace=False)"
        " -> Tensor",
    .doc = R"(The positive part of every element and a small share of the negative part.

out = input if input > 0 else negative_slope * input

Args:
    input: any shape.
    negative_slope: the share.
    inplace: whether to write the result into input.
Returns:
    a tensor like input.

>>> clew.nn.functional.leaky_relu(clew.tensor([-1., 2.]), 0.1)
tensor([-0.1000,  2.0000])
)",
    .loops = &table::leaky_relu,
    .saves = input_saved,
    .vjp = by_input<leaky_relu_backward_op, SlopeAttrs>,
    .attrs = &attr_info<SlopeAttrs>,
    .offer = Offer::function,
});

// grad times the slope, and what a weight gets: each one loop, where backward is not recorded.
constexpr OpDef prelu_slope_op =
    elementwise({.signature = "_prelu_slope(Tensor grad, Tensor input, Tensor weight) -> Tensor",
                 .doc = "grad if input > 0 else grad * weight",
                 .loops = &table::prelu_slope,
                 .no_vjp = composed_when_recorded,
                 .inplace = false});
constexpr OpDef prelu_share_op =
    elementwise({.signature = "_prelu_share(Tensor grad, Tensor input) -> Tensor",
                 .doc = "0 if input > 0 else grad * input",
                 .loops = &table::prelu_share,
                 .no_vjp = composed_when_recorded,
                 .inplace = false});
void prelu_vjp(Vjp& c) {
  Tensor x = c.in(0);
  if (!modes.grad) {
    if (c.needs(1)) c.set(1, apply(prelu_share_op, {c.grad(), x}));
    if (c.needs(0)) c.set(0, apply(prelu_slope_op, {c.last_grad(), x, c.in(1)}));
    return;
  }
  Tensor above = gt(x, number(0));
  if (c.needs(1)) c.set(1, where(above, number(0), c.grad() * x));
  if (c.needs(0)) c.set(0, where(above, c.grad(), c.grad() * c.in(1)));
}
constexpr OpDef prelu_plain_op =
    elementwise({.signature = "_prelu(Tensor input, Tensor weight) -> Tensor",
                 .doc = "prelu() with a weight that broadcasts",
                 .loops = &table::prelu,
                 .saves = {.always = in(0), .when = {in(1)}},
                 .vjp = prelu_vjp,
                 .inplace = false});
void prelu_run(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  Tensor weight = c.in[1];
  require(weight.ndim() <= 1, "prelu: weight must be a number or a 1-dimensional tensor; got ",
          weight);
  require(weight.dtype() == x.dtype(), "prelu: weight must have input's dtype; got ", weight,
          " and ", x);
  if (weight.ndim() == 1 && weight.numel() != 1) {
    require(x.ndim() > 0, "prelu: a weight for each channel needs an input with dimensions; got ",
            x);
    int64_t channels = x.ndim() > 1 ? x.size(1) : 1;
    require(weight.numel() == channels,
            "prelu: mismatch of parameter numbers and input channel size; got ", weight.numel(),
            " and ", channels);
    Dims shape(x.ndim(), 1);
    shape[1] = channels;
    weight = reshape(weight, shape);
  } else if (weight.ndim() == 1) {
    weight = reshape(weight, Dims());
  }
  outs.push_back(apply(prelu_plain_op, {x, weight}));
}
constexpr OpDef prelu_op = composite({
    .signature = "prelu(Tensor input, Tensor weight) -> Tensor",
    .doc = R"(leaky_relu with a learned slope, one for all or one for each channel (dimension 1).

out = input if input > 0 else weight * input

Args:
    input: any shape.
    weight: the slopes, of input's dtype.
Returns:
    a tensor like input.

>>> clew.prelu(clew.tensor([-1., 2.]), clew.tensor([0.5]))
tensor([-0.5000,  2.0000])
)",
    .run = prelu_run,
    .autocast = Autocast::lower,
});

// --- hardtanh, relu6 ---

struct RangeAttrs {
  Scalar min_val = -1.0;
  Scalar max_val = 1.0;
  static constexpr auto members() { return std::tuple(&RangeAttrs::min_val, &RangeAttrs::max_val); }
};
extern const OpDef hardtanh_backward_op;
constexpr OpDef hardtanh_backward_op = line_op<hardtanh_backward_op, RangeAttrs>(
    "_hardtanh_backward(Tensor grad, Tensor input, Scalar min_val, Scalar max_val) -> Tensor",
    &table::hardtanh_backward, &attr_info<RangeAttrs>);
constexpr OpDef hardtanh_op = elementwise({
    .signature = "nn.functional.hardtanh(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0, "
                 "bool inplace=False) -> Tensor",
    .doc = R"(Limits every element to a range.

out = min(max(input, min_val), max_val)

Args:
    input: any shape.
    min_val: the lower bound.
    max_val: the upper bound.
    inplace: whether to write the result into input.
Returns:
    a tensor like input.

>>> clew.nn.functional.hardtanh(clew.tensor([-2., 0.5]))
tensor([-1.0000,  0.5000])
)",
    .loops = &table::clamp,
    .saves = input_saved,
    .vjp = by_input<hardtanh_backward_op, RangeAttrs>,
    .attrs = &attr_info<RangeAttrs>,
    .offer = Offer::function,
});
void relu6_run(const Call& c, Tensors& outs) {
  outs.push_back(apply(hardtanh_op, {c.in[0]}, RangeAttrs{0.0, 6.0}));
}
constexpr OpDef relu6_op = composite({
    .signature = "nn.functional.relu6(Tensor input, bool inplace=False) -> Tensor",
    .doc = R"(Limits every element to the range from 0 to 6.

out = min(max(input, 0), 6)

Args:
    input: any shape.
    inplace: whether to write the result into input.
Returns:
    a tensor like input.

>>> clew.nn.functional.relu6(clew.tensor([-1., 2., 8.]))
tensor([0., 2., 6.])
)",
    .run = relu6_run,
    .inplace = true,
    .offer = Offer::function,
});

// --- hardsigmoid, hardswish ---

extern const OpDef hardsigmoid_backward_op;
constexpr OpDef hardsigmoid_backward_op = line_op<hardsigmoid_backward_op, void>(
    "_hardsigmoid_backward(Tensor grad, Tensor input) -> Tensor", &table::hardsigmoid_backward,
    nullptr);
constexpr OpDef hardsigmoid_alone_op =
    unary_same<"nn.functional.hardsigmoid", "The logistic function by straight lines.",
               "min(max(input + 3, 0), 6) / 6", "clew.tensor([-4., 0.])",
               "tensor([0.0000, 0.5000])">({.loops = &table::hardsigmoid,
                                            .saves = input_saved,
                                            .vjp = by_input<hardsigmoid_backward_op, void>});
constexpr OpDef hardsigmoid_op =
    functional<hardsigmoid_alone_op, "hardsigmoid", "clew.nn.functional.hardsigmoid(">();

void hardswish_backward_vjp(Vjp& c);
constexpr OpDef hardswish_backward_op = elementwise({
    .signature = "_hardswish_backward(Tensor grad, Tensor input) -> Tensor",
    .doc = "grad times the slope at input",
    .loops = &table::hardswish_backward,
    .saves = {.when = {in(1), in(0) | in(1)}},
    .vjp = hardswish_backward_vjp,
    .inplace = false,
});
void hardswish_backward_vjp(Vjp& c) {
  Tensor x = c.in(1);
  if (c.needs(0)) c.set(0, apply(hardswish_backward_op, {c.grad(), x}));
  if (c.needs(1)) {
    Tensor inside = logical_and(gt(x, number(-3)), lt(x, number(3)));
    c.set(1, where(inside, c.grad() * c.in(0) / 3, number(0)));
  }
}
constexpr OpDef hardswish_alone_op =
    unary_same<"nn.functional.hardswish", "Every element times its hardsigmoid.",
               "input * min(max(input + 3, 0), 6) / 6", "clew.tensor([-4., 1.])",
               "tensor([-0.0000,  0.6667])">({.loops = &table::hardswish,
                                              .saves = input_saved,
                                              .vjp = by_input<hardswish_backward_op, void>});
constexpr OpDef hardswish_op =
    functional<hardswish_alone_op, "hardswish", "clew.nn.functional.hardswish(">();

// --- shrinks, threshold ---

struct LambdaAttrs {
  Scalar lambd = 0.5;
  static constexpr auto members() { return std::tuple(&LambdaAttrs::lambd); }
};
extern const OpDef shrink_backward_op;
constexpr OpDef shrink_backward_op = line_op<shrink_backward_op, LambdaAttrs>(
    "_shrink_backward(Tensor grad, Tensor input, Scalar lambd) -> Tensor", &table::shrink_backward,
    &attr_info<LambdaAttrs>);
constexpr OpDef softshrink_plain_op = elementwise({
    .signature = "_softshrink(Tensor input, Scalar lambd) -> Tensor",
    .doc = "softshrink() with a checked lambd",
    .loops = &table::softshrink,
    .saves = input_saved,
    .vjp = by_input<shrink_backward_op, LambdaAttrs>,
    .attrs = &attr_info<LambdaAttrs>,
    .inplace = false,
});
void softshrink_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<LambdaAttrs>();
  double lambd = a.lambd.to_double();
  require(lambd >= 0, "softshrink: lambd must be greater or equal to 0; got ", lambd);
  outs.push_back(apply(softshrink_plain_op, {c.in[0]}, a));
}
constexpr OpDef softshrink_op = composite({
    .signature = "nn.functional.softshrink(Tensor input, Scalar lambd=0.5) -> Tensor",
    .doc = R"(Moves every element towards 0 by lambd and stops there.

out = sign(input) * max(|input| - lambd, 0)

Args:
    input: any shape.
    lambd: the distance, not negative.
Returns:
    a tensor like input.

>>> clew.nn.functional.softshrink(clew.tensor([-1., 0.3, 2.]))
tensor([-0.5000,  0.0000,  1.5000])
)",
    .run = softshrink_run,
    .attrs = &attr_info<LambdaAttrs>,
    .offer = Offer::function,
});
constexpr OpDef hardshrink_op = elementwise({
    .signature = "hardshrink(Tensor input, Scalar lambd=0.5) -> Tensor",
    .doc = R"(Every element whose size is above lambd; 0 for the others.

out = input if |input| > lambd else 0

Args:
    input: any shape.
    lambd: the bound.
Returns:
    a tensor like input.

>>> clew.hardshrink(clew.tensor([-1., 0.3, 2.]))
tensor([-1.,  0.,  2.])
)",
    .loops = &table::hardshrink,
    .saves = input_saved,
    .vjp = by_input<shrink_backward_op, LambdaAttrs>,
    .attrs = &attr_info<LambdaAttrs>,
    .inplace = false,
    .out_dtype = OutDtype::own,
});

struct ThresholdAttrs {
  Scalar threshold;
  Scalar value;
  static constexpr auto members() {
    return std::tuple(&ThresholdAttrs::threshold, &ThresholdAttrs::value);
  }
};
struct BoundAttrs {
  Scalar threshold;
  static constexpr auto members() { return std::tuple(&BoundAttrs::threshold); }
};
extern const OpDef threshold_backward_op;
constexpr OpDef threshold_backward_op = line_op<threshold_backward_op, BoundAttrs>(
    "_threshold_backward(Tensor grad, Tensor input, Scalar threshold) -> Tensor",
    &table::threshold_backward, &attr_info<BoundAttrs>);
void threshold_vjp(Vjp& c) {
  c.set(0, apply(threshold_backward_op, {c.last_grad(), c.in(0)},
                 BoundAttrs{c.as<ThresholdAttrs>().threshold}));
}
constexpr OpDef threshold_op = elementwise({
    .signature = "threshold(Tensor input, Scalar threshold, Scalar value) -> Tensor",
    .doc = R"(Replaces every element that is not above a threshold.

out = input if input > threshold else value

Args:
    input: any shape.
    threshold: the bound.
    value: what stands in.
Returns:
    a tensor like input.

>>> clew.threshold(clew.tensor([-1., 2.]), 0, 9)
tensor([9., 2.])
)",
    .loops = &table::threshold,
    .saves = input_saved,
    .vjp = threshold_vjp,
    .attrs = &attr_info<ThresholdAttrs>,
    .offer = Offer::function,
});
constexpr OpDef f_threshold_op = also(
    threshold_op,
    "nn.functional.threshold(Tensor input, Scalar threshold, Scalar value, bool inplace=False) "
    "-> Tensor",
    functional_doc<threshold_op, "threshold", "clew.threshold(">);

}  // namespace

static constexpr const OpDef* activation_hard_list[] = {
    &leaky_relu_backward_op,
    &leaky_relu_op,
    &prelu_plain_op,
    &prelu_op,
    &hardtanh_backward_op,
    &hardtanh_op,
    &relu6_op,
    &hardsigmoid_op,
    &hardsigmoid_backward_op,
    &hardswish_backward_op,
    &hardswish_op,
    &shrink_backward_op,
    &softshrink_plain_op,
    &softshrink_op,
    &hardshrink_op,
    &threshold_op,
    &threshold_backward_op,
    &f_threshold_op,
    renamed<prelu_op, "nn.functional.prelu">,
    renamed<hardshrink_op, "nn.functional.hardshrink">,
};
extern const OpList activation_hard_ops;
const OpList activation_hard_ops = op_list(activation_hard_list);

}  // namespace clew

// Smooth activations and relu: gelu, silu, mish, softplus, logsigmoid, elu, softsign.
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: each gradient is one fused loop (_x_backward) that has a gradient of its own.
#include "ops/calls/activation.h"

#include "kernels/core/loop_tables.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/ops.h"

namespace clew {

namespace table = kernels::table;

namespace {

// The gradient op of an activation f: grad * f'(input). Its derivative with respect to grad is the
// op itself; with respect to input it is grad * f''(input), where `second` gives f''.
using Second = Tensor (*)(const Tensor& x);
template <const OpDef& self, Second second> void slope_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, apply(self, {c.grad(), c.in(1)}));
  if (c.needs(1)) c.set(1, c.grad() * c.in(0) * second(c.in(1)));
}
// The rule is named here, because GCC 14 does not instantiate it when it is passed as an argument.
template <const OpDef& self, Second second>
consteval OpDef gradient_op(const char* signature, const char* doc,
                            const kernels::LoopTable* loops) {
  return elementwise({.signature = signature,
                      .doc = doc,
                      .loops = loops,
                      .saves = {.when = {in(1), in(0) | in(1)}},
                      .vjp = slope_vjp<self, second>,
                      .inplace = false});
}
template <const OpDef& backward> void by_input(Vjp& c) {
  c.set(0, apply(backward, {c.last_grad(), c.in(0)}));
}

// --- relu ---

extern const OpDef relu_backward_op;
void relu_backward_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, apply(relu_backward_op, {c.grad(), c.in(1)}));
  if (c.needs(1)) c.set(1, zeros_for(c, 1));
}
constexpr OpDef relu_backward_op = elementwise({
    .signature = "_relu_backward(Tensor grad, Tensor output) -> Tensor",
    .doc = "grad where output > 0",
    .loops = &table::relu_backward,
    .saves = {.always = in(1)},
    .vjp = relu_backward_vjp,
    .inplace = false,
});
void relu_vjp(Vjp& c) { c.set(0, apply(relu_backward_op, {c.last_grad(), c.out()})); }
constexpr OpDef relu_op = unary_same<"relu", "The positive part of every element.", "max(input, 0)",
                                     "clew.tensor([-1., 2.])", "tensor([0., 2.])">(
    {.loops = &table::relu, .saves = {.always = out(0)}, .vjp = relu_vjp});

constexpr OpDef f_relu_op = functional<relu_op, "relu", "clew.relu(">();

// --- gelu ---

constexpr double root_2_over_pi = 0.79788456080286535588;
constexpr double root_1_over_2pi = 0.39894228040143267794;
constexpr double gelu_cubic = 0.044715;

extern const OpDef gelu_backward_op;
Tensor gelu_second(const Tensor& x) {
  Tensor z = square(x);
  return exp(z * -0.5) * (2 - z) * root_1_over_2pi;
}
constexpr OpDef gelu_backward_op = gradient_op<gelu_backward_op, gelu_second>(
    "_gelu_backward(Tensor grad, Tensor input) -> Tensor", "grad * gelu'(input)",
    &table::gelu_backward);

extern const OpDef gelu_tanh_backward_op;
Tensor gelu_tanh_second(const Tensor& x) {
  Tensor z = square(x);
  Tensor t = tanh((x + x * z * gelu_cubic) * root_2_over_pi);
  Tensor sech2 = 1 - square(t);
  Tensor du = (z * (3 * gelu_cubic) + 1) * root_2_over_pi;
  Tensor ddu = x * (6 * gelu_cubic * root_2_over_pi);
  return sech2 * (du + 0.5 * x * ddu - x * t * square(du));
}
constexpr OpDef gelu_tanh_backward_op = gradient_op<gelu_tanh_backward_op, gelu_tanh_second>(
    "_gelu_tanh_backward(Tensor grad, Tensor input) -> Tensor", "grad * gelu'(input), tanh form",
    &table::gelu_tanh_backward);

constexpr OpDef gelu_plain_op = elementwise({
    .signature = "_gelu(Tensor input) -> Tensor",
    .doc = "gelu by the error function",
    .loops = &table::gelu,
    .saves = input_saved,
    .vjp = by_input<gelu_backward_op>,
});
constexpr OpDef gelu_tanh_op = elementwise({
    .signature = "_gelu_tanh(Tensor input) -> Tensor",
    .doc = "gelu by its tanh approximation",
    .loops = &table::gelu_tanh,
    .saves = input_saved,
    .vjp = by_input<gelu_tanh_backward_op>,
});
struct GeluAttrs {
  Str approximate = "none";
  static constexpr auto members() { return std::tuple(&GeluAttrs::approximate); }
};
void gelu_run(const Call& c, Tensors& outs) {
  const Str& form = c.as<GeluAttrs>().approximate;
  require(form == "none" || form == "tanh", "gelu: approximate must be 'none' or 'tanh'; got '",
          form.text, "'");
  outs.push_back(gelu(c.in[0], form == "tanh"));
}
constexpr OpDef gelu_op = composite({
    .signature = "nn.functional.gelu(Tensor input, *, str approximate='none') -> Tensor",
    .doc = R"(Every element times the normal distribution function of it.

out = input * (1 + erf(input / sqrt(2))) / 2

Args:
    input: any shape.
    approximate: 'none', or 'tanh' for x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2.
Returns:
    a tensor like input.

>>> clew.nn.functional.gelu(clew.tensor([0., 1.]))
tensor([0.0000, 0.8413])
)",
    .run = gelu_run,
    .attrs = &attr_info<GeluAttrs>,
    .offer = Offer::function,
});

// --- silu, mish ---

extern const OpDef silu_backward_op;
Tensor silu_second(const Tensor& x) {
  Tensor s = sigmoid(x);
  return s * (1 - s) * (2 + x * (1 - 2 * s));
}
constexpr OpDef silu_backward_op = gradient_op<silu_backward_op, silu_second>(
    "_silu_backward(Tensor grad, Tensor input) -> Tensor", "grad * silu'(input)",
    &table::silu_backward);
constexpr OpDef silu_alone_op =
    unary_same<"nn.functional.silu", "Every element times its logistic function.",
               "input / (1 + e ** -input)", "clew.tensor([0., 1.])", "tensor([0.0000, 0.7311])">(
        {.loops = &table::silu, .saves = input_saved, .vjp = by_input<silu_backward_op>});
constexpr OpDef silu_op = functional<silu_alone_op, "silu", "clew.nn.functional.silu(">();

extern const OpDef mish_backward_op;
Tensor mish_second(const Tensor& x) {
  // With t = tanh(softplus(x)), s = sigmoid(x): t' = s (1 - t^2), and mish' = t + x t'.
  Tensor t = tanh(softplus(x));
  Tensor s = sigmoid(x);
  Tensor dt = s * (1 - square(t));
  Tensor ddt = dt * (1 - s - 2 * t * s);
  return 2 * dt + x * ddt;
}
constexpr OpDef mish_backward_op = gradient_op<mish_backward_op, mish_second>(
    "_mish_backward(Tensor grad, Tensor input) -> Tensor", "grad * mish'(input)",
    &table::mish_backward);
constexpr OpDef mish_alone_op =
    unary_same<"nn.functional.mish", "Every element times the tanh of its softplus.",
               "input * tanh(log(1 + e ** input))", "clew.tensor([0., 1.])",
               "tensor([0.0000, 0.8651])">(
        {.loops = &table::mish, .saves = input_saved, .vjp = by_input<mish_backward_op>});
constexpr OpDef mish_op = functional<mish_alone_op, "mish", "clew.nn.functional.mish(">();

// --- softplus, logsigmoid ---

struct SoftplusAttrs {
  Scalar beta = 1.0;
  Scalar threshold = 20.0;
  static constexpr auto members() {
    return std::tuple(&SoftplusAttrs::beta, &SoftplusAttrs::threshold);
  }
};
extern const OpDef softplus_backward_op;
void softplus_backward_vjp(Vjp& c) {
  const auto& a = c.as<SoftplusAttrs>();
  if (c.needs(0)) c.set(0, apply(softplus_backward_op, {c.grad(), c.in(1)}, a));
  if (c.needs(1)) {
    Tensor z = c.in(1) * a.beta;
    Tensor s = sigmoid(z);
    Tensor bend = c.grad() * c.in(0) * (s * (1 - s) * a.beta);
    c.set(1, where(gt(z, number(a.threshold)), number(0), bend));
  }
}
constexpr OpDef softplus_backward_op = elementwise({
    .signature =
        "_softplus_backward(Tensor grad, Tensor input, Scalar beta, Scalar threshold) -> Tensor",
    .doc = "grad * softplus'(input)",
    .loops = &table::softplus_backward,
    .saves = {.when = {in(1), in(0) | in(1)}},
    .vjp = softplus_backward_vjp,
    .attrs = &attr_info<SoftplusAttrs>,
    .inplace = false,
});
void softplus_vjp(Vjp& c) {
  c.set(0, apply(softplus_backward_op, {c.last_grad(), c.in(0)}, c.as<SoftplusAttrs>()));
}
constexpr OpDef softplus_op = elementwise({
    .signature =
        "nn.functional.softplus(Tensor input, Scalar beta=1.0, Scalar threshold=20.0) -> Tensor",
    .doc = R"(A smooth form of relu.

out = log(1 + e ** (beta * input)) / beta

Args:
    input: any shape.
    beta: how sharp the bend is.
    threshold: where beta * input is above it, input is returned.
Returns:
    a tensor like input.

>>> clew.nn.functional.softplus(clew.tensor([0., 1.]))
tensor([0.6931, 1.3133])
)",
    .loops = &table::softplus,
    .saves = input_saved,
    .vjp = softplus_vjp,
    .attrs = &attr_info<SoftplusAttrs>,
    .inplace = false,
    .offer = Offer::function,
    .out_dtype = OutDtype::own,
});

extern const OpDef logsigmoid_backward_op;
Tensor logsigmoid_second(const Tensor& x) {
  Tensor s = sigmoid(x);
  return s * (s - 1);
}
constexpr OpDef logsigmoid_backward_op = gradient_op<logsigmoid_backward_op, logsigmoid_second>(
    "_logsigmoid_backward(Tensor grad, Tensor input) -> Tensor", "grad * sigmoid(-input)",
    &table::logsigmoid_backward);
constexpr OpDef logsigmoid_op =
    unary_same<"nn.functional.logsigmoid", "The logarithm of the logistic function.",
               "-log(1 + e ** -input)", "clew.tensor([0., 1.])", "tensor([-0.6931, -0.3133])">(
        {.loops = &table::logsigmoid,
         .saves = input_saved,
         .vjp = by_input<logsigmoid_backward_op>,
         .out_dtype = OutDtype::own});

// x h(|x|) with h(r) = 1 / (1 + r); a complex x also moves |x|.
void softsign_vjp(Vjp& c) {
  Tensor x = c.in(0), g = c.grad();
  Tensor h = reciprocal(abs(x) + 1);
  if (!x.is_complex()) return c.set(0, g * square(h));
  c.set(0, g * h - real(conj(g) * x) * square(h) * sgn(x));
}
constexpr OpDef softsign_op =
    unary<"nn.functional.softsign", "Every element divided by one plus its size.",
          "input / (1 + |input|)", "clew.tensor([0., 1.])", "tensor([0.0000, 0.5000])">(
        {.loops = &table::softsign, .saves = input_saved, .vjp = softsign_vjp});

void tanhshrink_run(const Call& c, Tensors& outs) { outs.push_back(c.in[0] - tanh(c.in[0])); }
constexpr OpDef tanhshrink_op = composite({
    .signature = "nn.functional.tanhshrink(Tensor input) -> Tensor",
    .doc = R"(Every element minus its hyperbolic tangent.

out = input - tanh(input)

Args:
    input: any shape.
Returns:
    a tensor like input.

>>> clew.nn.functional.tanhshrink(clew.tensor([0., 1.]))
tensor([0.0000, 0.2384])
)",
    .run = tanhshrink_run,
    .offer = Offer::function,
});

// --- elu and its forms ---

struct EluAttrs {
  Scalar alpha = 1.0;
  Scalar scale = 1.0;
  Scalar input_scale = 1.0;
  static constexpr auto members() {
    return std::tuple(&EluAttrs::alpha, &EluAttrs::scale, &EluAttrs::input_scale);
  }
};
extern const OpDef elu_backward_op;
void elu_backward_vjp(Vjp& c) {
  const auto& a = c.as<EluAttrs>();
  if (c.needs(0)) c.set(0, apply(elu_backward_op, {c.grad(), c.in(1)}, a));
  if (c.needs(1)) {
    Tensor x = c.in(1);
    double factor = a.alpha.to_double() * a.scale.to_double();
    double inner = a.input_scale.to_double();
    // The exponent is kept from overflowing where it is not used.
    Tensor bend = exp(clamp(x * inner, Scalar(), Scalar(0.0))) * (factor * inner * inner);
    c.set(1, where(ge(x, number(0)), number(0), c.grad() * c.in(0) * bend));
  }
}
constexpr OpDef elu_backward_op = elementwise({
    .signature =
        "_elu_backward(Tensor grad, Tensor input, Scalar alpha, Scalar scale, Scalar input_scale)"
        " -> Tensor",
    .doc = "grad * elu'(input)",
    .loops = &table::elu_backward,
    .saves = {.when = {in(1), in(0) | in(1)}},
    .vjp = elu_backward_vjp,
    .attrs = &attr_info<EluAttrs>,
    .inplace = false,
});
void elu_vjp(Vjp& c) {
  c.set(0, apply(elu_backward_op, {c.last_grad(), c.in(0)}, c.as<EluAttrs>()));
}
constexpr OpDef elu_plain_op = elementwise({
    .signature = "_elu(Tensor input, Scalar alpha, Scalar scale, Scalar input_scale) -> Tensor",
    .doc = "scale * (input if input > 0 else alpha * (e ** (input_scale * input) - 1))",
    .loops = &table::elu,
    .saves = input_saved,
    .vjp = elu_vjp,
    .attrs = &attr_info<EluAttrs>,
});

struct ElementAttrs {
  double alpha = 1.0;
  static constexpr auto members() { return std::tuple(&ElementAttrs::alpha); }
};
void elu_run(const Call& c, Tensors& outs) {
  outs.push_back(
      apply(elu_plain_op, {c.in[0]}, EluAttrs{Scalar(c.as<ElementAttrs>().alpha), 1.0, 1.0}));
}
constexpr OpDef elu_op = composite({
    .signature = "nn.functional.elu(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor",
    .doc = R"(The exponential linear unit.

out = input if input > 0 else alpha * (e ** input - 1)

Args:
    input: any shape.
    alpha: the size of the lower limit.
    inplace: whether to write the result into input.
Returns:
    a tensor like input.

>>> clew.nn.functional.elu(clew.tensor([-1., 1.]))
tensor([-0.6321,  1.0000])
)",
    .run = elu_run,
    .attrs = &attr_info<ElementAttrs>,
    .inplace = true,
    .offer = Offer::function,
});
void celu_run(const Call& c, Tensors& outs) {
  double alpha = c.as<ElementAttrs>().alpha;
  if (alpha == 0) fail("celu: alpha must not be 0");
  outs.push_back(apply(elu_plain_op, {c.in[0]}, EluAttrs{Scalar(alpha), 1.0, Scalar(1 / alpha)}));
}
constexpr OpDef celu_op = composite({
    .signature = "celu(Tensor input, float alpha=1.0) -> Tensor",
    .doc = R"(The continuously differentiable exponential linear unit.

out = input if input > 0 else alpha * (e ** (input / alpha) - 1)

Args:
    input: any shape.
    alpha: the size of the lower limit.
Returns:
    a tensor like input.

>>> clew.celu(clew.tensor([-1., 1.]))
tensor([-0.6321,  1.0000])
)",
    .run = celu_run,
    .attrs = &attr_info<ElementAttrs>,
    .inplace = true,
    .offer = Offer::function,
});
constexpr OpDef f_celu_op =
    also(celu_op, "nn.functional.celu(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor",
         functional_doc<celu_op, "celu", "clew.celu(">);
void selu_run(const Call& c, Tensors& outs) {
  outs.push_back(
      apply(elu_plain_op, {c.in[0]}, EluAttrs{1.6732632423543772, 1.0507009873554805, 1.0}));
}
constexpr OpDef selu_op = composite({
    .signature = "selu(Tensor input) -> Tensor",
    .doc = R"(The scaled exponential linear unit.

out = 1.0507 * (input if input > 0 else 1.6733 * (e ** input - 1))

Args:
    input: any shape.
Returns:
    a tensor like input.

>>> clew.selu(clew.tensor([-1., 1.]))
tensor([-1.1113,  1.0507])
)",
    .run = selu_run,
    .inplace = true,
    .offer = Offer::function,
});
constexpr OpDef f_selu_op = functional<selu_op, "selu", "clew.selu(">();

}  // namespace

Tensor relu(const Tensor& input) { return apply(relu_op, {input}); }
Tensor gelu(const Tensor& input, bool tanh_form) {
  return apply(tanh_form ? gelu_tanh_op : gelu_plain_op, {input});
}
Tensor softplus(const Tensor& input, double beta, double threshold) {
  return apply(softplus_op, {input}, SoftplusAttrs{beta, threshold});
}

static constexpr const OpDef* activation_list[] = {
    &relu_backward_op,
    &relu_op,
    &f_relu_op,
    &gelu_backward_op,
    &gelu_tanh_backward_op,
    &gelu_plain_op,
    &gelu_tanh_op,
    &gelu_op,
    &silu_backward_op,
    &silu_op,
    &mish_backward_op,
    &mish_op,
    &softplus_op,
    &softplus_backward_op,
    &logsigmoid_op,
    &softsign_op,
    &tanhshrink_op,
    &elu_backward_op,
    &logsigmoid_backward_op,
    &elu_plain_op,
    &elu_op,
    &celu_op,
    &f_celu_op,
    &selu_op,
    &f_selu_op,
};
extern const OpList activation_ops;
const OpList activation_ops = op_list(activation_list);

}  // namespace clew

// Elementary functions of one number: exp, log, sqrt, sin, tanh, rounding; copies in another dtype.
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: an op saves its output for backward if the gradient follows from it.
#include "ops/calls/unary.h"

#include <limits>

#include "kernels/core/loop_tables.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/elementwise/slope.h"
#include "ops/ops.h"
#include "tensor/layout.h"

namespace clew {

namespace table = kernels::table;

namespace {

constexpr double ln_2 = 0.69314718055994530942;
constexpr double ln_10 = 2.30258509299404568402;
constexpr double pi = 3.14159265358979323846;

// --- exponentials and logarithms ---

Tensor d_exp(const Vjp& c) { return c.out(); }
Tensor d_exp2(const Vjp& c) { return c.out() * ln_2; }
Tensor d_expm1(const Vjp& c) { return c.out() + 1; }
Tensor d_log2(const Vjp& c) { return reciprocal(c.in(0) * ln_2); }
Tensor d_log10(const Vjp& c) { return reciprocal(c.in(0) * ln_10); }
Tensor d_log1p(const Vjp& c) { return reciprocal(c.in(0) + 1); }
Tensor d_sqrt(const Vjp& c) { return 0.5 / c.out(); }
Tensor d_rsqrt(const Vjp& c) { return pow(c.out(), 3) * -0.5; }

void log_vjp(Vjp& c) { c.set(0, c.grad() / conj(c.in(0))); }

constexpr OpDef exp_op = unary<"exp", "The exponential of every element.", "e ** input",
                               "clew.tensor([0., 1.])", "tensor([1.0000, 2.7183])">(
    {.loops = &table::exp, .saves = output_saved, .partials = {d_exp}});
constexpr OpDef exp2_op =
    unary<"exp2", "Two to the power of every element.", "2 ** input", "clew.tensor([0., 3.])",
          "tensor([1., 8.])">({.loops = &table::exp2,
                               .saves = output_saved,
                               .vjp = fused_vjp<&table::exp2_slope, Of::output, d_exp2>});
constexpr OpDef expm1_op =
    unary<"expm1", "The exponential minus one, accurate near zero.", "e ** input - 1",
          "clew.tensor([0., 1.])", "tensor([0.0000, 1.7183])">(
        {.loops = &table::expm1,
         .saves = output_saved,
         .vjp = fused_vjp<&table::expm1_slope, Of::output, d_expm1>});
constexpr OpDef log_op =
    unary<"log", "The natural logarithm of every element.", "log(input)", "clew.tensor([1., 10.])",
          "tensor([0.0000, 2.3026])">({.loops = &table::log, .saves = input_saved, .vjp = log_vjp});
constexpr OpDef log2_op = unary<"log2", "The logarithm to base 2 of every element.",
                                "log(input) / log(2)", "clew.tensor([1., 8.])", "tensor([0., 3.])">(
    {.loops = &table::log2,
     .saves = input_saved,
     .vjp = fused_vjp<&table::log2_slope, Of::input, d_log2>});
constexpr OpDef log10_op =
    unary<"log10", "The logarithm to base 10 of every element.", "log(input) / log(10)",
          "clew.tensor([1., 100.])", "tensor([0., 2.])">(
        {.loops = &table::log10,
         .saves = input_saved,
         .vjp = fused_vjp<&table::log10_slope, Of::input, d_log10>});
constexpr OpDef log1p_op =
    unary<"log1p", "The logarithm of one plus every element, accurate near zero.", "log(1 + input)",
          "clew.tensor([0., 1.])", "tensor([0.0000, 0.6931])">(
        {.loops = &table::log1p,
         .saves = input_saved,
         .vjp = fused_vjp<&table::log1p_slope, Of::input, d_log1p>});
constexpr OpDef sqrt_op =
    unary<"sqrt", "The square root of every element; nan where it is negative.", "input ** 0.5",
          "clew.tensor([1., 4.])", "tensor([1., 2.])">(
        {.loops = &table::sqrt,
         .saves = output_saved,
         .vjp = fused_vjp<&table::sqrt_slope, Of::output, d_sqrt>});
constexpr OpDef rsqrt_op =
    unary<"rsqrt", "One divided by the square root of every element.", "input ** -0.5",
          "clew.tensor([1., 4.])", "tensor([1.0000, 0.5000])">(
        {.loops = &table::rsqrt,
         .saves = output_saved,
         .vjp = fused_vjp<&table::rsqrt_slope, Of::output, d_rsqrt>});

// --- circular and hyperbolic functions ---

Tensor d_sin(const Vjp& c) { return cos(c.in(0)); }
Tensor d_cos(const Vjp& c) { return -sin(c.in(0)); }
Tensor d_tan(const Vjp& c) { return square(c.out()) + 1; }
Tensor d_asin(const Vjp& c) { return rsqrt(1 - square(c.in(0))); }
Tensor d_acos(const Vjp& c) { return -rsqrt(1 - square(c.in(0))); }
Tensor d_atan(const Vjp& c) { return reciprocal(square(c.in(0)) + 1); }
Tensor d_sinh(const Vjp& c) { return cosh(c.in(0)); }
Tensor d_cosh(const Vjp& c) { return sinh(c.in(0)); }
Tensor d_asinh(const Vjp& c) { return rsqrt(square(c.in(0)) + 1); }
Tensor d_acosh(const Vjp& c) {
  Tensor x = c.in(0);
  // Two roots keep the branch cut of complex numbers in its place.
  return x.is_complex() ? rsqrt(x - 1) * rsqrt(x + 1) : rsqrt(square(x) - 1);
}
Tensor d_atanh(const Vjp& c) { return reciprocal(1 - square(c.in(0))); }

constexpr OpDef sin_op =
    unary<"sin", "The sine of every element, in radians.", "sin(input)", "clew.tensor([0., 1.])",
          "tensor([0.0000, 0.8415])">({.loops = &table::sin,
                                       .saves = input_saved,
                                       .vjp = fused_vjp<&table::sin_slope, Of::input, d_sin>});
constexpr OpDef cos_op =
    unary<"cos", "The cosine of every element, in radians.", "cos(input)", "clew.tensor([0., 1.])",
          "tensor([1.0000, 0.5403])">({.loops = &table::cos,
                                       .saves = input_saved,
                                       .vjp = fused_vjp<&table::cos_slope, Of::input, d_cos>});
constexpr OpDef tan_op =
    unary<"tan", "The tangent of every element, in radians.", "sin(input) / cos(input)",
          "clew.tensor([0., 1.])", "tensor([0.0000, 1.5574])">(
        {.loops = &table::tan,
         .saves = output_saved,
         .vjp = fused_vjp<&table::tan_slope, Of::output, d_tan>});
constexpr OpDef asin_op =
    unary<"asin", "The angle in radians whose sine every element is.", "arcsin(input)",
          "clew.tensor([0., 1.])", "tensor([0.0000, 1.5708])">(
        {.loops = &table::asin,
         .saves = input_saved,
         .vjp = fused_vjp<&table::asin_slope, Of::input, d_asin>});
constexpr OpDef acos_op =
    unary<"acos", "The angle in radians whose cosine every element is.", "arccos(input)",
          "clew.tensor([0., 1.])", "tensor([1.5708, 0.0000])">(
        {.loops = &table::acos,
         .saves = input_saved,
         .vjp = fused_vjp<&table::acos_slope, Of::input, d_acos>});
constexpr OpDef atan_op =
    unary<"atan", "The angle in radians whose tangent every element is.", "arctan(input)",
          "clew.tensor([0., 1.])", "tensor([0.0000, 0.7854])">(
        {.loops = &table::atan,
         .saves = input_saved,
         .vjp = fused_vjp<&table::atan_slope, Of::input, d_atan>});
constexpr OpDef sinh_op =
    unary<"sinh", "The hyperbolic sine of every element.", "(e ** input - e ** -input) / 2",
          "clew.tensor([0., 1.])", "tensor([0.0000, 1.1752])">(
        {.loops = &table::sinh,
         .saves = input_saved,
         .vjp = fused_vjp<&table::sinh_slope, Of::input, d_sinh>});
constexpr OpDef cosh_op =
    unary<"cosh", "The hyperbolic cosine of every element.", "(e ** input + e ** -input) / 2",
          "clew.tensor([0., 1.])", "tensor([1.0000, 1.5431])">(
        {.loops = &table::cosh,
         .saves = input_saved,
         .vjp = fused_vjp<&table::cosh_slope, Of::input, d_cosh>});
constexpr OpDef asinh_op =
    unary<"asinh", "The inverse hyperbolic sine of every element.",
          "log(input + sqrt(input ** 2 + 1))", "clew.tensor([0., 1.])", "tensor([0.0000, 0.8814])">(
        {.loops = &table::asinh,
         .saves = input_saved,
         .vjp = fused_vjp<&table::asinh_slope, Of::input, d_asinh>});
constexpr OpDef acosh_op =
    unary<"acosh", "The inverse hyperbolic cosine of every element; nan below 1.",
          "log(input + sqrt(input ** 2 - 1))", "clew.tensor([1., 2.])", "tensor([0.0000, 1.3170])">(
        {.loops = &table::acosh,
         .saves = input_saved,
         .vjp = fused_vjp<&table::acosh_slope, Of::input, d_acosh>});
constexpr OpDef atanh_op =
    unary<"atanh", "The inverse hyperbolic tangent of every element.",
          "log((1 + input) / (1 - input)) / 2", "clew.tensor([0., 0.5])",
          "tensor([0.0000, 0.5493])">({.loops = &table::atanh,
                                       .saves = input_saved,
                                       .vjp = fused_vjp<&table::atanh_slope, Of::input, d_atanh>});

// --- tanh and sigmoid, whose gradient is one loop over the saved output ---

Tensor tanh_backward(const Tensor& g, const Tensor& y);
Tensor sigmoid_backward(const Tensor& g, const Tensor& y);

void tanh_backward_vjp(Vjp& c) {
  // g conj(1 - y^2) depends on y through its conjugate alone, hence the conjugates of the gradient
  // itself.
  Tensor y = conj(c.in(1));
  if (c.needs(0)) c.set(0, tanh_backward(c.grad(), y));
  if (c.needs(1)) c.set(1, conj(c.grad()) * c.in(0) * y * -2);
}
constexpr OpDef tanh_backward_op = elementwise({
    .signature = "_tanh_backward(Tensor grad, Tensor output) -> Tensor",
    .doc = "grad * (1 - output ** 2)",
    .loops = &table::tanh_backward,
    .saves = {.when = {in(1), in(0) | in(1)}},
    .vjp = tanh_backward_vjp,
});
void tanh_vjp(Vjp& c) { c.set(0, c.with_saved(tanh_backward_op, out(0), true)); }
constexpr OpDef tanh_op = unary<"tanh", "The hyperbolic tangent of every element.",
                                "(e ** x - e ** -x) / (e ** x + e ** -x)", "clew.tensor([0., 1.])",
                                "tensor([0.0000, 0.7616])">(
    {.loops = &table::tanh, .saves = output_saved, .vjp = tanh_vjp});

void sigmoid_backward_vjp(Vjp& c) {
  Tensor y = conj(c.in(1));
  if (c.needs(0)) c.set(0, sigmoid_backward(c.grad(), y));
  if (c.needs(1)) c.set(1, conj(c.grad()) * c.in(0) * (1 - 2 * y));
}
constexpr OpDef sigmoid_backward_op = elementwise({
    .signature = "_sigmoid_backward(Tensor grad, Tensor output) -> Tensor",
    .doc = "grad * output * (1 - output)",
    .loops = &table::sigmoid_backward,
    .saves = {.when = {in(1), in(0) | in(1)}},
    .vjp = sigmoid_backward_vjp,
});
void sigmoid_vjp(Vjp& c) { c.set(0, c.with_saved(sigmoid_backward_op, out(0), true)); }
constexpr OpDef sigmoid_op =
    unary<"sigmoid", "The logistic function of every element.", "1 / (1 + e ** -input)",
          "clew.tensor([0., 2.])", "tensor([0.5000, 0.8808])">(
        {.loops = &table::sigmoid, .saves = output_saved, .vjp = sigmoid_vjp});

Tensor tanh_backward(const Tensor& g, const Tensor& y) { return apply(tanh_backward_op, {g, y}); }
Tensor sigmoid_backward(const Tensor& g, const Tensor& y) {
  return apply(sigmoid_backward_op, {g, y});
}

// --- logit, sinc, angles ---

struct EpsAttrs {
  Scalar eps;
  static constexpr auto members() { return std::tuple(&EpsAttrs::eps); }
};
void logit_vjp(Vjp& c) {
  Tensor x = c.in(0);
  Tensor inside = logical_and(ge(x, number(0)), le(x, number(1)));
  Tensor outside = number(std::numeric_limits<double>::quiet_NaN());
  c.set(0, where(inside, c.grad() / (x * (1 - x)), outside));
}
constexpr OpDef logit_plain_op = elementwise({
    .signature = "_logit(Tensor input) -> Tensor",
    .doc = "log(input / (1 - input))",
    .promote = Promote::to_float,
    .loops = &table::logit,
    .saves = input_saved,
    .vjp = logit_vjp,
});
void logit_run(const Call& c, Tensors& outs) {
  const Scalar& eps = c.as<EpsAttrs>().eps;
  Tensor x = c.in[0];
  if (!eps.has_value()) return outs.push_back(apply(logit_plain_op, {x}));
  // Near its ends the function is steep: a limit is not rounded to a half.
  const DType given = x.dtype();
  const bool half = is_half(given);
  if (half) x = to_dtype(x, DType::Float32);
  x = apply(logit_plain_op, {clamp(x, eps, Scalar(1 - eps.to_double()))});
  outs.push_back(half ? to_dtype(x, given) : x);
}
constexpr OpDef logit_op = composite({
    .signature = "logit(Tensor input, Scalar? eps=None) -> Tensor",
    .doc = R"(The inverse of the logistic function.

out = log(input / (1 - input))

Args:
    input: numbers from 0 to 1.
    eps: where given, input is clamped to [eps, 1 - eps] first.
Returns:
    a tensor of input's shape.

>>> clew.logit(clew.tensor([0.5, 0.9]))
tensor([0.0000, 2.1972])
)",
    .run = logit_run,
    .attrs = &attr_info<EpsAttrs>,
    .inplace = true,
    .out_dtype = OutDtype::converted,
});

Tensor d_sinc(const Vjp& c) {
  Tensor x = c.in(0);
  return where(eq(x, number(0)), number(0), (cos(x * pi) - c.out()) / x);
}
constexpr OpDef sinc_op = unary<"sinc", "The normalised sinc of every element.",
                                "sin(pi * input) / (pi * input), or 1 at 0",
                                "clew.tensor([0., 0.5])", "tensor([1.0000, 0.6366])">(
    {.loops = &table::sinc, .saves = {.always = in(0) | out(0)}, .partials = {d_sinc}});

void deg2rad_vjp(Vjp& c) { c.set(0, c.grad() * (pi / 180)); }
void rad2deg_vjp(Vjp& c) { c.set(0, c.grad() * (180 / pi)); }
constexpr OpDef deg2rad_op =
    unary<"deg2rad", "Degrees to radians.", "input * pi / 180", "clew.tensor([180.])",
          "tensor([3.1416])">({.loops = &table::deg2rad, .vjp = deg2rad_vjp});
constexpr OpDef rad2deg_op =
    unary<"rad2deg", "Radians to degrees.", "input * 180 / pi", "clew.tensor([1.])",
          "tensor([57.2958])">({.loops = &table::rad2deg, .vjp = rad2deg_vjp});

// --- rounding ---

void flat_vjp(Vjp& c) { c.set(0, zeros_for(c, 0)); }

constexpr OpDef floor_op =
    unary_same<"floor", "The largest integer not above each element.", "floor(input)",
               "clew.tensor([1.5, -1.5])", "tensor([ 1., -2.])">(
        {.loops = &table::floor, .vjp = flat_vjp, .out_dtype = OutDtype::own});
constexpr OpDef ceil_op =
    unary_same<"ceil", "The smallest integer not below each element.", "ceil(input)",
               "clew.tensor([1.5, -1.5])", "tensor([ 2., -1.])">(
        {.loops = &table::ceil, .vjp = flat_vjp, .out_dtype = OutDtype::own});
constexpr OpDef trunc_op = unary_same<"trunc", "Each element without its fraction.", "trunc(input)",
                                      "clew.tensor([1.5, -1.5])", "tensor([ 1., -1.])">(
    {.loops = &table::trunc, .vjp = flat_vjp, .out_dtype = OutDtype::own});
constexpr OpDef frac_op =
    unary_same<"frac", "The fraction of each element, with its sign.", "input - trunc(input)",
               "clew.tensor([1.5, -1.5])", "tensor([ 0.5000, -0.5000])">(
        {.loops = &table::frac, .vjp = same_vjp, .out_dtype = OutDtype::own});

struct RoundAttrs {
  Scalar decimals = 0;
  static constexpr auto members() { return std::tuple(&RoundAttrs::decimals); }
};
constexpr OpDef round_op = elementwise({
    .signature = "round(Tensor input, *, Scalar decimals=0) -> Tensor",
    .doc = R"(Rounds to the nearest number with the given count of decimals, halves to even.

out = round(input * 10 ** decimals) / 10 ** decimals

Args:
    input: any shape.
    decimals: digits kept after the point; negative for tens, hundreds ...
Returns:
    a tensor like input.

>>> clew.round(clew.tensor([0.5, 1.5, -1.2]))
tensor([ 0.,  2., -1.])
)",
    .loops = &table::round,
    .vjp = flat_vjp,
    .attrs = &attr_info<RoundAttrs>,
    .out_dtype = OutDtype::own,
});

// --- copies ---

struct ToDtypeAttrs {
  std::optional<DType> dtype;
  static constexpr auto members() { return std::tuple(&ToDtypeAttrs::dtype); }
};

// Of the input's layout.
void add_like(OutSpecs& outs, const Tensor& input, DType dtype) {
  OutSpec& o = outs.add(dtype, input.sizes());
  if (!input.is_contiguous()) o.strides = kept_strides(input);
}
void to_dtype_shape(const Call& c, OutSpecs& outs) {
  add_like(outs, c.in[0], c.as<ToDtypeAttrs>().dtype.value_or(c.in[0].dtype()));
}
void copy_cpu(const Call& c, Tensors& outs) { kernels::copy(outs[0].nd(), c.in[0].nd()); }

// A few dense elements.
Tensor to_dtype_quick(const Call& c) {
  const Tensor& x = c.in[0];
  if (x.is_meta() || !x.is_contiguous() || x.numel() == 0 || x.numel() >= grain_default) return {};
  const DType to = c.as<ToDtypeAttrs>().dtype.value_or(x.dtype());
  const Tensor out = empty_dense_like(x, to);
  char* const data[2] = {out->address(), x->address()};
  const int64_t steps[2] = {static_cast<int64_t>(itemsize(to)),
                            static_cast<int64_t>(itemsize(x.dtype()))};
  kernels::cast_loop_of(x.dtype(), to)(data, steps, x.numel(), nullptr);
  return out;
}

// The engine casts the gradient to the input's dtype.
constexpr OpDef to_dtype_op = general({
    .signature = "_to_dtype(Tensor input, *, dtype? dtype=None) -> Tensor",
    .doc = "A copy of input in another dtype.",
    .shape = to_dtype_shape,
    .cpu = copy_cpu,
    .quick = to_dtype_quick,
    .vjp = same_vjp,
    .batch = batch_leading,
    .rows = rows_of_first,
    .attrs = &attr_info<ToDtypeAttrs>,
    .takes_stored = true,
    .casts = true,
    .flops = "0",
});

void clone_shape(const Call& c, OutSpecs& outs) { add_like(outs, c.in[0], c.in[0].dtype()); }
Tensor clone_quick(const Call& c) {
  const Tensor& x = c.in[0];
  if (x.is_meta() || !x.is_contiguous() || x.numel() == 0 || x.numel() >= grain_default) return {};
  Tensor out = empty_dense_like(x, x.dtype());
  std::memcpy(out->address(), x->address(), static_cast<size_t>(x.numel()) * itemsize(x.dtype()));
  return out;
}
constexpr OpDef clone_op = general({
    .signature = "clone(Tensor input) -> Tensor",
    .doc = R"(A copy of input with memory of its own; gradients flow through it.

Args:
    input: any shape.
Returns:
    a tensor like input, with its strides when they are dense.

>>> clew.clone(clew.tensor([1., 2.]))
tensor([1., 2.])
)",
    .shape = clone_shape,
    .cpu = copy_cpu,
    .quick = clone_quick,
    .vjp = same_vjp,
    .batch = batch_leading,
    .rows = rows_of_first,
    .takes_stored = true,
    .flops = "0",
});

}  // namespace

Tensor exp(const Tensor& input) { return apply(exp_op, {input}); }
Tensor log(const Tensor& input) { return apply(log_op, {input}); }
Tensor log1p(const Tensor& input) { return apply(log1p_op, {input}); }
Tensor rsqrt(const Tensor& input) { return apply(rsqrt_op, {input}); }
Tensor sin(const Tensor& input) { return apply(sin_op, {input}); }
Tensor cos(const Tensor& input) { return apply(cos_op, {input}); }
Tensor sinh(const Tensor& input) { return apply(sinh_op, {input}); }
Tensor cosh(const Tensor& input) { return apply(cosh_op, {input}); }
Tensor tanh(const Tensor& input) { return apply(tanh_op, {input}); }
Tensor sigmoid(const Tensor& input) { return apply(sigmoid_op, {input}); }
Tensor clone(const Tensor& input) { return apply(clone_op, {input}); }
Tensor to_dtype(const Tensor& input, DType dtype) {
  return input.dtype() == dtype ? input : apply(to_dtype_op, {input}, ToDtypeAttrs{dtype});
}

static constexpr const OpDef* unary_list[] = {
    &exp_op,
    &exp2_op,
    &expm1_op,
    &log_op,
    &log2_op,
    &log10_op,
    &log1p_op,
    &sqrt_op,
    &rsqrt_op,
    &sin_op,
    &cos_op,
    &tan_op,
    &asin_op,
    &acos_op,
    &atan_op,
    &sinh_op,
    &cosh_op,
    &asinh_op,
    &acosh_op,
    &atanh_op,
    &tanh_backward_op,
    &tanh_op,
    &sigmoid_backward_op,
    &sigmoid_op,
    &logit_op,
    &sinc_op,
    &logit_plain_op,
    &deg2rad_op,
    &rad2deg_op,
    &floor_op,
    &ceil_op,
    &trunc_op,
    &frac_op,
    &round_op,
    &clone_op,
    &to_dtype_op,
    renamed<asin_op, "arcsin">,
    renamed<acos_op, "arccos">,
    renamed<atan_op, "arctan">,
    renamed<asinh_op, "arcsinh">,
    renamed<acosh_op, "arccosh">,
    renamed<atanh_op, "arctanh">,
    renamed<trunc_op, "fix">,
    renamed<exp2_op, "special.exp2">,
    renamed<expm1_op, "special.expm1">,
    renamed<log1p_op, "special.log1p">,
    renamed<sigmoid_op, "special.expit">,
    renamed<sigmoid_op, "nn.functional.sigmoid">,
    renamed<tanh_op, "nn.functional.tanh">,
    renamed<logit_op, "special.logit">,
    renamed<sinc_op, "special.sinc">,
    renamed<round_op, "special.round">,
};
extern const OpList unary_ops;
const OpList unary_ops = op_list(unary_list);

}  // namespace clew

// Arithmetic: add, sub, mul, div, pow, neg, abs and their kin.
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: an op keeps for backward only what its own gradient reads.
#include "ops/calls/arithmetic.h"

#include <utility>

#include "graph/node.h"
#include "kernels/core/loop_tables.h"
#include "ops/attributes.h"
#include "ops/calls/comparison.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/elementwise/slope.h"
#include "ops/ops.h"

namespace clew {

namespace table = kernels::table;

namespace {

// --- add, sub ---

Tensor scaled(const Tensor& g, const Scalar& alpha) {
  return alpha.equals(1) ? g : g * conj_scalar(alpha);
}
void add_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, c.grad());
  if (c.needs(1)) c.set(1, scaled(c.grad(), c.as<AlphaAttrs>().alpha));
}
void refuse_bools(const OpDef& op, std::span<const Tensor> in) {
  const bool first = in[0].dtype() == DType::Bool, second = in[1].dtype() == DType::Bool;
  if (first && second)
    fail(op_name(op),
         ": the subtraction of bools is not supported; use ^ or logical_xor() instead");
  if (first || second)
    fail(op_name(op), ": subtraction with a bool is not supported; got ", in[0].dtype(), " and ",
         in[1].dtype(), ". Turn a mask round with ~ or logical_not(), or convert it first, e.g. ",
         "with .float()");
}
void sub_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, c.grad());
  if (c.needs(1)) c.set(1, -scaled(c.grad(), c.as<AlphaAttrs>().alpha));
}

constexpr OpDef add_op = elementwise({
    .signature = "add(Operand input, Operand other, *, Scalar alpha=1) -> Tensor",
    .doc = R"(Adds other, scaled by alpha, to input.

out = input + alpha * other

Args:
    input: the first operand.
    other: the second operand, a tensor or a number.
    alpha: the factor of other.
Returns:
    a tensor of the broadcast shape and the promoted dtype.

>>> clew.add(clew.tensor([1., 2.]), 10, alpha=2)
tensor([21., 22.])
)",
    .loops = &table::add,
    .vjp = add_vjp,
    .attrs = &attr_info<AlphaAttrs>,
    .takes_numbers = true,
    .backward_flops = "0",
});

constexpr OpDef sub_op = elementwise({
    .signature = "sub(Operand input, Operand other, *, Scalar alpha=1) -> Tensor",
    .doc = R"(Subtracts other, scaled by alpha, from input.

out = input - alpha * other

Args:
    input: the first operand; not bool.
    other: the second operand, a tensor or a number; not bool.
    alpha: the factor of other.
Returns:
    a tensor of the broadcast shape and the promoted dtype.

>>> clew.sub(clew.tensor([5., 7.]), clew.tensor([1., 2.]))
tensor([4., 5.])
)",
    .loops = &table::sub,
    .check_operands = refuse_bools,
    .vjp = sub_vjp,
    .attrs = &attr_info<AlphaAttrs>,
    .takes_numbers = true,
    .backward_flops = "0",
});

void rsub_run(const Call& c, Tensors& outs) {
  outs.push_back(sub(c.in[1], c.in[0], c.as<AlphaAttrs>().alpha));
}
constexpr OpDef rsub_op = composite({
    .signature = "rsub(Tensor input, Operand other, *, Scalar alpha=1) -> Tensor",
    .doc = R"(Subtracts input, scaled by alpha, from other.

out = other - alpha * input

Args:
    input: the tensor that is subtracted.
    other: a tensor or a number.
    alpha: the factor of input.
Returns:
    a tensor of the broadcast shape and the promoted dtype.

>>> clew.rsub(clew.tensor([1., 2.]), 10)
tensor([9., 8.])
)",
    .run = rsub_run,
    .attrs = &attr_info<AlphaAttrs>,
    .backward_flops = "0",
});

// --- mul, div ---

extern const OpDef mul_op;
void mul_vjp(Vjp& c) {
  bool both = c.needs(0) && c.needs(1);
  if (!c.grad().is_complex()) {
    if (c.needs(0)) c.set(0, c.with_saved(mul_op, in(1), !both));
    if (c.needs(1)) c.set(1, c.with_saved(mul_op, in(0), true));
    return;
  }
  if (c.needs(0)) c.set(0, mul(both ? c.grad() : c.last_grad(), conj(operand(c, 1))));
  if (c.needs(1)) c.set(1, mul(c.last_grad(), conj(operand(c, 0))));
}

constexpr OpDef mul_op = elementwise({
    .signature = "mul(Operand input, Operand other) -> Tensor",
    .doc = R"(Multiplies input by other, element by element.

out = input * other

Args:
    input: the first factor.
    other: the second factor, a tensor or a number.
Returns:
    a tensor of the broadcast shape and the promoted dtype.

>>> clew.mul(clew.tensor([1., 2., 3.]), 2)
tensor([2., 4., 6.])
)",
    .loops = &table::mul,
    .saves = {.when = {in(1), in(0)}},
    .vjp = mul_vjp,
    .takes_numbers = true,
});

// A Python number beside a complex gradient would be taken in the default precision; beside a real
// one it is exact as it stands, and may be too large for a half.
// The gradient of the quotient q = a / b is g / b and -g q / b.
constexpr OpDef divisor_slope_op =
    elementwise({.signature = "_divisor_slope(Tensor grad, Tensor input, Tensor other) -> Tensor",
                 .doc = "-grad / other * (input / other)",
                 .loops = &table::divisor_slope,
                 .no_vjp = composed_when_recorded,
                 .inplace = false});
void div_vjp(Vjp& c) {
  if (!modes.grad && c.needs(1) && !c.grad().is_complex()) {
    if (c.needs(0)) c.set(0, c.grad() / c.in(1));
    c.set(1, apply(divisor_slope_op, {c.grad(), c.in(0), c.in(1)}));
    return;
  }
  const auto exact = [&](int i) { return c.grad().is_complex() ? operand(c, i) : c.in(i); };
  Tensor g = c.grad() / conj(exact(1));
  if (c.needs(0)) c.set(0, g);
  if (c.needs(1)) c.set(1, -g * conj(exact(0) / exact(1)));
}

constexpr OpDef div_op = elementwise({
    .signature = "div(Operand input, Operand other) -> Tensor",
    .doc = R"(Divides input by other, element by element.

out = input / other, where integers are divided as floats

Args:
    input: the dividend.
    other: the divisor, a tensor or a number.
    rounding_mode: None, 'trunc' (towards zero) or 'floor' (down).
Returns:
    a tensor of the broadcast shape.

>>> clew.div(clew.tensor([1., 2.]), 4)
tensor([0.2500, 0.5000])
)",
    .promote = Promote::to_float,
    .loops = &table::div,
    .saves = {.when = {in(1), in(0) | in(1)}},
    .vjp = div_vjp,
    .takes_numbers = true,
});

constexpr OpDef div_trunc_op = elementwise({
    .signature = "_div_trunc(Operand input, Operand other) -> Tensor",
    .doc = "The quotient rounded towards zero; integers stay integers.",
    .loops = &table::div_trunc,
    .divides = true,
    .vjp = zero_vjp,
});
constexpr OpDef div_floor_op = elementwise({
    .signature = "_div_floor(Operand input, Operand other) -> Tensor",
    .doc = "The quotient rounded down; integers stay integers.",
    .loops = &table::div_floor,
    .divides = true,
    .vjp = zero_vjp,
});

struct RoundingAttrs {
  Str rounding_mode;
  static constexpr auto members() { return std::tuple(&RoundingAttrs::rounding_mode); }
};
void div_mode_run(const Call& c, Tensors& outs) {
  const Str& mode = c.as<RoundingAttrs>().rounding_mode;
  if (!mode.given())
    outs.push_back(div(c.in[0], c.in[1]));
  else if (mode == "trunc")
    outs.push_back(apply(div_trunc_op, {c.in[0], c.in[1]}));
  else if (mode == "floor")
    outs.push_back(apply(div_floor_op, {c.in[0], c.in[1]}));
  else
    fail("div: rounding_mode must be None, 'trunc' or 'floor'; got '", mode.text, "'");
}
constexpr OpDef div_mode_op = composite({
    .signature = "div(Operand input, Operand other, *, str? rounding_mode) -> Tensor",
    .doc = R"(Divides and rounds the quotient.

out = trunc(input / other) or floor(input / other)

Args:
    input: the dividend.
    other: the divisor, a tensor or a number.
    rounding_mode: None, 'trunc' (towards zero) or 'floor' (down); with the last two integers
        stay integers.
Returns:
    a tensor of the broadcast shape.

>>> clew.div(clew.tensor([7., -7.]), 2, rounding_mode='floor')
tensor([ 3., -4.])
)",
    .run = div_mode_run,
    .attrs = &attr_info<RoundingAttrs>,
    .inplace = true,
    .takes_numbers = true,
    .out_dtype = OutDtype::converted,
});

constexpr OpDef floor_divide_op =
    binary<"floor_divide", "Divides and rounds the quotient down, as Python's // does.",
           "floor(input / other)", "clew.tensor([7, -7]), 2", "tensor([ 3, -4])">({
        .loops = &table::div_floor,
        .divides = true,
        .vjp = zero_vjp,
        .takes_numbers = true,
    });

void fmod_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, c.grad());
  if (c.needs(1)) c.set(1, -c.grad() * apply(div_trunc_op, {c.in(0), c.in(1)}));
}
constexpr OpDef fmod_op = binary<"fmod", "The rest of a division; it has the sign of input.",
                                 "input - trunc(input / other) * other",
                                 "clew.tensor([7., -7.]), 4", "tensor([ 3., -3.])">({
    .loops = &table::fmod,
    .divides = true,
    .saves = {.when = {0, in(0) | in(1)}},
    .vjp = fmod_vjp,
});

void remainder_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, c.grad());
  if (c.needs(1)) c.set(1, -c.grad() * apply(div_floor_op, {c.in(0), c.in(1)}));
}
constexpr OpDef remainder_op =
    binary<"remainder", "The rest of a division, as Python's % has it; it has the sign of other.",
           "input - floor(input / other) * other", "clew.tensor([7., -7.]), 4", "tensor([3., 1.])">(
        {
            .loops = &table::remainder,
            .divides = true,
            .saves = {.when = {0, in(0) | in(1)}},
            .vjp = remainder_vjp,
        });

// --- one operand ---

void refuse_bool(const OpDef& op, std::span<const Tensor> in) {
  if (in[0].dtype() == DType::Bool)
    fail(op_name(op),
         ": the negation of bools is not supported; turn them round with ~ or logical_not()");
}
void neg_vjp(Vjp& c) { c.set(0, -c.grad()); }
constexpr OpDef neg_op = unary_same<"neg", "Changes the sign of every element; not for bool.",
                                    "-input", "clew.tensor([1., -2.])", "tensor([-1.,  2.])">({
    .loops = &table::neg,
    .check_operands = refuse_bool,
    .vjp = neg_vjp,
    .out_dtype = OutDtype::own,
});

constexpr OpDef positive_op = composite({
    .signature = "positive(Tensor input) -> Tensor",
    .doc = R"(The tensor itself; not for bool.

out = input

Args:
    input: any shape.
Returns:
    input.

>>> clew.positive(clew.tensor([1., -2.]))
tensor([ 1., -2.])
)",
    .run =
        [](const Call& c, Tensors& outs) {
          require(c.in[0].dtype() != DType::Bool,
                  "positive: the + operator is not supported for bool tensors; got ", c.in[0]);
          outs.push_back(c.in[0]);
        },
    .backward_flops = "0",
});

Tensor d_square(const Vjp& c) { return c.in(0) * 2; }
constexpr OpDef square_op = unary_number<"square", "Squares every element.", "input * input",
                                         "clew.tensor([1., -2.])", "tensor([1., 4.])">({
    .loops = &table::square,
    .saves = {.always = in(0)},
    .vjp = fused_vjp<&table::square_slope, Of::input, d_square>,
});

Tensor d_reciprocal(const Vjp& c) { return -square(c.out()); }
constexpr OpDef reciprocal_op = unary<"reciprocal", "One divided by every element.", "1 / input",
                                      "clew.tensor([2., -4.])", "tensor([ 0.5000, -0.2500])">({
    .loops = &table::reciprocal,
    .saves = {.always = out(0)},
    .vjp = fused_vjp<&table::reciprocal_slope, Of::output, d_reciprocal>,
});

Tensor d_abs(const Vjp& c) { return sgn(c.in(0)); }
void abs_vjp(Vjp& c) {
  // The gradient of a complex number's size is real: it is not conjugated.
  if (is_complex(c.dtype(0))) return c.set(0, c.grad() * sgn(c.in(0)));
  fused_vjp<&table::abs_slope, Of::input, d_abs>(c);
}
constexpr OpDef abs_op = unary_same<"abs", "The absolute value of every element.", "|input|",
                                    "clew.tensor([1., -2.])", "tensor([1., 2.])">({
    .result = Result::real,
    .loops = &table::abs,
    .saves = {.always = in(0)},
    .vjp = abs_vjp,
    .out_dtype = OutDtype::own,
});

constexpr OpDef sign_op =
    unary_same<"sign", "The sign of every element; not for complex numbers.", "1, 0 or -1",
               "clew.tensor([3., 0., -2.])", "tensor([ 1.,  0., -1.])">({
        .loops = &table::sign,
        .vjp = zero_vjp,
        .out_dtype = OutDtype::own,
    });

// On the complex plane only the part of g across the direction s of z matters: it turns s.
void sgn_vjp(Vjp& c) {
  if (!is_complex(c.dtype(0))) return zero_vjp(c);
  Tensor z = c.in(0);
  Tensor s = sgn(z);
  Tensor along = real(c.grad() * conj(s)) * s;
  Tensor size = abs(z);
  c.set(0, where(eq(size, number(0)), number(0), (c.grad() - along) / size));
}
constexpr OpDef sgn_op =
    unary_same<"sgn", "The sign of every element; of a complex number, its direction.",
               "input / |input|, or 0", "clew.tensor([3 + 4j, 0j])",
               "tensor([0.6000+0.8000j, 0.0000+0.0000j])">({
        .loops = &table::sgn,
        .saves = {.always = in(0)},
        .vjp = sgn_vjp,
        .out_dtype = OutDtype::own,
    });

// --- pow ---

// The exponent as a plain number, when it is one without a gradient of its own.
bool constant_exponent(const Vjp& c, const Tensor& exponent, Scalar& value) {
  if (exponent.ndim() != 0 || c.needs(1) || exponent.is_meta()) return false;
  value = item(exponent);
  return true;
}

struct ExponentAttrs {
  Scalar exponent;
  static constexpr auto members() { return std::tuple(&ExponentAttrs::exponent); }
};
constexpr OpDef pow_slope_op =
    elementwise({.signature = "_pow_slope(Tensor grad, Tensor input, Scalar exponent) -> Tensor",
                 .doc = "grad * exponent * input ** (exponent - 1)",
                 .loops = &table::pow_slope,
                 .no_vjp = composed_when_recorded,
                 .attrs = &attr_info<ExponentAttrs>,
                 .inplace = false});

void pow_vjp(Vjp& c) {
  const Tensor& g = c.grad();
  Tensor base = operand(c, 0);
  Tensor exponent = c.in(1);
  if (c.needs(0)) {
    Scalar e;
    if (!constant_exponent(c, exponent, e)) {
      // x^0 is 1 everywhere, also where x^(0 - 1) is infinite.
      Tensor slope = exponent * pow(base, exponent - 1);
      c.set(0, g * conj(where(eq(exponent, number(0)), number(0), slope)));
    } else if (e.equals(0)) {
      c.set(0, zeros_for(c, 0));
    } else if (e.equals(1)) {
      c.set(0, g);
    } else if (!modes.grad && !g.is_complex() && !base.is_complex() && !e.is_complex()) {
      c.set(0, apply(pow_slope_op, {g, base}, ExponentAttrs{e}));
    } else if (e.equals(2)) {
      c.set(0, g * (conj(base) * 2));
    } else {
      Scalar less = e.is_complex() ? Scalar(c128(e.re - 1, e.im))
                    : e.is_float() ? Scalar(e.re - 1)
                                   : Scalar(e.to_int() - 1);
      c.set(0, g * conj(pow(base, less) * e));
    }
  }
  if (c.needs(1)) {
    // Takes the logarithm of a Python number in double, before it is rounded to the tensor's dtype.
    const bool is_number = c.in(0).is_wrapped_number() && !base.is_complex();
    Tensor slope = c.out() * (is_number ? number(std::log(item(c.in(0)).to_double())) : log(base));
    // 0^y is 0 for all y > 0 and 1 at y = 0, where the derivative is taken from the right.
    Tensor flat = eq(base, number(0));
    if (!exponent.is_complex()) flat = logical_and(flat, ge(exponent, number(0)));
    c.set(1, g * conj(where(flat, number(0), slope)));
  }
}

// A Python number as exponent is not taken modulo the numbers of a small dtype.
void check_exponent(int operand, const Scalar& value, DType compute) {
  if (operand != 1 || value.is_float() || value.is_complex() || !is_integral(compute)) return;
  const auto exponent = value.to<int64_t>();
  if (exponent < 0) {
    fail("pow: integers to negative integer powers are not allowed; got exponent ", exponent,
         "; make the base floating, e.g. with .float()");
  }
  dispatch(compute, AllTypes{}, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!std::in_range<T>(exponent))
        fail("pow: exponent ", exponent, " does not fit into ", compute,
             "; make the base wider, e.g. with .long()");
    }
  });
}

constexpr OpDef pow_op = elementwise({
    .signature = "pow(Operand input, Operand exponent) -> Tensor",
    .doc = R"(Raises input to a power, element by element.

out = input ** exponent

Args:
    input: the base, a tensor or a number.
    exponent: the exponent, a tensor or a number.
Returns:
    a tensor of the broadcast shape and the promoted dtype.

>>> clew.pow(clew.tensor([1., 2., 3.]), 2)
tensor([1., 4., 9.])
)",
    .loops = &table::pow,
    .check_number = check_exponent,
    .saves = {.when = {in(0) | in(1), in(0) | in(1) | out(0)}},
    .vjp = pow_vjp,
});

void float_power_run(const Call& c, Tensors& outs) {
  DType d = c.in[0].is_complex() || c.in[1].is_complex() ? DType::Complex128 : DType::Float64;
  outs.push_back(pow(to_dtype(c.in[0], d), to_dtype(c.in[1], d)));
}
// The result is not cast back to the base's dtype.
void float_power_write(const Call& c) {
  const Tensor& base = c.in[0];
  const DType d = base.is_complex() || c.in[1].is_complex() ? DType::Complex128 : DType::Float64;
  require(base.dtype() == d, "float_power_: the base has dtype ", base.dtype(),
          ", but the result needs ", d, "; use float_power()");
  apply_inplace(pow_op, std::array{base, to_dtype(c.in[1], d)}, nullptr);
}
constexpr OpDef float_power_op = composite({
    .signature = "float_power(Tensor input, Operand exponent) -> Tensor",
    .doc = R"(Raises input to a power in double precision.

out = input ** exponent

Args:
    input: the base, a tensor or a number.
    exponent: the exponent, a tensor or a number.
Returns:
    a float64 or complex128 tensor of the broadcast shape.

>>> clew.float_power(clew.tensor([2, 3]), -1)
tensor([0.5000, 0.3333], dtype=clew.float64)
)",
    .run = float_power_run,
    .write = float_power_write,
    .inplace = true,
});

struct BaseAttrs {
  Scalar input;
  static constexpr auto members() { return std::tuple(&BaseAttrs::input); }
};
void float_power_number_run(const Call& c, Tensors& outs) {
  const Scalar& base = c.as<BaseAttrs>().input;
  DType d = base.is_complex() || c.in[0].is_complex() ? DType::Complex128 : DType::Float64;
  outs.push_back(pow(scalar_tensor(base, d), to_dtype(c.in[0], d)));
}
constexpr OpDef float_power_number_op = [] {
  OpDef op = float_power_op;
  op.signature = "float_power(Scalar input, Tensor exponent) -> Tensor";
  op.run = float_power_number_run;
  op.attrs = &attr_info<BaseAttrs>;
  op.inplace = false;
  op.offer = Offer::function;
  return op;
}();

}  // namespace

Tensor number(const Scalar& value) { return scalar_tensor(value, value.dtype(), true); }
Tensor add(const Tensor& input, const Tensor& other, const Scalar& alpha) {
  return apply(add_op, {input, other}, AlphaAttrs{alpha});
}
Tensor sub(const Tensor& input, const Tensor& other, const Scalar& alpha) {
  return apply(sub_op, {input, other}, AlphaAttrs{alpha});
}
Tensor mul(const Tensor& input, const Tensor& other) { return apply(mul_op, {input, other}); }
Tensor div(const Tensor& input, const Tensor& other) { return apply(div_op, {input, other}); }
Tensor pow(const Tensor& input, const Tensor& exponent) { return apply(pow_op, {input, exponent}); }
Tensor pow(const Tensor& input, const Scalar& exponent) { return pow(input, number(exponent)); }
Tensor neg(const Tensor& input) { return apply(neg_op, {input}); }
Tensor square(const Tensor& input) { return apply(square_op, {input}); }
Tensor reciprocal(const Tensor& input) { return apply(reciprocal_op, {input}); }
Tensor abs(const Tensor& input) { return apply(abs_op, {input}); }
Tensor sign(const Tensor& input) { return apply(sign_op, {input}); }
Tensor sgn(const Tensor& input) { return apply(sgn_op, {input}); }

static constexpr const OpDef* arithmetic_list[] = {
    &add_op,
    &sub_op,
    &rsub_op,
    &mul_op,
    &div_op,
    &div_mode_op,
    &div_trunc_op,
    &div_floor_op,
    &floor_divide_op,
    &fmod_op,
    &remainder_op,
    &neg_op,
    &positive_op,
    &square_op,
    &reciprocal_op,
    &abs_op,
    &sign_op,
    &sgn_op,
    &pow_op,
    &float_power_op,
    &float_power_number_op,
    renamed<sub_op, "subtract">,
    renamed<mul_op, "multiply">,
    renamed<div_op, "divide">,
    renamed<div_mode_op, "divide">,
    renamed<div_op, "true_divide">,
    renamed<neg_op, "negative">,
    renamed<abs_op, "absolute">,
};
extern const OpList arithmetic_ops;
const OpList arithmetic_ops = op_list(arithmetic_list);

}  // namespace clew

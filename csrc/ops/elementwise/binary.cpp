// Functions of two and three numbers beside arithmetic: angles, signs, logarithms of sums,
// divisors, lerp, addcmul.
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: an op saves for backward only what the wanted gradients read.
#include <cmath>

#include "graph/warning.h"
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

struct ValueAttrs {
  Scalar value = 1;
  static constexpr auto members() { return std::tuple(&ValueAttrs::value); }
};

void hypot_vjp(Vjp& c) {
  for (int i = 0; i < 2; ++i)
    if (c.needs(i)) c.set(i, c.grad() * c.in(i) / c.out());
}
constexpr OpDef hypot_op =
    binary<"hypot", "The length of the hypotenuse of a right triangle.",
           "sqrt(input ** 2 + other ** 2)", "clew.tensor([3.]), clew.tensor([4.])", "tensor([5.])">(
        {
            .loops = &table::hypot,
            .saves = {.when = {in(0) | out(0), in(1) | out(0)}},
            .vjp = hypot_vjp,
        });

// Divided by the length twice: its square may not fit where the gradient does. At the origin, which
// has no angle, the gradient is zero.
Tensor length(const Vjp& c) {
  const Tensor r = apply(hypot_op, {operand(c, 0), operand(c, 1)});
  return where(eq(r, number(0)), number(1), r);
}
Tensor d_atan2_input(const Vjp& c) {
  const Tensor r = length(c);
  return c.in(1) / r / r;
}
Tensor d_atan2_other(const Vjp& c) {
  const Tensor r = length(c);
  return -operand(c, 0) / r / r;
}
constexpr OpDef atan2_op = elementwise({
    .signature = "atan2(Tensor input, Tensor other) -> Tensor",
    .doc = R"(The angle of the point (other, input) with the positive first axis.

out = arctan(input / other), in the right quadrant

Args:
    input: the second coordinate.
    other: the first coordinate.
Returns:
    a tensor of the broadcast shape, in radians.

>>> clew.atan2(clew.tensor([1., -1.]), clew.tensor([1., -1.]))
tensor([ 0.7854, -2.3562])
)",
    .promote = Promote::to_float,
    .loops = &table::atan2,
    .saves = both_saved,
    .partials = {d_atan2_input, d_atan2_other},
});

void copysign_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, c.grad() * (sign(c.in(0)) * sign(c.out())));
  if (c.needs(1)) c.set(1, zeros_for(c, 1));
}
constexpr OpDef copysign_op = elementwise({
    .signature = "copysign(Tensor input, Operand other) -> Tensor",
    .doc = R"(The size of input with the sign of other.

out = |input| with other's sign bit

Args:
    input: the sizes.
    other: the signs, a tensor or a number.
Returns:
    a tensor of the broadcast shape.

>>> clew.copysign(clew.tensor([1., -2.]), -0.)
tensor([-1., -2.])
)",
    .promote = Promote::to_float,
    .loops = &table::copysign,
    .saves = {.when = {in(0) | out(0), 0}},
    .vjp = copysign_vjp,
});

// The result stays next to input: input moves it along, other does not.
void nextafter_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, c.grad());
  if (c.needs(1)) c.set(1, zeros_for(c, 1));
}
constexpr OpDef nextafter_op =
    binary<"nextafter", "The next number after input in the direction of other.",
           "nextafter(input, other)", "clew.tensor([0.]), clew.tensor([1.])",
           "tensor([1.4013e-45])">({
        .loops = &table::nextafter,
        .vjp = nextafter_vjp,
    });

constexpr OpDef heaviside_op = elementwise({
    .signature = "heaviside(Tensor input, Tensor values) -> Tensor",
    .doc = R"(The unit step.

out = 0 where input < 0, values where input == 0, 1 where input > 0

Args:
    input: any shape.
    values: what the step is at 0, a tensor of input's dtype or a number.
Returns:
    a tensor of the broadcast shape.

>>> clew.heaviside(clew.tensor([-1., 0., 2.]), clew.tensor([0.5]))
tensor([0.0000, 0.5000, 1.0000])
)",
    .promote = Promote::none,
    .loops = &table::heaviside,
    .no_vjp = no_rule("the unit step has no derivative"),
    .out_dtype = OutDtype::own,
});

void ldexp_run(const Call& c, Tensors& outs) {
  const Tensor &x = c.in[0], &e = c.in[1];
  require(e.dtype() != DType::Bool || !is_floating(x.dtype()),
          "ldexp: is not implemented for floats with truth values as exponents; got ", e);
  if (e.is_wrapped_number() && !e.is_complex())
    return outs.push_back(x * number(std::exp2(item(e).to_double())));
  // Integer exponents do not widen the result's dtype. The power 2^e is computed in a wider one,
  // because it may be out of the result's range.
  Tensor y = x * pow(number(2.0), e);
  const bool narrow = is_integral(e.dtype()) && is_floating(x.dtype()) && x.dtype() != y.dtype();
  outs.push_back(narrow ? to_dtype(y, x.dtype()) : y);
}
constexpr OpDef ldexp_op = composite({
    .signature = "ldexp(Tensor input, Tensor other) -> Tensor",
    .doc = R"(Multiplies by a power of two.

out = input * 2 ** other

Args:
    input: the significands.
    other: the exponents.
Returns:
    a tensor of the broadcast shape.

>>> clew.ldexp(clew.tensor([1., 3.]), clew.tensor([2, 3]))
tensor([ 4., 24.])
)",
    .run = ldexp_run,
    .inplace = true,
    .out_dtype = OutDtype::converted,
});

// --- logarithms ---

// The second factor's part of x f(y), which is 0 with x, also where f is infinite.
template <Tensor (*f)(const Tensor&)> void x_times_vjp(Vjp& c, const Tensor& divisor) {
  if (c.needs(0)) {
    Tensor x = c.in(0);
    Tensor y = operand(c, 1);
    Tensor slope = f(y);
    if (!slope.is_complex()) {
      Tensor flat = logical_and(eq(x, number(0)), logical_not(isfinite(slope)));
      slope = where(logical_and(flat, logical_not(isnan(y))), number(0), slope);
    }
    c.set(0, c.grad() * conj(slope));
  }
  if (c.needs(1)) c.set(1, c.grad() * conj(c.in(0)) / conj(divisor));
}
void xlogy_vjp(Vjp& c) { x_times_vjp<log>(c, c.in(1)); }
void xlog1py_vjp(Vjp& c) { x_times_vjp<log1p>(c, c.needs(1) ? operand(c, 1) + 1 : Tensor()); }

constexpr OpDef xlogy_op = elementwise({
    .signature = "xlogy(Operand input, Operand other) -> Tensor",
    .doc = R"(A number times the logarithm of another; 0 where the first is 0.

out = input * log(other)

Args:
    input: the factor, a tensor or a number.
    other: what the logarithm is of, a tensor or a number.
Returns:
    a tensor of the broadcast shape.

>>> clew.xlogy(clew.tensor([0., 2.]), clew.tensor([0., 1.]))
tensor([0., 0.])
)",
    .promote = Promote::to_float,
    .loops = &table::xlogy,
    .saves = both_saved,
    .vjp = xlogy_vjp,
});
constexpr OpDef xlog1py_op = elementwise({
    .signature = "special.xlog1py(Operand input, Operand other) -> Tensor",
    .doc = R"(A number times the logarithm of one plus another; 0 where the first is 0.

out = input * log(1 + other)

Args:
    input: the factor, a tensor or a number.
    other: what is added to one, a tensor or a number.
Returns:
    a tensor of the broadcast shape.

>>> clew.special.xlog1py(clew.tensor([0., 2.]), clew.tensor([-1., 0.]))
tensor([0., 0.])
)",
    .promote = Promote::to_float,
    .loops = &table::xlog1py,
    .saves = both_saved,
    .vjp = xlog1py_vjp,
    .inplace = false,
    .offer = Offer::function,
});

// An input's share in the sum is 1 / (1 + the other's power / its own).
template <Tensor (*power)(const Tensor&)> void shares_vjp(Vjp& c) {
  for (int i = 0; i < 2; ++i)
    if (c.needs(i)) c.set(i, c.grad() / conj(power(c.in(1 - i) - c.in(i)) + 1));
}
Tensor power_of_2(const Tensor& x) { return pow(number(2.0), x); }
constexpr OpDef logaddexp_op =
    binary<"logaddexp", "The logarithm of a sum of exponentials.", "log(e ** input + e ** other)",
           "clew.tensor([0., 1000.]), clew.tensor([0., 1000.])",
           "tensor([6.9315e-01, 1.0007e+03])">({
        .loops = &table::logaddexp,
        .saves = both_saved,
        .vjp = shares_vjp<exp>,
    });
constexpr OpDef logaddexp2_op =
    binary<"logaddexp2", "The logarithm to base 2 of a sum of powers of two.",
           "log2(2 ** input + 2 ** other)", "clew.tensor([3.]), clew.tensor([3.])", "tensor([4.])">(
        {
            .loops = &table::logaddexp2,
            .saves = both_saved,
            .vjp = shares_vjp<power_of_2>,
        });

// --- integers ---

constexpr NoRule no_integers = no_rule("integers have no derivative");
constexpr OpDef gcd_op =
    binary<"gcd", "The greatest common divisor of two integers; never negative.",
           "gcd(input, other)", "clew.tensor([12, -9]), clew.tensor(6)", "tensor([6, 3])">(
        {.loops = &table::gcd, .no_vjp = no_integers});
constexpr OpDef lcm_op =
    binary<"lcm", "The least common multiple of two integers; never negative.",
           "|input * other| / gcd(input, other)", "clew.tensor([4, 6]), clew.tensor(10)",
           "tensor([20, 30])">({.loops = &table::lcm, .no_vjp = no_integers});

// --- three operands ---

void check_lerp(const OpDef&, std::span<const Tensor> in) {
  const DType d = in[0].dtype();
  for (const Tensor& t : in.subspan(1)) {
    // A weight of no dims may have any dtype, as in PyTorch.
    const bool number = t.is_wrapped_number() || (&t == &in[2] && t.ndim() == 0);
    if (number && (is_complex(d) || !t.is_complex())) continue;
    if (t.dtype() != d)
      fail("lerp: expected input, end and weight of one dtype; got ", d, " and ", t.dtype(),
           ". Convert with .to(dtype)");
  }
  if (is_integral(d))
    fail(ErrorKind::NotImplemented, "\"lerp\" is not implemented for ", d,
         "; convert the input first, e.g. with .float()");
}
void lerp_vjp(Vjp& c) {
  const Tensor& g = c.grad();
  if (c.needs(0)) c.set(0, g * conj(1 - operand(c, 2)));
  if (c.needs(1)) c.set(1, g * conj(operand(c, 2)));
  if (c.needs(2)) c.set(2, g * conj(c.in(1) - c.in(0)));
}
constexpr OpDef lerp_op = elementwise({
    .signature = "lerp(Tensor input, Tensor end, Operand weight) -> Tensor",
    .doc = R"(A point on the line from input to end.

out = input + weight * (end - input)

Args:
    input: where weight is 0.
    end: where weight is 1.
    weight: a tensor or a number.
Returns:
    a tensor of the broadcast shape.

>>> clew.lerp(clew.tensor([1., 2.]), clew.tensor([3., 10.]), 0.5)
tensor([2., 6.])
)",
    .loops = &table::lerp,
    .check_operands = check_lerp,
    .saves = {.when = {in(2), in(2), in(0) | in(1)}},
    .numbers_stay = true,
    .vjp = lerp_vjp,
});

void addcmul_vjp(Vjp& c) {
  Scalar value = conj_scalar(c.as<ValueAttrs>().value);
  if (c.needs(0)) c.set(0, c.grad());
  if (c.needs(1)) c.set(1, c.grad() * (conj(c.in(2)) * value));
  if (c.needs(2)) c.set(2, c.grad() * (conj(c.in(1)) * value));
}
constexpr OpDef addcmul_op = elementwise({
    .signature =
        "addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .doc = R"(Adds a scaled product.

out = input + value * tensor1 * tensor2

Args:
    input: what is added to.
    tensor1: the first factor.
    tensor2: the second factor.
    value: the scale.
Returns:
    a tensor of the broadcast shape.

>>> clew.addcmul(clew.tensor([1., 1.]), clew.tensor([2., 3.]), clew.tensor([4., 5.]), value=10)
tensor([ 81., 151.])
)",
    .loops = &table::addcmul,
    .saves = {.when = {0, in(2), in(1)}},
    .vjp = addcmul_vjp,
    .attrs = &attr_info<ValueAttrs>,
});

void refuse_integers(const OpDef&, std::span<const Tensor> in) {
  if (is_integral(in[1].dtype()) && is_integral(in[2].dtype()))
    fail("addcdiv: the division of integers is not supported; got ", in[1].dtype(), " and ",
         in[2].dtype(), ". Use input + value * trunc(tensor1 / tensor2), or convert one of them ",
         "first, e.g. with .float()");
}
void addcdiv_vjp(Vjp& c) {
  Scalar value = conj_scalar(c.as<ValueAttrs>().value);
  if (c.needs(0)) c.set(0, c.grad());
  if (c.needs(1)) c.set(1, c.grad() * value / conj(c.in(2)));
  if (c.needs(2)) c.set(2, -c.grad() * conj(c.in(1) / square(operand(c, 2))) * value);
}
constexpr OpDef addcdiv_op = elementwise({
    .signature =
        "addcdiv(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .doc = R"(Adds a scaled quotient.

out = input + value * tensor1 / tensor2

Args:
    input: what is added to; not integers.
    tensor1: the dividend.
    tensor2: the divisor.
    value: the scale.
Returns:
    a tensor of the broadcast shape.

>>> clew.addcdiv(clew.tensor([1., 1.]), clew.tensor([2., 3.]), clew.tensor([4., 5.]), value=10)
tensor([6., 7.])
)",
    .loops = &table::addcdiv,
    .check_operands = refuse_integers,
    .saves = {.when = {0, in(2), in(1) | in(2)}},
    .vjp = addcdiv_vjp,
    .attrs = &attr_info<ValueAttrs>,
});

// PyTorch's older order of arguments.
template <const OpDef& op> void value_first_run(const Call& c, Tensors& outs) {
  warn(concat(c.name(), ": the order (input, value, tensor1, tensor2) is deprecated; use ",
              "(input, tensor1, tensor2, value=value)"));
  outs.push_back(apply(op, {c.in[0], c.in[1], c.in[2]}, c.as<ValueAttrs>()));
}
constexpr OpDef addcmul_value_op = composite({
    .signature = "addcmul(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor",
    .doc = "Adds a multiple of a product.",
    .run = value_first_run<addcmul_op>,
    .attrs = &attr_info<ValueAttrs>,
    .inplace = true,
});
constexpr OpDef addcdiv_value_op = composite({
    .signature = "addcdiv(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor",
    .doc = "Adds a multiple of a quotient.",
    .run = value_first_run<addcdiv_op>,
    .attrs = &attr_info<ValueAttrs>,
    .inplace = true,
});

}  // namespace

static constexpr const OpDef* binary_list[] = {
    &atan2_op,
    &hypot_op,
    &copysign_op,
    &nextafter_op,
    &heaviside_op,
    &ldexp_op,
    &xlogy_op,
    &xlog1py_op,
    &logaddexp_op,
    &logaddexp2_op,
    &gcd_op,
    &lcm_op,
    &lerp_op,
    &addcmul_op,
    &addcmul_value_op,
    &addcdiv_op,
    &addcdiv_value_op,
    renamed<atan2_op, "arctan2">,
    renamed<xlogy_op, "special.xlogy">,
};
extern const OpList binary_ops;
const OpList binary_ops = op_list(binary_list);

}  // namespace clew

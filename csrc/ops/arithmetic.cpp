// Arithmetic: add, sub, mul, div, pow, neg and their kin.
// May include: graph/op.h, kernels/pointwise.h, other families' headers.
// Invariant: an op keeps for backward only what its own gradient reads.
#include "ops/arithmetic.h"

#include "kernels/pointwise.h"
#include "ops/comparison.h"
#include "ops/ops.h"
#include "ops/unary.h"

namespace clew {

namespace table = kernels::table;

namespace {

struct AlphaAttrs {
  Scalar alpha = 1;
  static constexpr auto members() { return std::tuple(&AlphaAttrs::alpha); }
};

Scalar conj_scalar(const Scalar& s) { return s.is_complex() ? Scalar(c128(s.re, -s.im)) : s; }

Tensor scaled(const Tensor& g, const Scalar& alpha) {
  return alpha.equals(1) ? g : g * conj_scalar(alpha);
}
void add_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, c.grad());
  if (c.needs(1)) c.set(1, scaled(c.grad(), c.as<AlphaAttrs>().alpha));
}
void sub_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, c.grad());
  if (c.needs(1)) c.set(1, -scaled(c.grad(), c.as<AlphaAttrs>().alpha));
}

constexpr OpDef add_op = elementwise({
    .signature = "add(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor",
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
});

constexpr OpDef sub_op = elementwise({
    .signature = "sub(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor",
    .doc = R"(Subtracts other, scaled by alpha, from input.

out = input - alpha * other

Args:
    input: the first operand.
    other: the second operand, a tensor or a number.
    alpha: the factor of other.
Returns:
    a tensor of the broadcast shape and the promoted dtype.

>>> clew.sub(clew.tensor([5., 7.]), clew.tensor([1., 2.]))
tensor([4., 5.])
)",
    .loops = &table::sub,
    .vjp = sub_vjp,
    .attrs = &attr_info<AlphaAttrs>,
});

void mul_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, c.grad() * conj(c.in(1)));
  if (c.needs(1)) c.set(1, c.grad() * conj(c.in(0)));
}

constexpr OpDef mul_op = elementwise({
    .signature = "mul(Tensor input, Tensor other) -> Tensor",
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
});

// The gradient of the quotient q = a / b is g / b and -g q / b.
void div_vjp(Vjp& c) {
  Tensor g = c.grad() / conj(c.in(1));
  if (c.needs(0)) c.set(0, g);
  if (c.needs(1)) c.set(1, -g * conj(c.in(0) / c.in(1)));
}

constexpr OpDef div_op = elementwise({
    .signature = "div(Tensor input, Tensor other) -> Tensor",
    .doc = R"(Divides input by other, element by element.

out = input / other, where integers are divided as floats

Args:
    input: the dividend.
    other: the divisor, a tensor or a number.
Returns:
    a tensor of the broadcast shape.

>>> clew.div(clew.tensor([1., 2.]), 4)
tensor([0.2500, 0.5000])
)",
    .promote = Promote::to_float,
    .loops = &table::div,
    .saves = {.when = {in(1), in(0) | in(1)}},
    .vjp = div_vjp,
});

void neg_vjp(Vjp& c) { c.set(0, -c.grad()); }

constexpr OpDef neg_op = elementwise({
    .signature = "neg(Tensor input) -> Tensor",
    .doc = R"(Changes the sign of every element.

out = -input

Args:
    input: the tensor; not bool.
Returns:
    a tensor like input.

>>> clew.neg(clew.tensor([1., -2.]))
tensor([-1.,  2.])
)",
    .loops = &table::neg,
    .vjp = neg_vjp,
});

void square_vjp(Vjp& c) { c.set(0, c.grad() * (conj(c.in(0)) * 2)); }

constexpr OpDef square_op = elementwise({
    .signature = "square(Tensor input) -> Tensor",
    .doc = R"(Squares every element.

out = input * input

Args:
    input: the tensor.
Returns:
    a tensor like input.

>>> clew.square(clew.tensor([1., -2.]))
tensor([1., 4.])
)",
    .loops = &table::square,
    .saves = {.always = in(0)},
    .vjp = square_vjp,
});

// The exponent as a plain number, when it is one without a gradient of its own.
bool constant_exponent(const Vjp& c, const Tensor& exponent, Scalar& value) {
  if (exponent.ndim() != 0 || c.needs(1) || exponent.is_meta()) return false;
  value = item(exponent);
  return true;
}

void pow_vjp(Vjp& c) {
  const Tensor& g = c.grad();
  if (c.needs(0)) {
    Tensor base = c.in(0);
    Tensor exponent = c.in(1);
    Scalar e;
    if (constant_exponent(c, exponent, e)) {
      if (e.equals(0)) {
        c.set(0, g * 0);
      } else if (e.equals(1)) {
        c.set(0, g);
      } else if (e.equals(2)) {
        c.set(0, g * (conj(base) * 2));
      } else {
        Scalar less = e.is_complex() ? Scalar(c128(e.re - 1, e.im))
                      : e.is_float() ? Scalar(e.re - 1)
                                     : Scalar(e.to_int() - 1);
        c.set(0, g * conj(pow(base, less) * e));
      }
    } else {
      // x^0 is 1 everywhere, also where x^(0 - 1) is infinite.
      Tensor slope = exponent * pow(base, exponent - 1);
      c.set(0, g * conj(where(eq(exponent, number(0)), number(0), slope)));
    }
  }
  if (c.needs(1)) {
    Tensor base = c.in(0);
    Tensor exponent = c.in(1);
    Tensor slope = c.out() * log(base);
    // 0^y is 0 for all y > 0 and 1 at y = 0, where the derivative is taken from the right.
    Tensor flat = exponent.is_complex() || base.is_complex()
                      ? eq(base, number(0))
                      : logical_and(eq(base, number(0)), ge(exponent, number(0)));
    c.set(1, g * conj(where(flat, number(0), slope)));
  }
}

constexpr OpDef pow_op = elementwise({
    .signature = "pow(Tensor input, Tensor exponent) -> Tensor",
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
    .saves = {.when = {in(0) | in(1), in(0) | in(1) | out(0)}},
    .vjp = pow_vjp,
});

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

static constexpr const OpDef* all[] = {&add_op, &sub_op, &mul_op, &div_op, &neg_op, &square_op, &pow_op};
extern const OpList arithmetic_ops;
const OpList arithmetic_ops = op_list(all);

}  // namespace clew

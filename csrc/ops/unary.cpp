// Functions of one number: exp, log, sqrt, tanh ...
// May include: graph/op.h, kernels/pointwise.h, other families' headers.
// Invariant: an op keeps for backward its output where the gradient can be told from it.
#include "ops/unary.h"

#include "kernels/pointwise.h"
#include "ops/arithmetic.h"
#include "ops/ops.h"

namespace clew {

namespace table = kernels::table;

namespace {

Tensor d_exp(const Vjp& c) { return c.out(); }
Tensor d_log(const Vjp& c) { return 1 / c.in(0); }
Tensor d_sqrt(const Vjp& c) { return 0.5 / c.out(); }
Tensor d_tanh(const Vjp& c) { return 1 - square(c.out()); }
Tensor d_sigmoid(const Vjp& c) { return c.out() * (1 - c.out()); }

constexpr OpDef exp_op = elementwise({
    .signature = "exp(Tensor input) -> Tensor",
    .doc = R"(The exponential of every element.

out = e ** input

Args:
    input: the tensor.
Returns:
    a tensor of input's shape.

>>> clew.exp(clew.tensor([0., 1.]))
tensor([1.0000, 2.7183])
)",
    .promote = Promote::to_float,
    .loops = &table::exp,
    .saves = {.always = out(0)},
    .partials = {d_exp},
});
constexpr OpDef log_op = elementwise({
    .signature = "log(Tensor input) -> Tensor",
    .doc = R"(The natural logarithm of every element.

out = log(input)

Args:
    input: the tensor.
Returns:
    a tensor of input's shape.

>>> clew.log(clew.tensor([1., 10.]))
tensor([0.0000, 2.3026])
)",
    .promote = Promote::to_float,
    .loops = &table::log,
    .saves = {.always = in(0)},
    .partials = {d_log},
});
constexpr OpDef sqrt_op = elementwise({
    .signature = "sqrt(Tensor input) -> Tensor",
    .doc = R"(The square root of every element.

out = input ** 0.5

Args:
    input: the tensor.
Returns:
    a tensor of input's shape; nan where input is negative.

>>> clew.sqrt(clew.tensor([1., 4.]))
tensor([1., 2.])
)",
    .promote = Promote::to_float,
    .loops = &table::sqrt,
    .saves = {.always = out(0)},
    .partials = {d_sqrt},
});
constexpr OpDef tanh_op = elementwise({
    .signature = "tanh(Tensor input) -> Tensor",
    .doc = R"(The hyperbolic tangent of every element.

out = (e ** x - e ** -x) / (e ** x + e ** -x)

Args:
    input: the tensor.
Returns:
    a tensor of input's shape.

>>> clew.tanh(clew.tensor([0., 1.]))
tensor([0.0000, 0.7616])
)",
    .promote = Promote::to_float,
    .loops = &table::tanh,
    .saves = {.always = out(0)},
    .partials = {d_tanh},
});
constexpr OpDef sigmoid_op = elementwise({
    .signature = "sigmoid(Tensor input) -> Tensor",
    .doc = R"(The logistic function of every element.

out = 1 / (1 + e ** -input)

Args:
    input: the tensor.
Returns:
    a tensor of input's shape.

>>> clew.sigmoid(clew.tensor([0., 2.]))
tensor([0.5000, 0.8808])
)",
    .promote = Promote::to_float,
    .loops = &table::sigmoid,
    .saves = {.always = out(0)},
    .partials = {d_sigmoid},
});

void conj_vjp(Vjp& c) { c.set(0, conj(c.grad())); }

constexpr OpDef conj_op = elementwise({
    .signature = "conj_physical(Tensor input) -> Tensor",
    .doc = R"(The complex conjugate of every element.

out = real(input) - 1j * imag(input)

Args:
    input: the tensor.
Returns:
    a tensor like input.

>>> clew.conj_physical(clew.tensor([1 + 2j]))
tensor([1.-2.j])
)",
    .loops = &table::conj,
    .vjp = conj_vjp,
});

struct ToDtypeAttrs {
  std::optional<DType> dtype;
  static constexpr auto members() { return std::tuple(&ToDtypeAttrs::dtype); }
};

// A dense input passes its strides on.
void add_like(OutSpecs& outs, const Tensor& input, DType dtype) {
  OutSpec& o = outs.add(dtype, input.sizes());
  if (!input.is_contiguous() && is_non_overlapping_and_dense(input.sizes(), input.strides())) {
    o.strides = input.strides();
  }
}
void to_dtype_shape(const Call& c, OutSpecs& outs) {
  add_like(outs, c.in[0], c.as<ToDtypeAttrs>().dtype.value_or(c.in[0].dtype()));
}
void copy_cpu(const Call& c, Tensors& outs) { kernels::copy(outs[0].nd(), c.in[0].nd()); }
// The engine casts the gradient to the input's dtype.
void copy_vjp(Vjp& c) { c.set(0, c.grad()); }

constexpr OpDef to_dtype_op = general({
    .signature = "_to_dtype(Tensor input, *, dtype? dtype=None) -> Tensor",
    .doc = "A copy of input in another dtype.",
    .shape = to_dtype_shape,
    .cpu = copy_cpu,
    .vjp = copy_vjp,
    .attrs = &attr_info<ToDtypeAttrs>,
});

void clone_shape(const Call& c, OutSpecs& outs) { add_like(outs, c.in[0], c.in[0].dtype()); }

constexpr OpDef clone_op = general({
    .signature = "clone(Tensor input) -> Tensor",
    .doc = R"(A copy of input with memory of its own; gradients flow through it.

Args:
    input: the tensor.
Returns:
    a tensor like input, with its strides when they are dense.

>>> clew.clone(clew.tensor([1., 2.]))
tensor([1., 2.])
)",
    .shape = clone_shape,
    .cpu = copy_cpu,
    .vjp = copy_vjp,
});

}  // namespace

Tensor clone(const Tensor& input) { return apply(clone_op, {input}); }
Tensor to_dtype(const Tensor& input, DType dtype) {
  return input.dtype() == dtype ? input : apply(to_dtype_op, {input}, ToDtypeAttrs{dtype});
}
Tensor exp(const Tensor& input) { return apply(exp_op, {input}); }
Tensor log(const Tensor& input) { return apply(log_op, {input}); }
Tensor sqrt(const Tensor& input) { return apply(sqrt_op, {input}); }
Tensor tanh(const Tensor& input) { return apply(tanh_op, {input}); }
Tensor sigmoid(const Tensor& input) { return apply(sigmoid_op, {input}); }
Tensor conj(const Tensor& input) {
  return input.is_complex() ? apply(conj_op, {input}) : input;
}

static constexpr const OpDef* all[] = {&exp_op, &log_op, &sqrt_op, &tanh_op, &sigmoid_op, &conj_op,
                                       &clone_op, &to_dtype_op};
extern const OpList unary_ops;
const OpList unary_ops = op_list(all);

}  // namespace clew

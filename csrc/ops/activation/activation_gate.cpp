// Activations in which one half of the input gates the other: glu.
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: the halves are never copied: loops run over where they lie.
#include "kernels/core/loop_tables.h"
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/joining.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/slope.h"
#include "ops/ops.h"
#include "tensor/layout.h"

namespace clew {

namespace {

// The gradient of the gating half, grad * a * s * (1 - s) with s = sigmoid(b), in one pass.
constexpr OpDef gate_slope_op =
    elementwise({.signature = "_gate_slope(Tensor grad, Tensor a, Tensor b) -> Tensor",
                 .doc = "grad * a * sigmoid'(b)",
                 .loops = &kernels::table::gate_slope,
                 .no_vjp = composed_when_recorded,
                 .inplace = false});
void gate_vjp(Vjp& c);
constexpr OpDef gate_op = elementwise({.signature = "_gate(Tensor a, Tensor b) -> Tensor",
                                       .doc = "a * sigmoid(b)",
                                       .loops = &kernels::table::gate,
                                       .saves = {.when = {in(1), in(0) | in(1)}},
                                       .vjp = gate_vjp,
                                       .inplace = false});

Tensor slope_of_gate(const Tensor& grad, const Tensor& a, const Tensor& b) {
  if (!modes.grad) return apply(gate_slope_op, {grad, a, b});
  const Tensor s = sigmoid(b);
  return grad * a * (s * (1 - s));
}
void gate_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, apply(gate_op, {c.grad(), c.in(1)}));
  if (c.needs(1)) c.set(1, slope_of_gate(c.grad(), c.in(0), c.in(1)));
}

int halved(const Call& c) {
  const Tensor& x = c.in[0];
  require(x.ndim() > 0, "glu: input must have at least one dimension; got ", x);
  const int dim = wrap_dim(c.as<DimAttrs>().dim, x.ndim(), "glu");
  require(x.size(dim) % 2 == 0, "glu: the halved dimension must be even, but dimension ", dim,
          " is size ", x.size(dim));
  return dim;
}
void glu_shape(const Call& c, OutSpecs& out) {
  const Tensor& x = c.in[0];
  const int dim = halved(c);
  if (!x.is_floating())
    fail(ErrorKind::NotImplemented, "glu: input must be floating point; got ", x);
  Dims sizes = x.sizes();
  sizes[dim] /= 2;
  OutSpec& spec = out.add(x.dtype(), sizes);
  if (!x.is_contiguous() && !is_batched(x))
    spec.strides = kept_strides(alias(x, sizes, x.strides(), 0));
}
void glu_cpu(const Call& c, Tensors& outs) {
  const Tensor &x = c.in[0], &y = outs[0];
  const int dim = halved(c);
  const auto item = itemsize(x.dtype());
  const int64_t half = x.stride(dim) * y.size(dim) * static_cast<int64_t>(item);
  char* const data[] = {y->address(), x->address(), x->address() + half};
  const int64_t* const strides[] = {y.strides().data(), x.strides().data(), x.strides().data()};
  const size_t items[] = {item, item, item};
  kernels::run_loop(kernels::table::gate[x.dtype()], 3, data, strides, items, y.sizes().data(),
                    y.ndim(), nullptr);
}
void glu_vjp(Vjp& c) {
  const Tensor x = c.in(0);
  const int dim = wrap_dim(c.as<DimAttrs>().dim, x.ndim(), "glu");
  const int64_t half = x.size(dim) / 2;
  const Tensor a = narrow(x, dim, 0, half), b = narrow(x, dim, half, half);
  const Tensor parts[] = {apply(gate_op, {c.grad(), b}), slope_of_gate(c.grad(), a, b)};
  c.set(0, cat(parts, dim));
}
constexpr OpDef glu_op = general({
    .signature = "nn.functional.glu(Tensor input, int dim=-1) -> Tensor",
    .doc = R"(The gated linear unit: one half of input gated by the other.

out = a * sigmoid(b), where a and b are the halves of input along dim

Args:
    input: (*, 2 n, *), 2 n along dim.
    dim: the dimension that is halved.
Returns:
    (*, n, *).

>>> clew.nn.functional.glu(clew.tensor([2., 0.]))
tensor([1.])
)",
    .shape = glu_shape,
    .cpu = glu_cpu,
    .saves = {.always = in(0)},
    .vjp = glu_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<DimAttrs>,
    .offer = Offer::function,
    .flops = "5 * numel(result)",
});

constexpr const OpDef* activation_gate_list[] = {&gate_slope_op, &gate_op, &glu_op};

}  // namespace

extern const OpList activation_gate_ops;
const OpList activation_gate_ops = op_list(activation_gate_list);

}  // namespace clew

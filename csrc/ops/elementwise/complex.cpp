// Complex numbers: their parts, conjugate, angle, and making them from two real tensors.
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: real and imag are views of a complex input; gradients follow PyTorch's convention
// (conjugate Wirtinger).
#include "kernels/core/loop_tables.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/ops.h"
#include "tensor/layout.h"

namespace clew {

namespace table = kernels::table;

namespace {

void conj_vjp(Vjp& c) { c.set(0, conj(c.grad())); }
constexpr OpDef conjugate_op = elementwise({
    .signature = "_conj_physical(Tensor input) -> Tensor",
    .doc = "The complex conjugate of every element, as a copy.",
    .loops = &table::conj,
    .vjp = conj_vjp,
    .out_dtype = OutDtype::own,
});

void conj_physical_run(const Call& c, Tensors& outs) { outs.push_back(conj(c.in[0])); }
void conj_physical_write(const Call& c) { apply_inplace(conjugate_op, c.in, nullptr); }
constexpr OpDef conj_physical_op = composite({
    .signature = "conj_physical(Tensor input) -> Tensor",
    .doc = R"(The complex conjugate of every element, as a copy; a real tensor is returned as it is.

out = real(input) - 1j * imag(input)

Args:
    input: any shape.
Returns:
    a tensor like input.

>>> clew.conj_physical(clew.tensor([1 + 2j]))
tensor([1.-2.j])
)",
    .run = conj_physical_run,
    .write = conj_physical_write,
    .inplace = true,
    .out_dtype = OutDtype::own,
    .out_memory = OutMemory::aligned,
});

void conj_run(const Call& c, Tensors& outs) { outs.push_back(shown_conj(c.in[0])); }
constexpr OpDef conj_op = composite({
    .signature = "conj(Tensor input) -> Tensor",
    .doc = R"(The complex conjugate of every element; a real tensor is returned as it is.

The result is a copy that refuses to be written to: in PyTorch it shows its input's memory, and a
write would reach that. resolve_conj() makes a copy of your own of it.

out = real(input) - 1j * imag(input)

Args:
    input: any shape.
Returns:
    a tensor like input.

>>> clew.conj(clew.tensor([1 + 2j]))
tensor([1.-2.j])
)",
    .run = conj_run,
});

// A copy of what cannot be written to, else the tensor itself.
void resolve_run(const Call& c, Tensors& outs) {
  outs.push_back(c.in[0]->flags & flag_conj ? clone(c.in[0]) : c.in[0]);
}
constexpr OpDef resolve_conj_op = composite({
    .signature = "resolve_conj(Tensor input) -> Tensor",
    .doc = R"(A copy of what conj() gave, to be written to; of any other tensor the tensor itself.

Args:
    input: any shape.
Returns:
    a copy, or input.

>>> clew.resolve_conj(clew.tensor([1 + 2j]).conj())
tensor([1.-2.j])
)",
    .run = resolve_run,
});
constexpr OpDef resolve_neg_op = composite({
    .signature = "resolve_neg(Tensor input) -> Tensor",
    .doc =
        R"(A copy of what shows a part of a conjugate, to be written to; else the tensor itself.

Args:
    input: any shape.
Returns:
    a copy, or input.

>>> clew.resolve_neg(clew.tensor([1.]))
tensor([1.])
)",
    .run = resolve_run,
});

void real_run(const Call& c, Tensors& outs) { outs.push_back(real(c.in[0])); }
constexpr OpDef real_op = composite({
    .signature = "real(Tensor input) -> Tensor",
    .doc = R"(The real part of every element, as a view.

out = (input + conj(input)) / 2

Args:
    input: the tensor; a real one is returned as it is.
Returns:
    a real tensor of input's shape.

>>> clew.real(clew.tensor([1 + 2j]))
tensor([1.])
)",
    .run = real_run,
    .offer = Offer::function,
});

void imag_run(const Call& c, Tensors& outs) { outs.push_back(imag(c.in[0])); }
constexpr OpDef imag_op = composite({
    .signature = "imag(Tensor input) -> Tensor",
    .doc = R"(The imaginary part of every element, as a view.

out = (input - conj(input)) / 2j

Args:
    input: a complex tensor.
Returns:
    a real tensor of input's shape.

>>> clew.imag(clew.tensor([1 + 2j]))
tensor([2.])
)",
    .run = imag_run,
    .offer = Offer::function,
});

// The angle turns with 1j z / |z|^2; a real number has none to turn.
void angle_vjp(Vjp& c) {
  if (!is_complex(c.dtype(0))) {
    c.set(0, zeros_for(c, 0));
    return;
  }
  Tensor z = c.in(0);
  Tensor turn = z * c128(0, 1) / square(abs(z));
  c.set(0, where(eq(z, number(0)), number(0), c.grad() * turn));
}
constexpr OpDef angle_op = unary<"angle", "The angle of every element with the positive real axis.",
                                 "atan2(imag(input), real(input))", "clew.tensor([1j, -1 + 0j])",
                                 "tensor([1.5708, 3.1416])">(
    {.result = Result::real, .loops = &table::angle, .saves = {.always = in(0)}, .vjp = angle_vjp});

// --- complex numbers from real ones ---

void complex_shape(const Call& c, OutSpecs& outs) {
  const Tensor& re = c.in[0];
  const Tensor& im = c.in[1];
  require(
      re.dtype() == DType::Float16 || re.dtype() == DType::Float32 || re.dtype() == DType::Float64,
      "complex: real and imag must be float16, float32 or float64; got ", re, " and ", im);
  require(re.dtype() == im.dtype(), "complex: real and imag must have one dtype; got ", re, " and ",
          im);
  const Dims sizes = broadcast_shapes(re.sizes(), im.sizes(), "complex");
  outs.add(complex_of(re.dtype()), sizes).strides = ordered_strides(sizes, c.in);
}
void complex_cpu(const Call& c, Tensors& outs) {
  const Tensor& out = outs[0];
  DType part = real_of(out.dtype());
  Dims doubled = out.strides();
  for (int64_t& s : doubled) s *= 2;
  for (int k = 0; k < 2; ++k) {
    kernels::NdView to = {out->address() + static_cast<size_t>(k) * itemsize(part),
                          out.sizes().data(), doubled.data(), out.ndim(), part};
    Dims strides = broadcast_strides(c.in[k].sizes(), c.in[k].strides(), out.sizes());
    kernels::copy(to, {c.in[k]->address(), out.sizes().data(), strides.data(), out.ndim(), part});
  }
}
void complex_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, real(c.grad()));
  if (c.needs(1)) c.set(1, imag(c.grad()));
}
constexpr OpDef complex_op = general({
    .signature = "complex(Tensor real, Tensor imag) -> Tensor",
    .doc = R"(Complex numbers from their real and imaginary parts.

out = real + 1j * imag

Args:
    real: a float32 or float64 tensor.
    imag: a tensor of the same dtype.
Returns:
    a complex tensor of the broadcast shape.

>>> clew.complex(clew.tensor([1., 2.]), clew.tensor([3., 4.]))
tensor([1.+3.j, 2.+4.j])
)",
    .shape = complex_shape,
    .cpu = complex_cpu,
    .vjp = complex_vjp,
    .batch = batch_where,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});

void polar_run(const Call& c, Tensors& outs) {
  outs.push_back(complex(c.in[0] * cos(c.in[1]), c.in[0] * sin(c.in[1])));
}
constexpr OpDef polar_op = composite({
    .signature = "polar(Tensor abs, Tensor angle) -> Tensor",
    .doc = R"(Complex numbers from their absolute values and angles.

out = abs * cos(angle) + 1j * abs * sin(angle)

Args:
    abs: a float32 or float64 tensor.
    angle: a tensor of the same dtype, in radians.
Returns:
    a complex tensor of the broadcast shape.

>>> clew.polar(clew.tensor([2.]), clew.tensor([0.]))
tensor([2.+0.j])
)",
    .run = polar_run,
    .autocast = Autocast::float32,
    .offer = Offer::function,
});

}  // namespace

Tensor conj(const Tensor& input) {
  return input.is_complex() ? apply(conjugate_op, {input}) : input;
}
Tensor shown_conj(const Tensor& input) {
  if (!input.is_complex()) return input;
  Tensor y = conj(input);
  y->flags |= flag_conj;
  if (is_batched(y)) physical(y)->flags |= flag_conj;
  return y;
}
Tensor real(const Tensor& input) {
  return input.is_complex() ? select(view_as_real(input), -1, 0) : input;
}
Tensor imag(const Tensor& input) {
  require(input.is_complex(), "imag: input must be complex; got ", input);
  return select(view_as_real(input), -1, 1);
}
Tensor complex(const Tensor& real, const Tensor& imag) { return apply(complex_op, {real, imag}); }

static constexpr const OpDef* complex_list[] = {
    &conjugate_op, &conj_physical_op, &conj_op,  &real_op,         &imag_op,
    &angle_op,     &complex_op,       &polar_op, &resolve_conj_op, &resolve_neg_op};
extern const OpList complex_ops;
const OpList complex_ops = op_list(complex_list);

}  // namespace clew

// softmax, log_softmax, softmin and the fused gradients.
// May include: ops, graph, tensor, kernels.
// Invariant: backward keeps the result alone, never the input.
#include "ops/calls/softmax.h"

#include <cmath>

#include "kernels/norm/softmax.h"
#include "kernels/norm/softmax_rows.h"
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/reduction.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/reduction/reduction_dims.h"
#include "ops/widened.h"

namespace clew {
namespace {

struct SoftmaxAttrs {
  int64_t dim = 0;
  std::optional<DType> dtype;
  static constexpr auto members() { return std::tuple(&SoftmaxAttrs::dim, &SoftmaxAttrs::dtype); }
};
struct SoftminAttrs {
  std::optional<int64_t> dim;
  std::optional<DType> dtype;
  static constexpr auto members() { return std::tuple(&SoftminAttrs::dim, &SoftminAttrs::dtype); }
};
void softmax_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<SoftmaxAttrs>();
  const Tensor& x = c.in[0];
  axis_of(a.dim, x.ndim(), c.name());
  DType d = a.dtype.value_or(x.dtype());
  if (!is_floating(d)) {
    fail(ErrorKind::NotImplemented, c.name(), ": ", a.dtype ? "dtype" : "input",
         " must be floating point; got ", d, a.dtype ? "" : " (pass dtype= to convert first)");
  }
  out.add(d, x.sizes());
}
// The kernel takes columns side by side, and converts those of 16 bits in vectors itself. Tensors
// that are not contiguous are worth a copy.
bool by_columns(const Tensor& x, int dim) { return dim < x.ndim() - 1 && x.size(-1) >= 8; }
template <bool Log> void softmax_cpu(const Call& c, Tensors& outs) {
  const Tensor x = converted(c.in[0], outs[0].dtype());
  const int dim = axis_of(c.as<SoftmaxAttrs>().dim, x.ndim(), c.name());
  if (is_half(x.dtype()) && x.ndim() > 0 && dim == x.ndim() - 1 && x.is_contiguous() &&
      outs[0].is_contiguous() && x.numel() > 0) {
    const int64_t width = x.size(dim);
    in_float_rows(outs[0], x, x.numel() / width, width,
                  [&](float* to, const float* from, int64_t, int64_t count) {
                    const int64_t sizes[] = {count, width}, steps[] = {width, 1};
                    auto* source = reinterpret_cast<char*>(const_cast<float*>(from));
                    kernels::softmax({reinterpret_cast<char*>(to), sizes, steps, 2, DType::Float32},
                                     {source, sizes, steps, 2, DType::Float32}, 1, Log);
                  });
    return;
  }
  if (by_columns(x, dim) && outs[0].is_contiguous())
    return kernels::softmax(outs[0].nd(), dense(x).nd(), dim, Log);
  const Tensor wide = dense(widened(x));
  through_floats(outs[0], [&](const Tensor& y) { kernels::softmax(y.nd(), wide.nd(), dim, Log); });
}

constexpr int64_t few_most = 512;  // elements
// A few rows of float32.
template <bool Log> Tensor softmax_quick(const Call& c) {
  const auto& a = c.as<SoftmaxAttrs>();
  const Tensor& x = c.in[0];
  if (a.dtype || x.dtype() != DType::Float32 || x.is_meta() || !x.is_contiguous() ||
      x.ndim() == 0 || (a.dim != -1 && a.dim != x.ndim() - 1) || x.numel() == 0 ||
      x.numel() > few_most)
    return {};
  const Tensor out = empty_dense_like(x, DType::Float32);
  const int64_t width = x.size(-1);
  kernels::row_ops<float>().softmax_few(out.data<float>(), x.data<const float>(), x.numel() / width,
                                        width, Log);
  return out;
}

void backward_shape(const Call& c, OutSpecs& out) {
  const Tensor& g = c.in[0];
  const Tensor& y = c.in[1];
  axis_of(c.as<DimAttrs>().dim, y.ndim(), c.name());
  require(g.sizes() == y.sizes() && g.dtype() == y.dtype() && y.is_floating(), c.name(),
          ": grad and output must be floating point and alike; got ", g, " and ", y);
  out.add(y.dtype(), y.sizes());
}
template <bool Log> void backward_cpu(const Call& c, Tensors& outs) {
  int dim = axis_of(c.as<DimAttrs>().dim, c.in[1].ndim(), c.name());
  if (by_columns(c.in[1], dim) && outs[0].is_contiguous())
    return kernels::softmax_backward(outs[0].nd(), dense(c.in[0]).nd(), dense(c.in[1]).nd(), dim,
                                     Log);
  const Tensor g = dense(widened(c.in[0])), y = dense(widened(c.in[1]));
  through_floats(outs[0], [&](const Tensor& dx) {
    kernels::softmax_backward(dx.nd(), g.nd(), y.nd(), dim, Log);
  });
}

// dx = y * (g - sum(g y)): its own derivatives, written out.
void softmax_backward_vjp(Vjp& c) {
  Tensor g = c.in(0), y = c.in(1), v = c.grad();
  Dims dim{c.as<DimAttrs>().dim};
  Tensor vy = sum(v * y, dim, true);
  if (c.needs(0)) c.set(0, y * (v - vy));
  if (c.needs(1)) c.set(1, v * (g - sum(g * y, dim, true)) - g * vy);
}
// dx = g - exp(y) * sum(g)
void log_softmax_backward_vjp(Vjp& c) {
  Tensor g = c.in(0), e = exp(c.in(1)), v = c.grad();
  Dims dim{c.as<DimAttrs>().dim};
  Tensor ve = v * e;
  if (c.needs(0)) c.set(0, v - sum(ve, dim, true));
  if (c.needs(1)) c.set(1, -(ve * sum(g, dim, true)));
}

constexpr OpDef softmax_backward_op = general({
    .signature = "_softmax_backward(Tensor grad, Tensor output, int dim) -> Tensor",
    .doc = "Gradient of softmax from its result: output * (grad - sum(grad * output)).",
    .shape = backward_shape,
    .cpu = backward_cpu<false>,
    .saves = {.always = in(0) | in(1)},
    .vjp = softmax_backward_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<DimAttrs>,
    .offer = Offer::function,
    .flops = "4 * numel(grad)",
});
constexpr OpDef log_softmax_backward_op = general({
    .signature = "_log_softmax_backward(Tensor grad, Tensor output, int dim) -> Tensor",
    .doc = "Gradient of log_softmax from its result: grad - exp(output) * sum(grad).",
    .shape = backward_shape,
    .cpu = backward_cpu<true>,
    .saves = {.always = in(0) | in(1)},
    .vjp = log_softmax_backward_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<DimAttrs>,
    .offer = Offer::function,
    .flops = "4 * numel(grad)",
});

template <const OpDef& Backward> void softmax_vjp(Vjp& c) {
  c.set(0, apply(Backward, {c.grad(), c.out()}, DimAttrs{c.as<SoftmaxAttrs>().dim}));
}

constexpr OpDef softmax_op = general({
    .signature = "softmax(Tensor input, int dim, dtype? dtype=None) -> Tensor",
    .doc = R"(Turns numbers into shares that add up to one along an axis.

out[i] = exp(input[i]) / sum_j exp(input[j])

Args:
    input: a floating point tensor.
    dim: the axis along which the shares add up to one.
    dtype: the dtype to convert to first.
Returns:
    a tensor of the input's shape.

>>> clew.softmax(clew.tensor([0., 0., 0., 0.]), 0)
tensor([0.2500, 0.2500, 0.2500, 0.2500])
)",
    .shape = softmax_shape,
    .cpu = softmax_cpu<false>,
    .quick = softmax_quick<false>,
    .saves = {.always = out(0)},
    .vjp = softmax_vjp<softmax_backward_op>,
    .batch = batch_dims,
    .attrs = &attr_info<SoftmaxAttrs>,
    .flops = "5 * numel(input)",
    .backward_flops = "4 * numel(input)",
});
constexpr OpDef log_softmax_op = general({
    .signature = "log_softmax(Tensor input, int dim, dtype? dtype=None) -> Tensor",
    .doc = R"(The logarithm of softmax, without its rounding to zero.

out[i] = input[i] - log(sum_j exp(input[j]))

Args:
    input: a floating point tensor.
    dim: the axis along which the shares add up to one.
    dtype: the dtype to convert to first.
Returns:
    a tensor of the input's shape.

>>> clew.log_softmax(clew.tensor([0., 0.]), 0)
tensor([-0.6931, -0.6931])
)",
    .shape = softmax_shape,
    .cpu = softmax_cpu<true>,
    .quick = softmax_quick<true>,
    .saves = {.always = out(0)},
    .vjp = softmax_vjp<log_softmax_backward_op>,
    .batch = batch_dims,
    .attrs = &attr_info<SoftmaxAttrs>,
    .flops = "5 * numel(input)",
    .backward_flops = "4 * numel(input)",
});

// The axis that nn.functional picks when none is given.
int64_t implicit_dim(int ndim) { return ndim == 0 || ndim == 1 || ndim == 3 ? 0 : 1; }

constexpr OpDef softmin_op = composite({
    .signature = "nn.functional.softmin(Tensor input, int? dim=None, dtype? dtype=None) -> Tensor",
    .doc = R"(The softmax of the negated input: small numbers get large shares.

out[i] = exp(-input[i]) / sum_j exp(-input[j])

Args:
    input: a floating point tensor.
    dim: the axis along which the shares add up to one.
    dtype: the dtype to convert to first.
Returns:
    a tensor of the input's shape.

>>> clew.nn.functional.softmin(clew.tensor([1., 1.]), 0)
tensor([0.5000, 0.5000])
)",
    .run =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<SoftminAttrs>();
          const Tensor& x = c.in[0];
          outs.push_back(softmax(neg(x), a.dim.value_or(implicit_dim(x.ndim())), a.dtype));
        },
    .attrs = &attr_info<SoftminAttrs>,
});

constexpr const OpDef* softmax_list[] = {&softmax_op, &log_softmax_op, &softmin_op,
                                         &softmax_backward_op, &log_softmax_backward_op};

}  // namespace

extern const OpList softmax_ops;
const OpList softmax_ops = op_list(softmax_list);

Tensor softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return apply(softmax_op, {x}, SoftmaxAttrs{dim, dtype});
}
Tensor log_softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return apply(log_softmax_op, {x}, SoftmaxAttrs{dim, dtype});
}

}  // namespace clew

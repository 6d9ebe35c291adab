// rms_norm: rows divided by their root mean square.
// May include: ops, graph, tensor, kernels.
// Invariant: 1 / root is kept from forward, in float32 at least; a recorded gradient is composed of
// public ops.
#include <limits>

#include "base/checked.h"
#include "graph/batch.h"
#include "graph/deferral.h"
#include "graph/modes.h"
#include "kernels/norm/norm.h"
#include "ops/batch_rules.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/normalization/normalization_common.h"
#include "ops/ops.h"
#include "ops/widened.h"
#include "tensor/layout.h"

namespace clew {
namespace {

// The input seen as [n, k], divided along k.
struct RowsAttrs {
  int64_t n = 0, k = 0;
  double eps = 0;
  static constexpr auto members() {
    return std::tuple(&RowsAttrs::n, &RowsAttrs::k, &RowsAttrs::eps);
  }
};

// Its result seen as rows, and whether the weight's gradient is wanted.
struct RowsBackwardAttrs {
  int64_t n = 0, k = 0;
  bool weight = false;
  static constexpr auto members() {
    return std::tuple(&RowsBackwardAttrs::n, &RowsBackwardAttrs::k, &RowsBackwardAttrs::weight);
  }
};
// That x is [n, k], and a weight has k elements.
void check_rows(const Call& c, const Tensor& x, const Tensor& w, int64_t n, int64_t k) {
  const Checked total = Checked(n) * k;
  const bool fits = n >= 0 && k >= 0 && total.fits && total.value == x.numel();
  require(x.is_floating() && fits, c.name(),
          ": input must be floating point and have n * k elements; got ", x);
  require(!w.defined() || (w.is_floating() && w.numel() == k), c.name(),
          ": weight must be floating point and have k elements; got ", w);
}
constexpr OpDef rows_backward_op = general({
    .signature = "_rms_norm_backward(Tensor grad, Tensor input, Tensor rstd, Tensor? weight, int "
                 "n, int k, bool wants_weight) -> (Tensor dinput, Tensor dweight)",
    .doc = "Gradients of _rms_norm()'s input and weight in one pass over the rows; dweight is "
           "empty where it is not wanted.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<RowsBackwardAttrs>();
          const Tensor &g = c.in[0], &x = c.in[1], &rstd = c.in[2];
          check_rows(c, x, c.in[3], a.n, a.k);
          const DType d = norm_dtype(x.dtype());
          require(
              g.is_floating() && g.numel() == x.numel() && rstd.dtype() == d && rstd.numel() == a.n,
              c.name(), ": grad must be like input, rstd have one number of ", d,
              " for each row; got ", g, " and ", rstd, " for ", x);
          out.add(x.dtype(), x.sizes());
          out.add(d, Dims{a.weight ? a.k : 0});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<RowsBackwardAttrs>();
          const DType d = norm_dtype(c.in[1].dtype());
          StagedOut dx(outs[0], d);
          const Tensor g = dense(c.in[0], d), x = dense(c.in[1], d), rstd = dense(c.in[2], d),
                       w = dense(c.in[3], d);
          with_norm_type(d, [&]<class T>() {
            kernels::rms_norm_backward(dx.data<T>(), a.weight ? outs[1].data<T>() : nullptr,
                                       g.data<const T>(), x.data<const T>(), rstd.data<const T>(),
                                       data_or_null<T>(w), a.n, a.k);
          });
        },
    .no_vjp = composed_when_recorded,
    .attrs = &attr_info<RowsBackwardAttrs>,
    .at_once = true,
    .offer = Offer::function,
    .flops = "(7 + 3 * given(weight)) * numel(input)",
});

void rms_norm_vjp(Vjp& c) {
  const auto& a = c.as<RowsAttrs>();
  Tensor g = c.grad(0), x = c.in(0), rstd = c.out(1);
  Tensor weight = c.has_in(1) ? c.in(1) : Tensor();
  if (g.defined() && !c.grad(1).defined() && !modes.grad &&
      !levels_of(std::initializer_list<Tensor>{g, x, weight})) {
    const RowsBackwardAttrs attrs{a.n, a.k, c.inputs() > 1 && c.needs(1)};
    const Tensor in[] = {g, x, rstd, weight};
    Tensors grads;
    apply(rows_backward_op, in, &attrs, grads);
    if (c.needs(0)) c.set(0, grads[0]);
    if (attrs.weight) c.set(1, reshape(grads[1], c.sizes(1)));
    return;
  }
  const DType d = norm_dtype(x.dtype());
  const Dims rows{a.n, a.k}, column{a.n, 1};
  Tensor r = reshape(rstd, column), wide = reshape(to_dtype(x, d), rows), dx;
  Tensor cubed = r * r * r;
  if (g.defined()) {
    Tensor flow = reshape(to_dtype(g, d), rows);
    if (c.inputs() > 1 && c.needs(1))
      c.set(1, to_dtype(reshape(sum(flow * wide * r, Dims{0}, false), c.sizes(1)), c.dtype(1)));
    if (weight.defined()) flow = flow * reshape(to_dtype(weight, d), Dims{1, a.k});
    dx = flow * r - wide * (cubed * mean(flow * wide, Dims{1}, true));
  }
  if (c.grad(1).defined()) {
    Tensor more = wide * (reshape(c.grad(1), column) * cubed / Scalar(-static_cast<double>(a.k)));
    dx = dx.defined() ? dx + more : more;
  }
  if (c.needs(0) && dx.defined()) c.set(0, to_dtype(reshape(dx, x.sizes()), x.dtype()));
}

// Samples are folded into n.
void rms_norm_batch(const Batch& b, Tensors& outs) {
  RowsAttrs a = b.as<RowsAttrs>();
  const RowsAttrs one = a;
  a.n *= numel_of(b.lead);
  if (!a.n) return batch_each(b, outs);
  Tensor w = b.in[1];
  const bool apart = is_batched(w);
  Tensor in[] = {b.full(0), apart ? Tensor() : w};
  apply(b.op, in, &a, outs);
  outs[1] = view(outs[1], with_lead(b, Dims{one.n}));
  if (!apart) return;
  Tensor weight = reshape(b.full(1), with_lead(b, Dims{1, one.k}));
  Tensor y = reshape(outs[0], with_lead(b, Dims{one.n, one.k})) * weight;
  outs[0] = to_dtype(reshape(y, outs[0].sizes()), b.in[0].dtype());
}

// n counts rows, or equal parts of them.
RowWise rms_norm_rows(const Call& c, void* attrs, int64_t rows) {
  auto& a = *static_cast<RowsAttrs*>(attrs);
  const int64_t n = c.in[0].size(0);
  if (n == 0 || a.n % n != 0) return no_rows;
  a.n = a.n / n * rows;
  return rows_of_first(c, nullptr, 0);
}

constexpr OpDef rows_op = general({
    .signature = "_rms_norm(Tensor input, Tensor? weight, int n, int k, float eps) -> (Tensor "
                 "output, Tensor rstd)",
    .doc = "rms_norm() of the input, seen as [n, k], along k; weight has k elements.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<RowsAttrs>();
          const Tensor &x = c.in[0], &w = c.in[1];
          check_rows(c, x, w, a.n, a.k);
          out.add(x.dtype(), x.sizes()).strides = format_strides(x, x.sizes());
          out.add(norm_dtype(x.dtype()), Dims{a.n});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<RowsAttrs>();
          const DType d = norm_dtype(c.in[0].dtype());
          const Tensor w = dense(c.in[1], d);
          if (a.k == 0) fill_(outs[1], 0);
          if (is_half(c.in[0].dtype()) && c.in[0].is_contiguous() && outs[0].is_contiguous()) {
            in_float_rows(outs[0], c.in[0], a.n, a.k,
                          [&](float* to, const float* from, int64_t first, int64_t count) {
                            kernels::rms_norm(to, outs[1].data<float>() + first, from,
                                              data_or_null<float>(w), count, a.k, a.eps);
                          });
            return;
          }
          StagedOut y(outs[0], d), rstd(outs[1], d);
          const Tensor x = dense(c.in[0], d);
          with_norm_type(d, [&]<class T>() {
            kernels::rms_norm(y.data<T>(), rstd.data<T>(), x.data<const T>(), data_or_null<T>(w),
                              a.n, a.k, a.eps);
          });
        },
    .saves = {.always = in(0) | in(1) | out(1)},
    .vjp = rms_norm_vjp,
    .batch = rms_norm_batch,
    .rows = rms_norm_rows,
    .attrs = &attr_info<RowsAttrs>,
    .offer = Offer::function,
    .flops = "(3 + given(weight)) * numel(input)",
    .backward_flops = "(7 + 3 * given(weight)) * numel(input)",
});

struct RmsNormAttrs {
  Dims normalized_shape;
  std::optional<double> eps;
  static constexpr auto members() {
    return std::tuple(&RmsNormAttrs::normalized_shape, &RmsNormAttrs::eps);
  }
};

void rms_norm_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<RmsNormAttrs>();
  const Tensor &x = c.in[0], &w = c.in[1];
  check_normalized_shape(c, x, a.normalized_shape, c.in.subspan(1));
  require(is_inexact(x.dtype()), c.name(), ": input must be floating point; got ", x);
  const DType d = x.dtype();
  const double eps =
      a.eps.value_or(real_of(d) == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                                  : std::numeric_limits<float>::epsilon());
  const int lead = x.ndim() - a.normalized_shape.size();
  if (x.is_floating()) {
    int64_t n = 1, k = 1;
    for (int i = 0; i < x.ndim(); ++i) (i < lead ? n : k) *= x.sizes()[i];
    Tensors both;
    Tensor in[] = {x, w};
    const RowsAttrs rows{n, k, eps};
    apply(rows_op, in, &rows, both);
    return outs.push_back(std::move(both[0]));
  }
  // Complex numbers.
  Dims over;
  for (int i = lead; i < x.ndim(); ++i) over.push_back(i);
  Tensor power = mean(square(x), over, true) + Scalar(eps);
  Tensor y = x * pow(power, Scalar(-0.5));
  outs.push_back(w.defined() ? y * w : y);
}
constexpr OpDef rms_norm_op = composite({
    .signature =
        "nn.functional.rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, "
        "float? eps=None) -> Tensor",
    .doc = R"(Divides the last dimensions by their root mean square, then scales.

out = input / sqrt(mean(input^2) + eps) * weight

Args:
    input: a floating point tensor.
    normalized_shape: the sizes of the last dimensions, which the mean is taken over.
    weight: the scale, of normalized_shape.
    eps: keeps the root away from zero; None for the dtype's machine epsilon.
Returns:
    a tensor of the input's shape.

>>> clew.nn.functional.rms_norm(clew.tensor([3., 3.]), [2])
tensor([1., 1.])
)",
    .run = rms_norm_run,
    .attrs = &attr_info<RmsNormAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* list[] = {&rows_op, &rows_backward_op, &rms_norm_op};

}  // namespace

extern const OpList rms_norm_ops;
const OpList rms_norm_ops = op_list(list);

}  // namespace clew

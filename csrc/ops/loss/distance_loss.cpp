// Losses of the distance between two tensors: its square near zero, a line beyond an edge.
// May include: ops, graph, tensor, kernels.
// Invariant: sum and mean read both tensors once and write one number; a recorded gradient is
// composed of public ops.
#include "graph/batch.h"
#include "graph/modes.h"
#include "kernels/core/loop_tables.h"
#include "kernels/norm/loss.h"
#include "ops/calls/comparison.h"
#include "ops/calls/rules.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/normalization/normalization_common.h"
#include "ops/ops.h"

namespace clew {
namespace {

namespace table = kernels::table;

// With d = |input - target|: half * d^2 up to the edge, line * (d - edge / 2) beyond it.
struct DistanceAttrs {
  Scalar edge, half, line;
  static constexpr auto members() {
    return std::tuple(&DistanceAttrs::edge, &DistanceAttrs::half, &DistanceAttrs::line);
  }
};
struct DistanceTotalAttrs {
  Scalar edge, half, line;
  bool mean = true;
  static constexpr auto members() {
    return std::tuple(&DistanceTotalAttrs::edge, &DistanceTotalAttrs::half,
                      &DistanceTotalAttrs::line, &DistanceTotalAttrs::mean);
  }
};
DistanceAttrs plain(const DistanceTotalAttrs& a) { return {a.edge, a.half, a.line}; }

struct SlopeAttrs {
  Scalar edge, over, line, share;
  static constexpr auto members() {
    return std::tuple(&SlopeAttrs::edge, &SlopeAttrs::over, &SlopeAttrs::line, &SlopeAttrs::share);
  }
};
constexpr OpDef distance_slope_op = elementwise(
    {.signature = "_distance_slope(Tensor input, Tensor target, Tensor grad, Scalar edge, Scalar "
                  "over, Scalar line, Scalar share) -> Tensor",
     .doc = "share * grad times the slope of _distance() in input, with half = 0.5 / over",
     .loops = &table::distance_slope,
     .no_vjp = composed_when_recorded,
     .attrs = &attr_info<SlopeAttrs>,
     .inplace = false});

// The numbers 0 and 1 for truth values, which have no difference.
Tensor numbers(const Tensor& t) { return t.dtype() == DType::Bool ? to_dtype(t, DType::UInt8) : t; }

// Gradients of both tensors, each of whose elements has a share in the loss; g has their shape or
// is one number.
void pull(Vjp& c, Tensor g, const DistanceAttrs& a, double share) {
  Tensor x = c.in(0), y = c.in(1), dx;
  if (!modes.grad) {
    const double over = 0.5 / a.half.to_double();
    dx = apply(distance_slope_op, {x, y, g}, SlopeAttrs{a.edge, over, a.line, share});
  } else {
    if (share != 1) g = g * number(share);
    Tensor d = numbers(x) - numbers(y);
    const double twice = 2 * a.half.to_double();
    // Chooses the order of the two products so that neither overflows a 16-bit float unless dx
    // does.
    dx = twice < 1 ? g * (d * number(twice)) : g * d * number(twice);
    if (!std::isinf(a.edge.to_double()))  // not beyond the edge: NaN
      dx = where(gt(abs(d), number(a.edge)), g * (sign(d) * number(a.line)), dx);
  }
  if (c.needs(1)) c.set(1, -dx);
  if (c.needs(0)) c.set(0, dx);
}
void distance_vjp(Vjp& c) { pull(c, c.grad(), c.as<DistanceAttrs>(), 1); }
constexpr OpDef distance_op = elementwise(
    {.signature = "_distance(Tensor input, Tensor target, Scalar edge, Scalar half, "
                  "Scalar line) -> Tensor",
     .doc = "half * d^2 where d = |input - target| <= edge, line * (d - edge / 2) elsewhere",
     .promote = Promote::to_float,
     .loops = &table::distance,
     .saves = {.always = in(0) | in(1)},
     .vjp = distance_vjp,
     .attrs = &attr_info<DistanceAttrs>,
     .inplace = false});

void distance_total_vjp(Vjp& c) {
  const auto& a = c.as<DistanceTotalAttrs>();
  pull(c, c.grad(), plain(a), a.mean ? 1 / static_cast<double>(c.in(0).numel()) : 1);
}
void distance_total_batch(const Batch& b, Tensors& outs) {
  const auto& a = b.as<DistanceTotalAttrs>();
  Tensor each = apply(distance_op, {b.full(0), b.full(1)}, plain(a));
  Dims over;
  for (int i = b.k(); i < each.ndim(); ++i) over.push_back(i);
  if (!over.empty()) each = a.mean ? mean(each, over) : sum(each, over);
  outs.push_back(each);
}
constexpr OpDef distance_total_op = general({
    .signature = "_distance_total(Tensor input, Tensor target, Scalar edge, Scalar half, Scalar "
                 "line, bool mean) -> Tensor",
    .doc = "The sum or mean of _distance() of two tensors of one shape and dtype.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const Tensor &x = c.in[0], &y = c.in[1];
          require(x.is_floating() && x.dtype() == y.dtype() && x.sizes() == y.sizes(), c.name(),
                  ": input and target must have one shape and floating dtype; got ", x, " and ", y);
          out.add(x.dtype(), Dims{});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<DistanceTotalAttrs>();
          DType d = norm_dtype(outs[0].dtype());
          StagedOut out(outs[0], d);
          // Where both lie alike, in whatever order, their memory is gone through as it is.
          const Tensor &input = c.in[0], &target = c.in[1];
          const bool alike = input.dtype() == d && input.strides() == target.strides() &&
                             is_non_overlapping_and_dense(input.sizes(), input.strides());
          const Tensor x = alike ? input : dense(input, d), y = alike ? target : dense(target, d);
          const Scalar params[] = {a.edge, a.half, a.line};
          int64_t n = x.numel();
          double total = kernels::distance_total(d, x->address(), y->address(), n, params);
          if (a.mean) total /= static_cast<double>(n);
          with_norm_type(d, [&]<class T>() { *out.data<T>() = static_cast<T>(total); });
        },
    .saves = {.always = in(0) | in(1)},
    .vjp = distance_total_vjp,
    .batch = distance_total_batch,
    .attrs = &attr_info<DistanceTotalAttrs>,
    .offer = Offer::function,
    .flops = "4 * numel(input)",
});

// Registered under the names that the graph shows.
constexpr const OpDef* distance_loss_list[] = {
    &distance_op,
    renamed<distance_total_op, "_mse_loss">,
    renamed<distance_total_op, "_smooth_l1_loss">,
    renamed<distance_total_op, "_huber_loss">,
};

}  // namespace

extern const OpList distance_loss_ops;
const OpList distance_loss_ops = op_list(distance_loss_list);

}  // namespace clew

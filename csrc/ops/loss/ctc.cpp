// What nn.functional.ctc_loss is made of where its gradient is not differentiated again.
// May include: ops, graph, tensor, kernels.
// Invariant: nothing is read before states and lengths were seen to lie within what they point to.
#include "kernels/norm/ctc.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

kernels::CtcShape shape_of(const Tensor& x, const Tensor& states) {
  return {x.size(0), x.size(1), x.size(2), states.size(1)};
}
// Private copies of tensors that are read more than once, so that no other thread can change them
// in between.
struct Targets {
  Tensor states, skip, lengths;
  Targets(const Tensor& s, const Tensor& k, const Tensor& l)
      : states(empty(s.sizes(), DType::Int64)), skip(k), lengths(empty(l.sizes(), DType::Int64)) {
    copy_into(states, s);
    copy_into(lengths, l);
  }
  operator kernels::CtcTargets() const {
    return {states.data<const int64_t>(), skip.data<const bool>(), lengths.data<const int64_t>()};
  }
};
void check_targets(const Call& c, const Tensor& x, const Tensor& states, const Tensor& skip,
                   const Tensor& lengths) {
  require(x.ndim() == 3 && (x.dtype() == DType::Float32 || x.dtype() == DType::Float64), c.name(),
          ": log_probs must be (T, N, C), float32 or float64; got ", x);
  const Dims rows{x.size(1), states.size(-1)}, two{2, x.size(1)};
  require(states.dtype() == DType::Int64 && states.sizes() == rows && states.is_contiguous() &&
              skip.dtype() == DType::Bool && skip.sizes() == rows && skip.is_contiguous() &&
              lengths.dtype() == DType::Int64 && lengths.sizes() == two && lengths.is_contiguous(),
          c.name(), ": states and may_skip must be (N, W), lengths (2, N); got ", states, ", ",
          skip, " and ", lengths);
}

// Checks the values, which no shape rule can check: whether they are in range.
void check_values(const Call& c, const kernels::CtcTargets& targets,
                  const kernels::CtcShape& shape) {
  for (int64_t n = 0; n < shape.batch; ++n) {
    const int64_t steps = targets.lengths[n], labels = targets.lengths[shape.batch + n];
    require(steps >= 0 && steps <= shape.steps && labels >= 0 && labels < (shape.width + 1) / 2,
            c.name(), ": sequence ", n, " has ", steps, " steps and ", labels, " labels");
    const int64_t* row = targets.state + n * shape.width;
    for (int64_t i = 0; i < 2 * labels + 1; ++i)
      require(row[i] >= 0 && row[i] < shape.classes, c.name(), ": there is no class ", row[i]);
  }
}

void ctc_shape(const Call& c, OutSpecs& outs) {
  const Tensor& x = c.in[0];
  check_targets(c, x, c.in[1], c.in[2], c.in[3]);
  outs.add(x.dtype(), {x.size(1)});
  outs.add(x.dtype(), {x.size(1), x.size(0), c.in[1].size(1) + 2});
}
void ctc_cpu(const Call& c, Tensors& outs) {
  const Tensor x = contiguous(c.in[0]);
  const Targets targets(c.in[1], c.in[2], c.in[3]);
  const auto shape = shape_of(x, c.in[1]);
  check_values(c, targets, shape);
  dispatch(x.dtype(), TypeList<float, double>{}, [&]<class T>() {
    kernels::ctc(outs[0].data<T>(), outs[1].data<T>(), x.data<const T>(), targets, shape);
  });
}
constexpr OpDef ctc_op = general({
    .signature = "_ctc_loss(Tensor log_probs, Tensor states, Tensor may_skip, Tensor lengths) -> "
                 "(Tensor loss, Tensor alpha)",
    .doc = "Each sequence's CTC loss, and the sums over all ways to each state, for its gradient.",
    .shape = ctc_shape,
    .cpu = ctc_cpu,
    .no_vjp = only_unrecorded,
    .offer = Offer::function,
    .flops = "12 * numel(results[1])",
});

void backward_shape(const Call& c, OutSpecs& outs) {
  const Tensor& x = c.in[1];
  check_targets(c, x, c.in[2], c.in[3], c.in[4]);
  const Dims each{x.size(1)}, sums{x.size(1), x.size(0), c.in[2].size(1) + 2};
  require(c.in[0].dtype() == x.dtype() && c.in[0].sizes() == each && c.in[5].dtype() == x.dtype() &&
              c.in[5].sizes() == each && c.in[6].dtype() == x.dtype() && c.in[6].sizes() == sums &&
              c.in[6].is_contiguous(),
          c.name(), ": grad and loss must be (N,), alpha (N, T, W + 2); got ", c.in[0], ", ",
          c.in[5], " and ", c.in[6]);
  outs.add(x.dtype(), x.sizes());
}
void backward_cpu(const Call& c, Tensors& outs) {
  const Tensor grad = contiguous(c.in[0]), x = contiguous(c.in[1]), loss = contiguous(c.in[5]);
  const Targets targets(c.in[2], c.in[3], c.in[4]);
  const auto shape = shape_of(x, c.in[2]);
  check_values(c, targets, shape);
  dispatch(x.dtype(), TypeList<float, double>{}, [&]<class T>() {
    kernels::ctc_backward(outs[0].data<T>(), grad.data<const T>(), x.data<const T>(),
                          loss.data<const T>(), c.in[6].data<const T>(), targets, shape);
  });
}
constexpr OpDef ctc_backward_op = general({
    .signature =
        "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor states, Tensor may_skip, "
        "Tensor lengths, Tensor loss, Tensor alpha) -> Tensor",
    .doc = "The gradient of CTC loss, along logarithms of probabilities that add up to one.",
    .shape = backward_shape,
    .cpu = backward_cpu,
    .no_vjp = only_unrecorded,
    .offer = Offer::function,
    .flops = "16 * numel(alpha)",
});

constexpr const OpDef* ctc_list[] = {&ctc_op, &ctc_backward_op};

}  // namespace

extern const OpList ctc_ops;
const OpList ctc_ops = op_list(ctc_list);

}  // namespace clew

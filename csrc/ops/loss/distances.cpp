// What cdist and nn.functional.pdist are made of where their gradient is not differentiated again.
// May include: ops, graph, tensor, kernels.
// Invariant: rows are read from contiguous copies.
#include "kernels/sort/distances.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

struct NormAttrs {
  double p = 2;
  static constexpr auto members() { return std::tuple(&NormAttrs::p); }
};

void check_rows(const Call& c, const Tensor& x, int ndim) {
  require(x.ndim() == ndim && (x.dtype() == DType::Float32 || x.dtype() == DType::Float64),
          c.name(), ": rows must be a float32 or float64 tensor of ", ndim, " dimensions; got ", x);
  require(c.as<NormAttrs>().p >= 0, c.name(), ": p must be at least 0; got ", c.as<NormAttrs>().p);
}
kernels::DistanceShape distance_shape(const Tensor& x, const Tensor& y) {
  return {x.size(0), x.size(1), y.size(1), x.size(2)};
}
void check_pair(const Call& c, const Tensor& x, const Tensor& y) {
  check_rows(c, x, 3);
  check_rows(c, y, 3);
  require(x.dtype() == y.dtype() && x.size(0) == y.size(0) && x.size(2) == y.size(2), c.name(),
          ": x1 (B, P, M) and x2 (B, R, M) must be alike; got ", x, " and ", y);
}
void check_results(const Call& c, const Tensor& grad, const Tensor& distance, const Tensor& x,
                   const Dims& sizes) {
  require(grad.dtype() == x.dtype() && grad.sizes() == sizes && distance.dtype() == x.dtype() &&
              distance.sizes() == sizes,
          c.name(), ": grad and distance must be those of the result ", sizes, "; got ", grad,
          " and ", distance);
}
template <class F> void with_type(const Call& c, const Tensor& x, F&& f) {
  dispatch(x.dtype(), TypeList<float, double>{},
           [&]<class T>() { f.template operator()<T>(c.as<NormAttrs>().p); });
}

constexpr OpDef distances_op = general({
    .signature = "_cdist(Tensor x1, Tensor x2, float p) -> Tensor",
    .doc = "The p-norms of the differences of all rows of two batches.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &x = c.in[0], &y = c.in[1];
          check_pair(c, x, y);
          outs.add(x.dtype(), {x.size(0), x.size(1), y.size(1)});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor x = contiguous(c.in[0]), y = contiguous(c.in[1]);
          with_type(c, x, [&]<class T>(double p) {
            kernels::distances(outs[0].data<T>(), x.data<const T>(), y.data<const T>(),
                               distance_shape(x, y), p);
          });
        },
    .no_vjp = only_unrecorded,
    .attrs = &attr_info<NormAttrs>,
    .offer = Offer::function,
    .flops = "3 * numel(result) * x1[-1]",
});

constexpr OpDef backward_op = general({
    .signature = "_cdist_backward(Tensor grad, Tensor distance, Tensor x1, Tensor x2, float p) -> "
                 "(Tensor grad1, Tensor grad2)",
    .doc = "The gradient of _cdist.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &x = c.in[2], &y = c.in[3];
          check_pair(c, x, y);
          check_results(c, c.in[0], c.in[1], x, {x.size(0), x.size(1), y.size(1)});
          outs.add(x.dtype(), x.sizes());
          outs.add(y.dtype(), y.sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor grad = contiguous(c.in[0]), distance = contiguous(c.in[1]);
          const Tensor x = contiguous(c.in[2]), y = contiguous(c.in[3]);
          with_type(c, x, [&]<class T>(double p) {
            kernels::distances_backward(outs[0].data<T>(), outs[1].data<T>(), grad.data<const T>(),
                                        distance.data<const T>(), x.data<const T>(),
                                        y.data<const T>(), distance_shape(x, y), p);
          });
        },
    .no_vjp = only_unrecorded,
    .attrs = &attr_info<NormAttrs>,
    .offer = Offer::function,
    .flops = "6 * numel(grad) * x1[-1]",
});

int64_t pairs_of(const Tensor& x) { return x.size(0) * (x.size(0) - 1) / 2; }

constexpr OpDef own_op = general({
    .signature = "_pdist(Tensor input, float p) -> Tensor",
    .doc = "The p-norms of the differences of every pair of rows.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          check_rows(c, c.in[0], 2);
          outs.add(c.in[0].dtype(), {pairs_of(c.in[0])});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor x = contiguous(c.in[0]);
          with_type(c, x, [&]<class T>(double p) {
            kernels::own_distances(outs[0].data<T>(), x.data<const T>(), x.size(0), x.size(1), p);
          });
        },
    .no_vjp = only_unrecorded,
    .attrs = &attr_info<NormAttrs>,
    .offer = Offer::function,
    .flops = "3 * numel(result) * input[-1]",
});

constexpr OpDef own_backward_op = general({
    .signature = "_pdist_backward(Tensor grad, Tensor distance, Tensor input, float p) -> Tensor",
    .doc = "The gradient of _pdist.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          check_rows(c, c.in[2], 2);
          check_results(c, c.in[0], c.in[1], c.in[2], {pairs_of(c.in[2])});
          outs.add(c.in[2].dtype(), c.in[2].sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor grad = contiguous(c.in[0]), distance = contiguous(c.in[1]);
          const Tensor x = contiguous(c.in[2]);
          with_type(c, x, [&]<class T>(double p) {
            kernels::own_distances_backward(outs[0].data<T>(), grad.data<const T>(),
                                            distance.data<const T>(), x.data<const T>(), x.size(0),
                                            x.size(1), p);
          });
        },
    .no_vjp = only_unrecorded,
    .attrs = &attr_info<NormAttrs>,
    .offer = Offer::function,
    .flops = "6 * numel(grad) * input[-1]",
});

constexpr const OpDef* distances_list[] = {&distances_op, &backward_op, &own_op, &own_backward_op};

}  // namespace

extern const OpList distances_ops;
const OpList distances_ops = op_list(distances_list);

}  // namespace clew

// What nn.functional.grid_sample is made of where its gradient is not differentiated again.
// May include: ops, graph, tensor, kernels.
// Invariant: kernels see contiguous tensors whose sizes agree.
#include "kernels/resample/grid_sample.h"

#include <limits>

#include "base/long_work.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

struct GridAttrs {
  int64_t mode = 0;     // kernels::GridMode
  int64_t padding = 0;  // kernels::GridPadding
  bool align = false;
  static constexpr auto members() {
    return std::tuple(&GridAttrs::mode, &GridAttrs::padding, &GridAttrs::align);
  }
};

// Of input [N, C, *sizes] and grid [N, *, dims].
kernels::GridShape grid_shape(const Call& c, const Dims& image, const Tensor& grid) {
  const auto& a = c.as<GridAttrs>();
  const int dims = image.size() - 2;
  require((dims == 2 || dims == 3) && grid.ndim() == image.size() && grid.size(0) == image[0] &&
              grid.size(-1) == dims,
          c.name(), ": input must be (N, C, *sizes) and grid (N, ..., ", dims, "); got ", image,
          " and ", grid);
  require(a.mode >= 0 && a.mode <= (dims == 2 ? 2 : 1) && a.padding >= 0 && a.padding <= 2,
          c.name(), ": mode and padding must be one of 0, 1 and 2; got ", a.mode, " and ",
          a.padding);
  kernels::GridShape s{.n = image[0],
                       .c = image[1],
                       .s = 1,
                       .p = 1,
                       .dims = dims,
                       .sizes = {},
                       .mode = static_cast<kernels::GridMode>(a.mode),
                       .padding = static_cast<kernels::GridPadding>(a.padding),
                       .align = a.align};
  for (int d = 0; d < dims; ++d) {
    s.sizes[d] = image[2 + d];
    s.p *= grid.size(1 + d);
    require(s.sizes[d] > 0 && s.s <= std::numeric_limits<int32_t>::max() / s.sizes[d], c.name(),
            ": a channel must have between 1 and 2^31 - 1 elements; got sizes ", image);
    s.s *= s.sizes[d];
  }
  return s;
}
void check_dtypes(const Call& c) {
  const DType d = c.in[0].dtype();
  for (const Tensor& t : c.in)
    require(t.dtype() == d && (d == DType::Float32 || d == DType::Float64), c.name(),
            ": tensors must all be float32 or all float64; got ", t);
}
Dims sample_sizes(const Dims& image, const Tensor& grid) {
  Dims sizes{image[0], image[1]};
  for (int d = 1; d + 1 < grid.ndim(); ++d) sizes.push_back(grid.size(d));
  return sizes;
}
// Of the operands grad, input, grid.
void check_slopes(const Call& c) {
  check_dtypes(c);
  const Dims& image = c.in[1].sizes();
  grid_shape(c, image, c.in[2]);
  require(c.in[0].sizes() == sample_sizes(image, c.in[2]), c.name(),
          ": grad must be that of the result; got ", c.in[0]);
}
template <class F> void with_type(const kernels::GridShape& s, const Tensor& x, F&& f) {
  const LongWork work(s.n * (s.c + 1) * s.p);
  dispatch(x.dtype(), TypeList<float, double>{}, [&]<class T>() { f.template operator()<T>(); });
}

constexpr OpDef sample_op = general({
    .signature =
        "_grid_sample(Tensor input, Tensor grid, int mode, int padding, bool align) -> Tensor",
    .doc = "Samples of images at places between their elements.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          check_dtypes(c);
          const Dims& image = c.in[0].sizes();
          grid_shape(c, image, c.in[1]);
          outs.add(c.in[0].dtype(), sample_sizes(image, c.in[1]));
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor x = contiguous(c.in[0]), grid = contiguous(c.in[1]);
          const kernels::GridShape s = grid_shape(c, x.sizes(), grid);
          with_type(s, x, [&]<class T>() {
            kernels::grid_sample(outs[0].data<T>(), x.data<const T>(), grid.data<const T>(), s);
          });
        },
    .no_vjp = only_unrecorded,
    .attrs = &attr_info<GridAttrs>,
    .offer = Offer::function,
});

constexpr OpDef image_slopes_op = general({
    .signature = "_grid_sample_input_grad(Tensor grad, Tensor input, Tensor grid, int mode, int "
                 "padding, bool align) -> Tensor",
    .doc = "The gradient of _grid_sample's input.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          check_slopes(c);
          outs.add(c.in[1].dtype(), c.in[1].sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor grad = contiguous(c.in[0]), grid = contiguous(c.in[2]);
          const kernels::GridShape s = grid_shape(c, c.in[1].sizes(), grid);
          with_type(s, grad, [&]<class T>() {
            kernels::grid_sample_image_slopes(outs[0].data<T>(), grad.data<const T>(),
                                              grid.data<const T>(), s);
          });
        },
    .no_vjp = only_unrecorded,
    .attrs = &attr_info<GridAttrs>,
    .offer = Offer::function,
});

constexpr OpDef grid_slopes_op = general({
    .signature = "_grid_sample_grid_grad(Tensor grad, Tensor input, Tensor grid, int mode, int "
                 "padding, bool align) -> Tensor",
    .doc = "The gradient of _grid_sample's grid.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          check_slopes(c);
          outs.add(c.in[2].dtype(), c.in[2].sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor grad = contiguous(c.in[0]), x = contiguous(c.in[1]);
          const Tensor grid = contiguous(c.in[2]);
          const kernels::GridShape s = grid_shape(c, x.sizes(), grid);
          with_type(s, x, [&]<class T>() {
            kernels::grid_sample_grid_slopes(outs[0].data<T>(), x.data<const T>(),
                                             grad.data<const T>(), grid.data<const T>(), s);
          });
        },
    .no_vjp = only_unrecorded,
    .attrs = &attr_info<GridAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* grid_sample_list[] = {&sample_op, &image_slopes_op, &grid_slopes_op};

}  // namespace

extern const OpList grid_sample_ops;
const OpList grid_sample_ops = op_list(grid_sample_list);

}  // namespace clew

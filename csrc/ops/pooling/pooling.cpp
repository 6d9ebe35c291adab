// Max pooling, sliding and adaptive, and the maps that route values by the indices it gives.
// May include: ops, kernels/conv/pool.h.
// Invariant: routing back is linear, and its own gradient is routing forward again.
#include "ops/batch_rules.h"
#include "ops/pooling/pooling_windows.h"
#include "tensor/layout.h"

namespace clew {

using namespace pooling;

namespace {

// --- Routing by index ----------------------------------------------------------------------------

struct CountAttrs {
  int64_t nd = 1;
  static constexpr auto members() { return std::tuple(&CountAttrs::nd); }
};

Tensor route_back(const Tensor& g, const Tensor& indices, const Dims& spatial);
Tensor route(const Tensor& x, const Tensor& indices, int nd);

void check_indices(const Call& c) {
  require(c.in[1].dtype() == DType::Int64, c.name(), ": indices must be int64; got ", c.in[1]);
}
void scatter_shape(const Call& c, OutSpecs& out) {
  const Dims& size = c.as<SizeAttrs>().size;
  check_indices(c);
  require(c.in[0].sizes() == c.in[1].sizes() && c.in[0].ndim() >= size.size(), c.name(),
          ": the gradient and the indices must have one shape; got ", c.in[0], " and ", c.in[1]);
  require_inexact(c.in[0], c.name());
  const Dims sizes = replaced(c.in[0].sizes(), size);
  out.add(c.in[0].dtype(), sizes).strides = pooled_strides(c.in[0], size.size(), sizes);
}
void scatter_cpu(const Call& c, Tensors& outs) {
  const int nd = c.as<SizeAttrs>().size.size();
  const int64_t planes = plane_count(c.in[0].sizes(), nd);
  if (planes == 0) return;
  const bool last = channels_lie_last(c.in[0], outs[0], nd);
  const Tensor g = dense(c.in[0], last), indices = dense(c.in[1], last);
  const StagedOut to(outs[0], g.dtype(), last);
  const kernels::PoolPlanes routed{planes, outs[0].numel() / planes, g.numel() / planes,
                                   last ? g.size(1) : 0};
  const bool ok = kernels::pool_scatter(g.dtype(), routed, g.data<char>(), indices.data<int64_t>(),
                                        to.data<char>());
  require(ok, "max_pool: an index lies outside the input");
}
constexpr OpDef scatter_op = general({
    .signature = "_pool_scatter(Tensor grad, Tensor indices, int[] size) -> Tensor",
    .doc = "Puts gradients where the pooled values came from; the spatial sizes become `size`.",
    .shape = scatter_shape,
    .cpu = scatter_cpu,
    .saves = {.always = in(1)},
    .vjp = [](Vjp& c) { c.set(0, route(c.grad(), c.in(1), c.as<SizeAttrs>().size.size())); },
    .attrs = &attr_info<SizeAttrs>,
    .offer = Offer::function,
    .flops = "numel(grad)",
});

void gather_shape(const Call& c, OutSpecs& out) {
  const auto nd = static_cast<int>(c.as<CountAttrs>().nd);
  check_indices(c);
  require(nd >= 0 && nd <= c.in[0].ndim() && c.in[0].ndim() == c.in[1].ndim(), c.name(),
          ": input and indices must have as many dimensions; got ", c.in[0], " and ", c.in[1]);
  for (int d = 0; d < c.in[0].ndim() - nd; ++d) {
    require(c.in[0].size(d) == c.in[1].size(d), c.name(), ": leading sizes must be equal; got ",
            c.in[0], " and ", c.in[1]);
  }
  require_inexact(c.in[0], c.name());
  out.add(c.in[0].dtype(), c.in[1].sizes()).strides = pooled_strides(c.in[0], nd, c.in[1].sizes());
}
void gather_cpu(const Call& c, Tensors& outs) {
  const auto nd = static_cast<int>(c.as<CountAttrs>().nd);
  const int64_t planes = plane_count(c.in[0].sizes(), nd);
  if (planes == 0) return;
  const bool last = channels_lie_last(c.in[0], outs[0], nd);
  const Tensor x = dense(c.in[0], last), indices = dense(c.in[1], last);
  const kernels::PoolPlanes routed{planes, x.numel() / planes, outs[0].numel() / planes,
                                   last ? x.size(1) : 0};
  const bool ok = kernels::pool_gather(x.dtype(), routed, x.data<char>(), indices.data<int64_t>(),
                                       outs[0].data<char>());
  require(ok, "max_pool: an index lies outside the input");
}
constexpr OpDef gather_op = general({
    .signature = "_pool_gather(Tensor input, Tensor indices, int nd) -> Tensor",
    .doc = "The values at the indices that max pooling gave, over the last nd dimensions.",
    .shape = gather_shape,
    .cpu = gather_cpu,
    .saves = {.always = in(1)},
    .vjp =
        [](Vjp& c) {
          const auto nd = static_cast<int>(c.as<CountAttrs>().nd);
          if (c.needs(0)) c.set(0, route_back(c.grad(), c.in(1), spatial_of(c.sizes(0), nd)));
        },
    .attrs = &attr_info<CountAttrs>,
    .offer = Offer::function,
    .flops = "0",
});

Tensor route_back(const Tensor& g, const Tensor& indices, const Dims& spatial) {
  return apply(scatter_op, {g, indices}, SizeAttrs{spatial});
}
Tensor route(const Tensor& x, const Tensor& indices, int nd) {
  return apply(gather_op, {x, indices}, CountAttrs{nd});
}

// --- Greatest values -----------------------------------------------------------------------------

struct PoolAttrs {
  Dims kernel_size;
  std::optional<Dims> stride;
  Dims padding, dilation;
  bool ceil_mode = false;
  static constexpr auto members() {
    return std::tuple(&PoolAttrs::kernel_size, &PoolAttrs::stride, &PoolAttrs::padding,
                      &PoolAttrs::dilation, &PoolAttrs::ceil_mode);
  }
};

void max_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<PoolAttrs>();
  require_real(c.in[0], c.name());
  const Dims sizes = replaced(
      c.in[0].sizes(),
      pooled_sizes(c.in[0], a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode, c.name()));
  std::optional<Dims> strides;
  if (c.in[0].ndim() == a.kernel_size.size() + 2) strides = format_strides(c.in[0], sizes);
  out.add(c.in[0].dtype(), sizes).strides = strides;
  out.add(DType::Int64, sizes).strides = strides;
}
// Places in an image are counted with 32 bits where its channels lie last.
void find_greatest(kernels::PoolShape& s, const Tensor& x, int nd, Tensors& outs) {
  const bool last = channels_lie_last(x, outs[0], nd) && s.in_points() < INT32_MAX;
  if (last) s.channels = x.size(1);
  const Tensor from = dense(x, last);
  const StagedOut values(outs[0], x.dtype(), last), indices(outs[1], DType::Int64, last);
  kernels::max_pool(s, from.data<char>(), values.data<char>(), indices.data<int64_t>());
}
void max_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const auto& a = c.as<PoolAttrs>();
  kernels::PoolShape s =
      regular(c.in[0].sizes(), c.in[0].dtype(), spatial_of(outs[0].sizes(), a.kernel_size.size()),
              a.kernel_size, a.stride, a.padding, a.dilation, false);
  find_greatest(s, c.in[0], a.kernel_size.size(), outs);
}
template <class A> void max_vjp(Vjp& c) {
  const auto& a = c.as<A>();
  if (!c.needs(0) || !c.grad(0)) return;
  int nd;
  if constexpr (std::is_same_v<A, PoolAttrs>)
    nd = a.kernel_size.size();
  else
    nd = a.size.size();
  c.set(0, route_back(c.grad(0), c.out(1), spatial_of(c.sizes(0), nd)));
}

constexpr const char* max_doc =
    "Greatest value of each window and its index in the flattened spatial dimensions.";
consteval OpDef max_pool(const char* signature) {
  return general({.signature = signature,
                  .doc = max_doc,
                  .shape = max_shape,
                  .cpu = max_cpu,
                  .saves = {.always = out(1)},
                  .vjp = max_vjp<PoolAttrs>,
                  .batch = batch_fold<0b1>,
                  .attrs = &attr_info<PoolAttrs>,
                  .offer = Offer::function,
                  .flops = "numel(result) * window(result, kernel_size)"});
}
constexpr OpDef max_ops[] = {
    max_pool("_max_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
             "int[1] dilation=1, bool ceil_mode=False) -> (Tensor values, Tensor indices)"),
    max_pool("_max_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, "
             "int[2] dilation=1, bool ceil_mode=False) -> (Tensor values, Tensor indices)"),
    max_pool("_max_pool3d(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, "
             "int[3] dilation=1, bool ceil_mode=False) -> (Tensor values, Tensor indices)"),
};

void adaptive_max_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<SizeAttrs>();
  require_real(c.in[0], c.name());
  check_adaptive(c.in[0], a.size, c.name());
  const Dims sizes = replaced(c.in[0].sizes(), a.size);
  const std::optional<Dims> strides = adapted_strides(c.in[0], a.size.size(), sizes);
  out.add(c.in[0].dtype(), sizes).strides = strides;
  out.add(DType::Int64, sizes).strides = strides;
}
void adaptive_max_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const Dims& size = c.as<SizeAttrs>().size;
  kernels::PoolShape s = adaptive(c.in[0].sizes(), c.in[0].dtype(), size);
  find_greatest(s, c.in[0], size.size(), outs);
}
consteval OpDef adaptive_max(const char* signature) {
  return general({.signature = signature,
                  .doc = max_doc,
                  .shape = adaptive_max_shape,
                  .cpu = adaptive_max_cpu,
                  .saves = {.always = out(1)},
                  .vjp = max_vjp<SizeAttrs>,
                  .batch = batch_fold<0b1>,
                  .attrs = &attr_info<SizeAttrs>,
                  .offer = Offer::function,
                  .flops = "numel(input)"});
}
constexpr OpDef adaptive_max_ops[] = {
    adaptive_max("_adaptive_max_pool1d(Tensor input, int[1] output_size) -> (Tensor values, Tensor "
                 "indices)"),
    adaptive_max("_adaptive_max_pool2d(Tensor input, int[2] output_size) -> (Tensor values, Tensor "
                 "indices)"),
    adaptive_max("_adaptive_max_pool3d(Tensor input, int[3] output_size) -> (Tensor values, Tensor "
                 "indices)"),
};

constexpr const OpDef* pooling_list[] = {
    &scatter_op, &gather_op,           &max_ops[0],          &max_ops[1],
    &max_ops[2], &adaptive_max_ops[0], &adaptive_max_ops[1], &adaptive_max_ops[2],
};

}  // namespace

extern const OpList pooling_ops;
const OpList pooling_ops = op_list(pooling_list);

}  // namespace clew

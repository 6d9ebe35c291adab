// Mean pooling, sliding and adaptive, and the gradients that spread over the windows.
// May include: ops, kernels/conv/pool.h.
// Invariant: every map here is linear, and a gradient's own gradient is the forward map again.
#include "ops/batch_rules.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/pooling/pooling_windows.h"

namespace clew {

using namespace pooling;

namespace {

struct MeanAttrs {
  Dims kernel_size;
  std::optional<Dims> stride;
  Dims padding;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override;
  static constexpr auto members() {
    return std::tuple(&MeanAttrs::kernel_size, &MeanAttrs::stride, &MeanAttrs::padding,
                      &MeanAttrs::ceil_mode, &MeanAttrs::count_include_pad,
                      &MeanAttrs::divisor_override);
  }
};
// The same with the input's spatial sizes in front, for the gradient.
struct MeanBackwardAttrs {
  Dims size;
  Dims kernel_size;
  std::optional<Dims> stride;
  Dims padding;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override;
  static constexpr auto members() {
    using M = MeanBackwardAttrs;
    return std::tuple(&M::size, &M::kernel_size, &M::stride, &M::padding, &M::ceil_mode,
                      &M::count_include_pad, &M::divisor_override);
  }
  MeanAttrs forward() const {
    return {kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override};
  }
};

Tensor mean_back(const Tensor& g, const Dims& size, const MeanAttrs& a);

const Dims& ones(int nd) {
  static const Dims one[4] = {Dims{}, Dims{1}, Dims{1, 1}, Dims{1, 1, 1}};
  return one[nd];
}
kernels::PoolShape mean_windows(const Dims& x_sizes, DType dtype, const Dims& out,
                                const MeanAttrs& a) {
  kernels::PoolShape s = regular(x_sizes, dtype, out, a.kernel_size, a.stride, a.padding,
                                 ones(a.kernel_size.size()), a.count_include_pad);
  s.divisor = a.divisor_override.value_or(0);
  return s;
}
void mean_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<MeanAttrs>();
  const int nd = std::min(3, a.kernel_size.size());
  if (c.in[0].dtype() != DType::Int64) require_inexact(c.in[0], c.name());
  require(!a.divisor_override || *a.divisor_override != 0, c.name(),
          ": divisor_override must not be zero");
  const Dims sizes = replaced(
      c.in[0].sizes(),
      pooled_sizes(c.in[0], a.kernel_size, a.stride, a.padding, ones(nd), a.ceil_mode, c.name()));
  out.add(c.in[0].dtype(), sizes).strides = adapted_strides(c.in[0], nd, sizes);
}
// Means of x, or what spreads x over the windows.
void over_windows(kernels::PoolShape&& s, const Tensor& x, int nd, const Tensor& out, bool back) {
  const bool last = channels_lie_last(x, out, nd);
  if (last) s.channels = x.size(1);
  const Tensor from = dense(x, last);
  const StagedOut to(out, x.dtype(), last);
  (back ? kernels::mean_pool_backward : kernels::mean_pool)(s, from.data<char>(), to.data<char>());
}
void mean_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const auto& a = c.as<MeanAttrs>();
  const Tensor& x = c.in[0];
  const int nd = a.kernel_size.size();
  over_windows(mean_windows(x.sizes(), x.dtype(), spatial_of(outs[0].sizes(), nd), a), x, nd,
               outs[0], false);
}
constexpr Text mean_text = R"(Means of sliding windows over the input's spatial dimensions.

Args:
    input: (batch, channels, spatial...); the batch may be missing.
    kernel_size: size of a window.
    stride: step between two windows; kernel_size when missing.
    padding: zeros added on both sides, at most half the kernel.
    ceil_mode: keep a last window that reaches beyond the end.
    count_include_pad: whether added zeros count in a mean.
)";
constexpr Text divisor_text =
    "    divisor_override: divides every sum instead of the number of elements.\n";
constexpr Text mean_returns = "\nReturns:\n    (batch, channels, pooled spatial...).\n\n";
// [n - 1] is of n spatial dimensions.
constexpr const char* mean_docs[] = {
    joined<mean_text, mean_returns,
           R"(>>> clew.nn.functional.avg_pool1d(clew.tensor([[[1., 3., 5., 7.]]]), 2)
tensor([[[2., 6.]]])
)">,
    joined<mean_text, divisor_text, mean_returns,
           R"(>>> clew.nn.functional.avg_pool2d(clew.tensor([[[1., 3.], [5., 7.]]]), 2)
tensor([[[4.]]])
)">,
    joined<mean_text, divisor_text, mean_returns,
           R"(>>> clew.nn.functional.avg_pool3d(clew.ones(1, 2, 4, 4), 2).shape
clew.Size([1, 1, 2, 2])
)">,
};
consteval OpDef mean_pool(const char* signature, const char* doc,
                          Autocast autocast = Autocast::none) {
  return general(
      {.signature = signature,
       .doc = doc,
       .shape = mean_shape,
       .cpu = mean_cpu,
       .vjp =
           [](Vjp& c) {
             const auto& a = c.as<MeanAttrs>();
             if (c.needs(0))
               c.set(0, mean_back(c.grad(), spatial_of(c.sizes(0), a.kernel_size.size()), a));
           },
       .batch = batch_fold<0b1>,
       .attrs = &attr_info<MeanAttrs>,
       .autocast = autocast,
       .offer = Offer::function,
       .flops = "numel(result) * window(result, kernel_size)"});
}
constexpr OpDef mean_ops[] = {
    mean_pool(
        "_avg_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        mean_docs[0]),
    mean_pool(
        "nn.functional.avg_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] "
        "padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        mean_docs[1]),
    mean_pool(
        "nn.functional.avg_pool3d(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] "
        "padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        mean_docs[2], Autocast::float32),
};
Tensor mean(const Tensor& x, const MeanAttrs& a) {
  return apply(mean_ops[a.kernel_size.size() - 1], {x}, a);
}

struct Mean1dAttrs {
  Dims kernel_size;
  std::optional<Dims> stride;
  Dims padding;
  bool ceil_mode = false;
  bool count_include_pad = true;
  static constexpr auto members() {
    return std::tuple(&Mean1dAttrs::kernel_size, &Mean1dAttrs::stride, &Mean1dAttrs::padding,
                      &Mean1dAttrs::ceil_mode, &Mean1dAttrs::count_include_pad);
  }
};
constexpr OpDef mean1d_op = composite({
    .signature = "nn.functional.avg_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, "
                 "int[1] padding=0, "
                 "bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    .doc = mean_docs[0],
    .run =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<Mean1dAttrs>();
          require(a.kernel_size.size() == 1, c.name(), ": kernel_size must be one number; got ",
                  a.kernel_size);
          outs.push_back(mean(
              c.in[0], {a.kernel_size, a.stride, a.padding, a.ceil_mode, a.count_include_pad, {}}));
        },
    .attrs = &attr_info<Mean1dAttrs>,
    .offer = Offer::function,
    .flops = "numel(result) * window(result, kernel_size)",
});

void mean_back_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<MeanBackwardAttrs>();
  const int nd = a.kernel_size.size();
  require(nd >= 1 && nd <= 3 && a.size.size() == nd && c.in[0].ndim() >= nd, c.name(),
          ": sizes do not fit; got ", c.in[0]);
  require_inexact(c.in[0], c.name());
  const Dims sizes = replaced(c.in[0].sizes(), a.size);
  // The gradient must have the shape that the forward map gives.
  const Tensor like = empty(sizes, c.in[0].dtype(), Device::Meta);
  const Dims pooled =
      pooled_sizes(like, a.kernel_size, a.stride, a.padding, ones(nd), a.ceil_mode, c.name());
  require(spatial_of(c.in[0].sizes(), nd) == pooled, c.name(),
          ": the gradient must have spatial sizes ", pooled, "; got ", c.in[0]);
  out.add(c.in[0].dtype(), sizes).strides = adapted_strides(c.in[0], nd, sizes);
}
void mean_back_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const auto& a = c.as<MeanBackwardAttrs>();
  const Tensor& g = c.in[0];
  const int nd = a.kernel_size.size();
  over_windows(mean_windows(outs[0].sizes(), g.dtype(), spatial_of(g.sizes(), nd), a.forward()), g,
               nd, outs[0], true);
}
constexpr OpDef mean_back_op = general({
    .signature = "_avg_pool_backward(Tensor grad, int[] size, int[] kernel_size, int[]? stride, "
                 "int[] padding, "
                 "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .doc = "Spreads gradients of means over their windows; the spatial sizes become `size`.",
    .shape = mean_back_shape,
    .cpu = mean_back_cpu,
    .vjp = [](Vjp& c) { c.set(0, mean(c.grad(), c.as<MeanBackwardAttrs>().forward())); },
    .attrs = &attr_info<MeanBackwardAttrs>,
    .offer = Offer::function,
    .flops = "numel(grad) * window(grad, kernel_size)",
});
Tensor mean_back(const Tensor& g, const Dims& size, const MeanAttrs& a) {
  return apply(mean_back_op, {g},
               MeanBackwardAttrs{size, a.kernel_size, a.stride, a.padding, a.ceil_mode,
                                 a.count_include_pad, a.divisor_override});
}

Tensor adaptive_back(const Tensor& g, const Dims& size);

void adaptive_mean_shape(const Call& c, OutSpecs& out) {
  require_inexact(c.in[0], c.name());
  check_adaptive(c.in[0], c.as<SizeAttrs>().size, c.name());
  const Dims& size = c.as<SizeAttrs>().size;
  const Dims sizes = replaced(c.in[0].sizes(), size);
  out.add(c.in[0].dtype(), sizes).strides = adapted_strides(c.in[0], size.size(), sizes);
}
void adaptive_mean_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const Dims& size = c.as<SizeAttrs>().size;
  const Tensor& x = c.in[0];
  over_windows(adaptive(x.sizes(), x.dtype(), size), x, size.size(), outs[0], false);
}
consteval OpDef adaptive_mean(const char* signature, Autocast autocast = Autocast::none) {
  return general(
      {.signature = signature,
       .doc =
           R"(Means over as many windows as asked for; neighbouring ones may overlap by one element.

Args:
    input: (batch, channels, spatial...); the batch may be missing.
    output_size: number of windows in each spatial dimension.

Returns:
    (batch, channels, output_size...).

>>> clew.nn.functional.adaptive_avg_pool1d(clew.tensor([[[1., 3., 5., 7.]]]), 2)
tensor([[[2., 6.]]])
)",
       .shape = adaptive_mean_shape,
       .cpu = adaptive_mean_cpu,
       .vjp =
           [](Vjp& c) {
             const int nd = c.as<SizeAttrs>().size.size();
             if (c.needs(0)) c.set(0, adaptive_back(c.grad(), spatial_of(c.sizes(0), nd)));
           },
       .batch = batch_fold<0b1>,
       .attrs = &attr_info<SizeAttrs>,
       .autocast = autocast,
       .offer = Offer::function,
       .flops = "numel(input)"});
}
constexpr OpDef adaptive_ops[] = {
    adaptive_mean("nn.functional.adaptive_avg_pool1d(Tensor input, int[1] output_size) -> Tensor"),
    adaptive_mean("nn.functional.adaptive_avg_pool2d(Tensor input, int[2] output_size) -> Tensor"),
    adaptive_mean("nn.functional.adaptive_avg_pool3d(Tensor input, int[3] output_size) -> Tensor",
                  Autocast::float32),
};

void adaptive_back_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<SizeAttrs>();
  require_inexact(c.in[0], c.name());
  require(c.in[0].ndim() >= a.size.size() && !a.size.empty() && a.size.size() <= 3, c.name(),
          ": sizes do not fit; got ", c.in[0]);
  for (int64_t s : a.size)
    require(s > 0 && s < size_limit, c.name(), ": sizes must be at least 1; got ", a.size);
  const Dims sizes = replaced(c.in[0].sizes(), a.size);
  out.add(c.in[0].dtype(), sizes).strides = adapted_strides(c.in[0], a.size.size(), sizes);
}
void adaptive_back_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const int nd = c.as<SizeAttrs>().size.size();
  const Tensor& g = c.in[0];
  over_windows(adaptive(outs[0].sizes(), g.dtype(), spatial_of(g.sizes(), nd)), g, nd, outs[0],
               true);
}
constexpr OpDef adaptive_back_op = general({
    .signature = "_adaptive_avg_pool_backward(Tensor grad, int[] size) -> Tensor",
    .doc =
        "Spreads gradients of adaptive means over their windows; the spatial sizes become `size`.",
    .shape = adaptive_back_shape,
    .cpu = adaptive_back_cpu,
    .vjp =
        [](Vjp& c) {
          const int nd = c.as<SizeAttrs>().size.size();
          if (c.needs(0))
            c.set(0,
                  apply(adaptive_ops[nd - 1], {c.grad()}, SizeAttrs{spatial_of(c.sizes(0), nd)}));
        },
    .attrs = &attr_info<SizeAttrs>,
    .offer = Offer::function,
    .flops = "numel(result)",
});
Tensor adaptive_back(const Tensor& g, const Dims& size) {
  return apply(adaptive_back_op, {g}, SizeAttrs{size});
}

constexpr const OpDef* pooling_mean_list[] = {
    &mean_ops[0],     &mean_ops[1],     &mean_ops[2],     &mean1d_op,        &mean_back_op,
    &adaptive_ops[0], &adaptive_ops[1], &adaptive_ops[2], &adaptive_back_op,
};

}  // namespace

extern const OpList pooling_mean_ops;
const OpList pooling_mean_ops = op_list(pooling_mean_list);

}  // namespace clew

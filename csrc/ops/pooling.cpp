// Pooling: greatest values, means, their adaptive forms, and the gradients that route through windows or indices.
// May include: ops, kernels/pool.h.
// Invariant: every gradient here is linear in what it gets, and its own gradient is the forward map again.
#include "graph/gil.h"
#include "kernels/pool.h"
#include "ops/ops.h"

namespace clew {

namespace {

Tensor dense(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor copy = empty(t.sizes(), t.dtype());
  copy_into(copy, t);
  return copy;
}

// --- Windows -----------------------------------------------------------------------------------------------------

struct PoolAttrs {
  Dims kernel_size;
  std::optional<Dims> stride;
  Dims padding, dilation;
  bool ceil_mode = false;
  static constexpr auto members() {
    return std::tuple(&PoolAttrs::kernel_size, &PoolAttrs::stride, &PoolAttrs::padding, &PoolAttrs::dilation,
                      &PoolAttrs::ceil_mode);
  }
};
struct MeanAttrs {
  Dims kernel_size;
  std::optional<Dims> stride;
  Dims padding;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override;
  static constexpr auto members() {
    return std::tuple(&MeanAttrs::kernel_size, &MeanAttrs::stride, &MeanAttrs::padding, &MeanAttrs::ceil_mode,
                      &MeanAttrs::count_include_pad, &MeanAttrs::divisor_override);
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
    return std::tuple(&M::size, &M::kernel_size, &M::stride, &M::padding, &M::ceil_mode, &M::count_include_pad,
                      &M::divisor_override);
  }
  MeanAttrs forward() const {
    return {kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override};
  }
};

constexpr int64_t size_limit = int64_t{1} << 40;

// Spatial sizes of an input of nd spatial dims with or without a batch.
Dims spatial_of(const Dims& sizes, int nd) { return Dims(sizes.data() + sizes.size() - nd, nd); }
Dims replaced(const Dims& sizes, const Dims& spatial) {
  Dims out(sizes.data(), sizes.size() - spatial.size());
  for (int64_t s : spatial) out.push_back(s);
  return out;
}
int64_t plane_count(const Dims& sizes, int nd) {
  int64_t n = 1;
  for (int d = 0; d < sizes.size() - nd; ++d) n *= sizes[d];
  return n;
}

void check_input(const Tensor& x, int nd, std::string_view op) {
  require(nd >= 1 && nd <= 3, op, ": 1 to 3 window sizes are possible; got ", nd);
  require(x.ndim() == nd + 1 || x.ndim() == nd + 2, op, ": input must have ", nd + 2, " dimensions, or ", nd + 1,
          " without a batch; got ", x);
  for (int d = x.ndim() - nd - 1; d < x.ndim(); ++d) {
    require(x.size(d) > 0, op, ": only the batch may be empty; got ", x);
  }
}

Dims pooled_sizes(const Tensor& x, const Dims& kernel, const std::optional<Dims>& given, const Dims& padding,
                  const Dims& dilation, bool ceil_mode, std::string_view op) {
  const int nd = kernel.size();
  require(nd >= 1 && nd <= 3, op, ": kernel_size must have an entry for each dimension; got ", kernel);
  check_input(x, nd, op);
  const Dims& stride = given && !given->empty() ? *given : kernel;
  require(stride.size() == nd && padding.size() == nd && dilation.size() == nd, op,
          ": stride, padding and dilation must have one entry for each of ", nd, " dimensions");
  Dims out;
  for (int d = 0; d < nd; ++d) {
    require(kernel[d] > 0 && kernel[d] < size_limit, op, ": kernel_size must be at least 1; got ", kernel);
    require(stride[d] > 0 && stride[d] < size_limit, op, ": stride must be at least 1; got ", stride);
    require(dilation[d] > 0 && dilation[d] < size_limit, op, ": dilation must be at least 1; got ", dilation);
    require(kernel[d] == 1 || dilation[d] < size_limit / kernel[d], op, ": dilation is too large; got ", dilation);
    const int64_t extent = dilation[d] * (kernel[d] - 1) + 1;
    require(padding[d] >= 0 && padding[d] <= extent / 2, op, ": padding must lie between 0 and half the kernel; got ",
            padding, " for kernel_size ", kernel);
    const int64_t in = x.size(x.ndim() - nd + d);
    const int64_t room = in + 2 * padding[d] - extent;
    int64_t count = room < 0 ? (ceil_mode && room > -stride[d] ? 1 : 0)
                             : (room + (ceil_mode ? stride[d] - 1 : 0)) / stride[d] + 1;
    // The last window must start inside the input or its left padding.
    if (ceil_mode && count > 0 && (count - 1) * stride[d] >= in + padding[d]) --count;
    require(count > 0, op, ": the kernel does not fit into the padded input; got ", x, " and kernel_size ", kernel);
    out.push_back(count);
  }
  return out;
}

kernels::PoolShape shape_of(const Dims& x_sizes, DType dtype, int nd) {
  kernels::PoolShape s;
  s.dtype = dtype;
  s.planes = plane_count(x_sizes, nd);
  for (int d = 0; d < 3 - nd; ++d) {
    s.dim[d].start = {0};
    s.dim[d].end = {1};
    s.dim[d].count = {1};
  }
  return s;
}

kernels::PoolShape regular(const Dims& x_sizes, DType dtype, const Dims& out, const Dims& kernel,
                           const std::optional<Dims>& given, const Dims& padding, const Dims& dilation,
                           bool include_pad) {
  const int nd = kernel.size();
  const Dims& stride = given && !given->empty() ? *given : kernel;
  kernels::PoolShape s = shape_of(x_sizes, dtype, nd);
  for (int q = 0; q < nd; ++q) {
    kernels::PoolDim& d = s.dim[3 - nd + q];
    d.in = x_sizes[x_sizes.size() - nd + q];
    d.out = out[q];
    d.step = dilation[q], d.stride = stride[q], d.pad = padding[q], d.kernel = kernel[q];
    for (int64_t i = 0; i < d.out; ++i) {
      int64_t start = i * d.stride - d.pad;
      const int64_t end = std::min(start + (d.kernel - 1) * d.step + 1, d.in + d.pad);
      const int64_t whole = end - start;
      if (start < 0) start += (-start + d.step - 1) / d.step * d.step;
      d.start.push_back(start);
      d.end.push_back(std::min(end, d.in));
      d.count.push_back(include_pad ? whole : std::max<int64_t>(0, d.end.back() - start));
    }
  }
  return s;
}

kernels::PoolShape adaptive(const Dims& x_sizes, DType dtype, const Dims& out) {
  const int nd = out.size();
  kernels::PoolShape s = shape_of(x_sizes, dtype, nd);
  for (int q = 0; q < nd; ++q) {
    kernels::PoolDim& d = s.dim[3 - nd + q];
    d.in = x_sizes[x_sizes.size() - nd + q];
    d.out = out[q];
    for (int64_t i = 0; i < d.out; ++i) {
      d.start.push_back(i * d.in / d.out);
      d.end.push_back(((i + 1) * d.in + d.out - 1) / d.out);
      d.count.push_back(d.end.back() - d.start.back());
    }
  }
  return s;
}

void require_real(const Tensor& x, std::string_view op) {
  require(!x.is_complex() && x.dtype() != DType::Bool, op, ": not implemented for ", x.dtype());
}
void require_inexact(const Tensor& x, std::string_view op) {
  if (!is_inexact(x.dtype())) fail(ErrorKind::NotImplemented, op, ": not implemented for ", x.dtype());
}

// --- Routing by index --------------------------------------------------------------------------------------------

struct SizeAttrs {
  Dims size;
  static constexpr auto members() { return std::tuple(&SizeAttrs::size); }
};
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
  out.add(c.in[0].dtype(), replaced(c.in[0].sizes(), size));
}
void scatter_cpu(const Call& c, Tensors& outs) {
  const Tensor g = dense(c.in[0]), indices = dense(c.in[1]);
  const int nd = c.as<SizeAttrs>().size.size();
  const int64_t planes = plane_count(g.sizes(), nd);
  if (planes == 0) return;
  const ReleaseGil gil(outs[0].numel());
  const bool ok = kernels::pool_scatter(g.dtype(), planes, outs[0].numel() / planes, g.numel() / planes,
                                        g.data<char>(), indices.data<int64_t>(), outs[0].data<char>());
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
});

void gather_shape(const Call& c, OutSpecs& out) {
  const auto nd = static_cast<int>(c.as<CountAttrs>().nd);
  check_indices(c);
  require(nd >= 0 && nd <= c.in[0].ndim() && c.in[0].ndim() == c.in[1].ndim(), c.name(),
          ": input and indices must have as many dimensions; got ", c.in[0], " and ", c.in[1]);
  for (int d = 0; d < c.in[0].ndim() - nd; ++d) {
    require(c.in[0].size(d) == c.in[1].size(d), c.name(), ": leading sizes must be equal; got ", c.in[0], " and ",
            c.in[1]);
  }
  require_inexact(c.in[0], c.name());
  out.add(c.in[0].dtype(), c.in[1].sizes());
}
void gather_cpu(const Call& c, Tensors& outs) {
  const Tensor x = dense(c.in[0]), indices = dense(c.in[1]);
  const int64_t planes = plane_count(x.sizes(), static_cast<int>(c.as<CountAttrs>().nd));
  if (planes == 0) return;
  const ReleaseGil gil(outs[0].numel());
  const bool ok = kernels::pool_gather(x.dtype(), planes, x.numel() / planes, outs[0].numel() / planes,
                                       x.data<char>(), indices.data<int64_t>(), outs[0].data<char>());
  require(ok, "max_pool: an index lies outside the input");
}
constexpr OpDef gather_op = general({
    .signature = "_pool_gather(Tensor input, Tensor indices, int nd) -> Tensor",
    .doc = "The values at the indices that max pooling gave, over the last nd dimensions.",
    .shape = gather_shape,
    .cpu = gather_cpu,
    .saves = {.always = in(1)},
    .vjp = [](Vjp& c) {
      const auto nd = static_cast<int>(c.as<CountAttrs>().nd);
      if (c.needs(0)) c.set(0, route_back(c.grad(), c.in(1), spatial_of(c.sizes(0), nd)));
    },
    .attrs = &attr_info<CountAttrs>,
    .offer = Offer::function,
});

Tensor route_back(const Tensor& g, const Tensor& indices, const Dims& spatial) {
  return apply(scatter_op, {g, indices}, SizeAttrs{spatial});
}
Tensor route(const Tensor& x, const Tensor& indices, int nd) { return apply(gather_op, {x, indices}, CountAttrs{nd}); }

// --- Greatest values ---------------------------------------------------------------------------------------------

void max_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<PoolAttrs>();
  require_real(c.in[0], c.name());
  const Dims sizes = replaced(
      c.in[0].sizes(), pooled_sizes(c.in[0], a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode, c.name()));
  out.add(c.in[0].dtype(), sizes);
  out.add(DType::Int64, sizes);
}
void max_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const auto& a = c.as<PoolAttrs>();
  const Tensor x = dense(c.in[0]);
  const kernels::PoolShape s = regular(x.sizes(), x.dtype(), spatial_of(outs[0].sizes(), a.kernel_size.size()),
                                       a.kernel_size, a.stride, a.padding, a.dilation, false);
  const ReleaseGil gil(x.numel());
  kernels::max_pool(s, x.data<char>(), outs[0].data<char>(), outs[1].data<int64_t>());
}
template <class A> void max_vjp(Vjp& c) {
  const auto& a = c.as<A>();
  if (!c.needs(0) || !c.grad(0)) return;
  int nd;
  if constexpr (std::is_same_v<A, PoolAttrs>) nd = a.kernel_size.size();
  else nd = a.size.size();
  c.set(0, route_back(c.grad(0), c.out(1), spatial_of(c.sizes(0), nd)));
}

constexpr const char* max_doc = "Greatest value of each window and its index in the flattened spatial dimensions.";
consteval OpDef max_pool(const char* signature) {
  return general({.signature = signature, .doc = max_doc, .shape = max_shape, .cpu = max_cpu,
                  .saves = {.always = out(1)}, .vjp = max_vjp<PoolAttrs>, .attrs = &attr_info<PoolAttrs>,
                  .offer = Offer::function});
}
constexpr OpDef max_ops[] = {
    max_pool("_max_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
             "int[1] dilation=1, bool ceil_mode=False) -> (Tensor values, Tensor indices)"),
    max_pool("_max_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, "
             "int[2] dilation=1, bool ceil_mode=False) -> (Tensor values, Tensor indices)"),
    max_pool("_max_pool3d(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, "
             "int[3] dilation=1, bool ceil_mode=False) -> (Tensor values, Tensor indices)"),
};

void check_adaptive(const Tensor& x, const Dims& out, std::string_view op) {
  require(out.size() >= 1 && out.size() <= 3, op, ": output_size must have an entry for each dimension; got ", out);
  check_input(x, out.size(), op);
  for (int64_t s : out) require(s >= 0 && s < size_limit, op, ": output sizes must be at least 0; got ", out);
}
void adaptive_max_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<SizeAttrs>();
  require_real(c.in[0], c.name());
  check_adaptive(c.in[0], a.size, c.name());
  const Dims sizes = replaced(c.in[0].sizes(), a.size);
  out.add(c.in[0].dtype(), sizes);
  out.add(DType::Int64, sizes);
}
void adaptive_max_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const Tensor x = dense(c.in[0]);
  const kernels::PoolShape s = adaptive(x.sizes(), x.dtype(), c.as<SizeAttrs>().size);
  const ReleaseGil gil(x.numel());
  kernels::max_pool(s, x.data<char>(), outs[0].data<char>(), outs[1].data<int64_t>());
}
consteval OpDef adaptive_max(const char* signature) {
  return general({.signature = signature, .doc = max_doc, .shape = adaptive_max_shape, .cpu = adaptive_max_cpu,
                  .saves = {.always = out(1)}, .vjp = max_vjp<SizeAttrs>, .attrs = &attr_info<SizeAttrs>,
                  .offer = Offer::function});
}
constexpr OpDef adaptive_max_ops[] = {
    adaptive_max("_adaptive_max_pool1d(Tensor input, int[1] output_size) -> (Tensor values, Tensor indices)"),
    adaptive_max("_adaptive_max_pool2d(Tensor input, int[2] output_size) -> (Tensor values, Tensor indices)"),
    adaptive_max("_adaptive_max_pool3d(Tensor input, int[3] output_size) -> (Tensor values, Tensor indices)"),
};

// --- Means -------------------------------------------------------------------------------------------------------

Tensor mean_back(const Tensor& g, const Dims& size, const MeanAttrs& a);

const Dims& ones(int nd) {
  static const Dims one[4] = {Dims{}, Dims{1}, Dims{1, 1}, Dims{1, 1, 1}};
  return one[nd];
}
kernels::PoolShape mean_windows(const Dims& x_sizes, DType dtype, const Dims& out, const MeanAttrs& a) {
  kernels::PoolShape s = regular(x_sizes, dtype, out, a.kernel_size, a.stride, a.padding, ones(a.kernel_size.size()),
                                 a.count_include_pad);
  s.divisor = a.divisor_override.value_or(0);
  return s;
}
void mean_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<MeanAttrs>();
  const int nd = std::min(3, a.kernel_size.size());
  require_inexact(c.in[0], c.name());
  require(!a.divisor_override || *a.divisor_override != 0, c.name(), ": divisor_override must not be zero");
  out.add(c.in[0].dtype(), replaced(c.in[0].sizes(), pooled_sizes(c.in[0], a.kernel_size, a.stride, a.padding,
                                                                 ones(nd), a.ceil_mode, c.name())));
}
void mean_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const auto& a = c.as<MeanAttrs>();
  const Tensor x = dense(c.in[0]);
  const auto s = mean_windows(x.sizes(), x.dtype(), spatial_of(outs[0].sizes(), a.kernel_size.size()), a);
  const ReleaseGil gil(x.numel());
  kernels::mean_pool(s, x.data<char>(), outs[0].data<char>());
}
constexpr const char* mean_doc = R"(Means of sliding windows over the input's spatial dimensions.

Args:
    input: (batch, channels, spatial...); the batch may be missing.
    kernel_size: size of a window.
    stride: step between two windows; kernel_size when missing.
    padding: zeros added on both sides, at most half the kernel.
    ceil_mode: keep a last window that reaches beyond the end.
    count_include_pad: whether added zeros count in a mean.
    divisor_override: divides every sum instead of the number of elements (2 and 3 dimensions).

Returns:
    (batch, channels, pooled spatial...).

>>> clew.nn.functional.avg_pool1d(clew.tensor([[[1., 3., 5., 7.]]]), 2)
tensor([[[2., 6.]]])
)";
consteval OpDef mean_pool(const char* signature) {
  return general({.signature = signature, .doc = mean_doc, .shape = mean_shape, .cpu = mean_cpu,
                  .vjp = [](Vjp& c) {
                    const auto& a = c.as<MeanAttrs>();
                    if (c.needs(0)) c.set(0, mean_back(c.grad(), spatial_of(c.sizes(0), a.kernel_size.size()), a));
                  },
                  .attrs = &attr_info<MeanAttrs>, .offer = Offer::function});
}
constexpr OpDef mean_ops[] = {
    mean_pool("_avg_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
              "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor"),
    mean_pool("nn.functional.avg_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, "
              "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor"),
    mean_pool("nn.functional.avg_pool3d(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, "
              "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor"),
};
Tensor mean(const Tensor& x, const MeanAttrs& a) { return apply(mean_ops[a.kernel_size.size() - 1], {x}, a); }

struct Mean1dAttrs {
  Dims kernel_size;
  std::optional<Dims> stride;
  Dims padding;
  bool ceil_mode = false;
  bool count_include_pad = true;
  static constexpr auto members() {
    return std::tuple(&Mean1dAttrs::kernel_size, &Mean1dAttrs::stride, &Mean1dAttrs::padding, &Mean1dAttrs::ceil_mode,
                      &Mean1dAttrs::count_include_pad);
  }
};
constexpr OpDef mean1d_op = composite({
    .signature = "nn.functional.avg_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
                 "bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    .doc = mean_doc,
    .run = [](const Call& c, Tensors& outs) {
      const auto& a = c.as<Mean1dAttrs>();
      require(a.kernel_size.size() == 1, c.name(), ": kernel_size must be one number; got ", a.kernel_size);
      outs.push_back(mean(c.in[0], {a.kernel_size, a.stride, a.padding, a.ceil_mode, a.count_include_pad, {}}));
    },
    .attrs = &attr_info<Mean1dAttrs>,
    .offer = Offer::function,
});

void mean_back_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<MeanBackwardAttrs>();
  const int nd = a.kernel_size.size();
  require(nd >= 1 && nd <= 3 && a.size.size() == nd && c.in[0].ndim() >= nd, c.name(), ": sizes do not fit; got ",
          c.in[0]);
  require_inexact(c.in[0], c.name());
  const Dims sizes = replaced(c.in[0].sizes(), a.size);
  // The gradient must have the shape that the forward map gives.
  const Tensor like = empty(sizes, c.in[0].dtype(), Device::Meta);
  const Dims pooled =
      pooled_sizes(like, a.kernel_size, a.stride, a.padding, ones(nd), a.ceil_mode, c.name());
  require(spatial_of(c.in[0].sizes(), nd) == pooled, c.name(), ": the gradient must have spatial sizes ", pooled,
          "; got ", c.in[0]);
  out.add(c.in[0].dtype(), sizes);
}
void mean_back_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const auto& a = c.as<MeanBackwardAttrs>();
  const Tensor g = dense(c.in[0]);
  const auto s = mean_windows(outs[0].sizes(), g.dtype(), spatial_of(g.sizes(), a.kernel_size.size()), a.forward());
  const ReleaseGil gil(outs[0].numel());
  kernels::mean_pool_backward(s, g.data<char>(), outs[0].data<char>());
}
constexpr OpDef mean_back_op = general({
    .signature = "_avg_pool_backward(Tensor grad, int[] size, int[] kernel_size, int[]? stride, int[] padding, "
                 "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .doc = "Spreads gradients of means over their windows; the spatial sizes become `size`.",
    .shape = mean_back_shape,
    .cpu = mean_back_cpu,
    .vjp = [](Vjp& c) { c.set(0, mean(c.grad(), c.as<MeanBackwardAttrs>().forward())); },
    .attrs = &attr_info<MeanBackwardAttrs>,
    .offer = Offer::function,
});
Tensor mean_back(const Tensor& g, const Dims& size, const MeanAttrs& a) {
  return apply(mean_back_op, {g},
               MeanBackwardAttrs{size, a.kernel_size, a.stride, a.padding, a.ceil_mode, a.count_include_pad,
                                 a.divisor_override});
}

Tensor adaptive_back(const Tensor& g, const Dims& size);

void adaptive_mean_shape(const Call& c, OutSpecs& out) {
  require_inexact(c.in[0], c.name());
  check_adaptive(c.in[0], c.as<SizeAttrs>().size, c.name());
  out.add(c.in[0].dtype(), replaced(c.in[0].sizes(), c.as<SizeAttrs>().size));
}
void adaptive_mean_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const Tensor x = dense(c.in[0]);
  const kernels::PoolShape s = adaptive(x.sizes(), x.dtype(), c.as<SizeAttrs>().size);
  const ReleaseGil gil(x.numel());
  kernels::mean_pool(s, x.data<char>(), outs[0].data<char>());
}
consteval OpDef adaptive_mean(const char* signature) {
  return general({.signature = signature,
                  .doc = R"(Means over as many windows as asked for; neighbouring windows may overlap by one element.

Args:
    input: (batch, channels, spatial...); the batch may be missing.
    output_size: number of windows in each spatial dimension.

Returns:
    (batch, channels, output_size...).

>>> clew.nn.functional.adaptive_avg_pool1d(clew.tensor([[[1., 3., 5., 7.]]]), 2)
tensor([[[2., 6.]]])
)",
                  .shape = adaptive_mean_shape, .cpu = adaptive_mean_cpu,
                  .vjp = [](Vjp& c) {
                    const int nd = c.as<SizeAttrs>().size.size();
                    if (c.needs(0)) c.set(0, adaptive_back(c.grad(), spatial_of(c.sizes(0), nd)));
                  },
                  .attrs = &attr_info<SizeAttrs>, .offer = Offer::function});
}
constexpr OpDef adaptive_ops[] = {
    adaptive_mean("nn.functional.adaptive_avg_pool1d(Tensor input, int[1] output_size) -> Tensor"),
    adaptive_mean("nn.functional.adaptive_avg_pool2d(Tensor input, int[2] output_size) -> Tensor"),
    adaptive_mean("nn.functional.adaptive_avg_pool3d(Tensor input, int[3] output_size) -> Tensor"),
};

void adaptive_back_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<SizeAttrs>();
  require_inexact(c.in[0], c.name());
  require(c.in[0].ndim() >= a.size.size() && !a.size.empty() && a.size.size() <= 3, c.name(),
          ": sizes do not fit; got ", c.in[0]);
  for (int64_t s : a.size) require(s > 0 && s < size_limit, c.name(), ": sizes must be at least 1; got ", a.size);
  out.add(c.in[0].dtype(), replaced(c.in[0].sizes(), a.size));
}
void adaptive_back_cpu(const Call& c, Tensors& outs) {
  if (outs[0].numel() == 0) return;
  const Tensor g = dense(c.in[0]);
  const auto s = adaptive(outs[0].sizes(), g.dtype(), spatial_of(g.sizes(), c.as<SizeAttrs>().size.size()));
  const ReleaseGil gil(outs[0].numel());
  kernels::mean_pool_backward(s, g.data<char>(), outs[0].data<char>());
}
constexpr OpDef adaptive_back_op = general({
    .signature = "_adaptive_avg_pool_backward(Tensor grad, int[] size) -> Tensor",
    .doc = "Spreads gradients of adaptive means over their windows; the spatial sizes become `size`.",
    .shape = adaptive_back_shape,
    .cpu = adaptive_back_cpu,
    .vjp = [](Vjp& c) {
      const int nd = c.as<SizeAttrs>().size.size();
      if (c.needs(0)) c.set(0, apply(adaptive_ops[nd - 1], {c.grad()}, SizeAttrs{spatial_of(c.sizes(0), nd)}));
    },
    .attrs = &attr_info<SizeAttrs>,
    .offer = Offer::function,
});
Tensor adaptive_back(const Tensor& g, const Dims& size) { return apply(adaptive_back_op, {g}, SizeAttrs{size}); }

constexpr const OpDef* listed[] = {
    &scatter_op,           &gather_op,           &max_ops[0],          &max_ops[1],      &max_ops[2],
    &adaptive_max_ops[0],  &adaptive_max_ops[1], &adaptive_max_ops[2], &mean_ops[0],     &mean_ops[1],
    &mean_ops[2],          &mean1d_op,           &mean_back_op,        &adaptive_ops[0], &adaptive_ops[1],
    &adaptive_ops[2],      &adaptive_back_op,
};

}  // namespace

extern const OpList pooling_ops;
const OpList pooling_ops = op_list(listed);

}  // namespace clew

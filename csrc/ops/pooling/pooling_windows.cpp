// Windows of sliding and adaptive pooling, and the checks of their arguments.
// May include: ops, kernels/conv/pool.h.
// Invariant: every window that is made holds at least one place of the padded image.
#include "ops/pooling/pooling_windows.h"

#include "graph/batch.h"
#include "tensor/layout.h"

namespace clew::pooling {

std::optional<Dims> pooled_strides(const Tensor& x, int nd, const Dims& sizes) {
  if (x.ndim() != nd + 2 || x.ndim() != sizes.size()) return {};
  if (x.is_contiguous() || is_batched(x) || nd != 1) return format_strides(x, sizes);
  Dims image = x.sizes(), steps = x.strides();
  image.insert(2, 1);
  steps.insert(2, x.size(2) * x.stride(2));
  if (!has_channels_last(alias(x, image, steps, 0))) return {};
  return Dims{sizes[1] * sizes[2], 1, sizes[1]};
}

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

bool channels_lie_last(const Tensor& x, const Tensor& result, int nd) {
  if (result.ndim() != nd + 2) return false;
  if (result.is_contiguous()) {  // in both orders, where an image has one point
    if (x.is_contiguous() || result.numel() != result.size(0) * result.size(1)) return false;
    return x.strides() == channels_last_strides(x.sizes());
  }
  return result.strides() == channels_last_strides(result.sizes());
}

void check_input(const Tensor& x, int nd, std::string_view op) {
  require(nd >= 1 && nd <= 3, op, ": 1 to 3 window sizes are possible; got ", nd);
  require(x.ndim() == nd + 1 || x.ndim() == nd + 2, op, ": input must have ", nd + 2,
          " dimensions, or ", nd + 1, " without a batch; got ", x);
  for (int d = x.ndim() - nd - 1; d < x.ndim(); ++d) {
    require(x.size(d) > 0, op, ": only the batch may be empty; got ", x);
  }
}

Dims pooled_sizes(const Tensor& x, const Dims& kernel, const std::optional<Dims>& given,
                  const Dims& padding, const Dims& dilation, bool ceil_mode, std::string_view op) {
  const int nd = kernel.size();
  require(nd >= 1 && nd <= 3, op, ": kernel_size must have an entry for each dimension; got ",
          kernel);
  check_input(x, nd, op);
  const Dims& stride = given && !given->empty() ? *given : kernel;
  require(stride.size() == nd && padding.size() == nd && dilation.size() == nd, op,
          ": stride, padding and dilation must have one entry for each of ", nd, " dimensions");
  Dims out;
  for (int d = 0; d < nd; ++d) {
    require(kernel[d] > 0 && kernel[d] < size_limit, op, ": kernel_size must be at least 1; got ",
            kernel);
    require(stride[d] > 0 && stride[d] < size_limit, op, ": stride must be at least 1; got ",
            stride);
    require(dilation[d] > 0 && dilation[d] < size_limit, op, ": dilation must be at least 1; got ",
            dilation);
    require(kernel[d] == 1 || dilation[d] < size_limit / kernel[d], op,
            ": dilation is too large; got ", dilation);
    const int64_t extent = dilation[d] * (kernel[d] - 1) + 1;
    require(padding[d] >= 0 && padding[d] <= extent / 2, op,
            ": padding must lie between 0 and half the kernel; got ", padding, " for kernel_size ",
            kernel);
    const int64_t in = x.size(x.ndim() - nd + d);
    const int64_t room = in + 2 * padding[d] - extent;
    int64_t count = room < 0 ? (ceil_mode && room > -stride[d] ? 1 : 0)
                             : (room + (ceil_mode ? stride[d] - 1 : 0)) / stride[d] + 1;
    // The last window must start inside the input or its left padding.
    if (ceil_mode && count > 0 && (count - 1) * stride[d] >= in + padding[d]) --count;
    require(count > 0, op, ": the kernel does not fit into the padded input; got ", x,
            " and kernel_size ", kernel);
    out.push_back(count);
  }
  return out;
}

static kernels::PoolShape shape_of(const Dims& x_sizes, DType dtype, int nd) {
  kernels::PoolShape s;
  s.dtype = dtype;
  s.planes = plane_count(x_sizes, nd);
  return s;
}

kernels::PoolShape regular(const Dims& x_sizes, DType dtype, const Dims& out, const Dims& kernel,
                           const std::optional<Dims>& given, const Dims& padding,
                           const Dims& dilation, bool include_pad) {
  const int nd = kernel.size();
  const Dims& stride = given && !given->empty() ? *given : kernel;
  kernels::PoolShape s = shape_of(x_sizes, dtype, nd);
  for (int q = 0; q < nd; ++q) {
    kernels::PoolDim& d = s.dim[3 - nd + q];
    d.in = x_sizes[x_sizes.size() - nd + q];
    d.out = out[q];
    d.step = dilation[q], d.stride = stride[q], d.pad = padding[q], d.kernel = kernel[q];
    d.count_pad = include_pad;
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
    d.stride = 0;
    const LongWork work(d.out);
    d.starts.reserve(static_cast<size_t>(d.out));
    d.ends.reserve(static_cast<size_t>(d.out));
    for (int64_t i = 0; i < d.out; ++i) {
      d.starts.push_back(i * d.in / d.out);
      d.ends.push_back(((i + 1) * d.in + d.out - 1) / d.out);
    }
  }
  return s;
}

void require_real(const Tensor& x, std::string_view op) {
  if (x.is_complex() || x.dtype() == DType::Bool || as_signed(x.dtype()) != x.dtype())
    fail(ErrorKind::NotImplemented, op, ": not implemented for ", x.dtype());
}
void require_inexact(const Tensor& x, std::string_view op) {
  if (!is_inexact(x.dtype()))
    fail(ErrorKind::NotImplemented, op, ": not implemented for ", x.dtype());
}

void check_adaptive(const Tensor& x, const Dims& out, std::string_view op) {
  require(out.size() >= 1 && out.size() <= 3, op,
          ": output_size must have an entry for each dimension; got ", out);
  check_input(x, out.size(), op);
  for (int64_t s : out)
    require(s >= 0 && s < size_limit, op, ": output sizes must be at least 0; got ", out);
}
}  // namespace clew::pooling

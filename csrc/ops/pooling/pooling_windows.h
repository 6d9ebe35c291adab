// What the pooling ops share: windows of every kind, and the checks of their arguments.
// May include: ops/ops.h, kernels/conv/pool.h.
// Invariant: shapes are checked before windows are made; windows of an empty result are never made.
#pragma once
#include "kernels/conv/pool.h"
#include "ops/attributes.h"
#include "ops/ops.h"
#include "ops/staged_out.h"
#include "tensor/layout.h"

namespace clew::pooling {

// Kernel sizes, strides, dilations and output sizes stay below this.
constexpr int64_t size_limit = int64_t{1} << 40;

// Strides of `sizes` in x's memory format; none where the dims lie in order, or x has no batch. A
// line of values counts as an image of one row.
std::optional<Dims> pooled_strides(const Tensor& x, int nd, const Dims& sizes);
// The same of adaptive pooling, which keeps it of images and lines, not of volumes.
inline std::optional<Dims> adapted_strides(const Tensor& x, int nd, const Dims& sizes) {
  return nd == 3 ? std::nullopt : pooled_strides(x, nd, sizes);
}
// The last nd sizes; the sizes with their last ones replaced; the number of images in them.
Dims spatial_of(const Dims& sizes, int nd);
Dims replaced(const Dims& sizes, const Dims& spatial);
int64_t plane_count(const Dims& sizes, int nd);
// Whether kernels should take x, which has a batch, and give the result with the channels last.
bool channels_lie_last(const Tensor& x, const Tensor& result, int nd);
void check_input(const Tensor& x, int nd, std::string_view op);
void check_adaptive(const Tensor& x, const Dims& out, std::string_view op);
void require_real(const Tensor& x, std::string_view op);
void require_inexact(const Tensor& x, std::string_view op);
// The spatial sizes of the result of sliding windows; throws when an argument is out of range.
Dims pooled_sizes(const Tensor& x, const Dims& kernel, const std::optional<Dims>& given,
                  const Dims& padding, const Dims& dilation, bool ceil_mode, std::string_view op);
// The windows themselves, for the kernels.
kernels::PoolShape regular(const Dims& x_sizes, DType dtype, const Dims& out, const Dims& kernel,
                           const std::optional<Dims>& given, const Dims& padding,
                           const Dims& dilation, bool include_pad);
kernels::PoolShape adaptive(const Dims& x_sizes, DType dtype, const Dims& out);

}  // namespace clew::pooling

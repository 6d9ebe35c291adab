// Convolutions of 1 to 3 spatial dims: the result, and its two partial adjoints.
// May include: base.
// Invariant: operands are dense: (batch, channels, spatial), (co, ci / groups, kernel).
#pragma once
#include "base/dtype.h"
#include "base/smallvec.h"

namespace clew::kernels {

// The map y[n, o, p] = sum of x[n, c, p * stride - pad + k * dilation] * w[o, c, k]; missing x
// count as zero. Spatial arrays have three entries, the unused leading ones being 1 (pad 0).
struct ConvShape {
  DType dtype;
  int nd;
  int64_t n, ci, co, groups;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
  bool last = false;  // x and y lie as (batch, spatial, channels)

  int64_t in_points() const { return in[0] * in[1] * in[2]; }
  int64_t out_points() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_points() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// y from x and w; bias (co) may be null.
void conv_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y);
// x from y and w, the map transposed; bias (ci) may be null.
void conv_input(const ConvShape& s, const void* y, const void* w, const void* bias, void* x);
// w from y and x: the sum over batch and points.
void conv_weight(const ConvShape& s, const void* y, const void* x, void* w);

// Patches of `channels` images as columns: row (c, kd, kh, kw), a column for each output point of
// the output rows [row_begin, row_end), a row being the points that share depth and height.
// `columns` has `stride` elements a row.
void image_to_columns(const ConvShape& s, int64_t channels, const void* x, void* columns,
                      int64_t stride, int64_t row_begin, int64_t row_end);
// Adds columns back to where image_to_columns took them from.
void columns_to_image(const ConvShape& s, int64_t channels, const void* columns, int64_t stride,
                      void* x, int64_t row_begin, int64_t row_end);

}  // namespace clew::kernels

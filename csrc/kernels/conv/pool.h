// Pooling over 1 to 3 spatial dims: maxima with their places, means, gradients of both.
// May include: base.
// Invariant: operands are contiguous (planes, depth, height, width); a plane is one image.
#pragma once
#include <vector>

#include "base/dtype.h"
#include "base/smallvec.h"

namespace clew::kernels {

// The windows along one dim: output i covers the inputs start[i], start[i] + step, ... below
// end[i].
struct PoolDim {
  int64_t in = 1, out = 1, step = 1;
  std::vector<int64_t> start, end;
  std::vector<int64_t> count;  // what the window counts for in a mean
  int64_t stride =
      0;  // when positive: start[i] is max(i * stride - pad, first place of the same phase inside)
  int64_t pad = 0, kernel = 0;
};
struct PoolShape {
  DType dtype;
  int64_t planes = 0;
  PoolDim dim[3];
  int64_t divisor = 0;  // of every mean, unless zero

  int64_t in_points() const { return dim[0].in * dim[1].in * dim[2].in; }
  int64_t out_points() const { return dim[0].out * dim[1].out * dim[2].out; }
};

// Greatest value of each window and its index within the plane; NaN counts as greatest.
void max_pool(const PoolShape& s, const void* x, void* values, int64_t* indices);
void mean_pool(const PoolShape& s, const void* x, void* y);
void mean_pool_backward(const PoolShape& s, const void* gy, void* gx);

// gx, of `in_points` a plane, is zero but for the sums of gy at its indices. False when an index is
// out of range.
bool pool_scatter(DType dtype, int64_t planes, int64_t in_points, int64_t out_points,
                  const void* gy, const int64_t* indices, void* gx);
// y[plane, i] = x[plane, indices[plane, i]]. False when an index is out of range.
bool pool_gather(DType dtype, int64_t planes, int64_t in_points, int64_t out_points, const void* x,
                 const int64_t* indices, void* y);

}  // namespace clew::kernels

// Pooling over 1 to 3 spatial dims: maxima with their places, means, gradients of both.
// May include: base.
// Invariant: operands are contiguous (planes, depth, height, width); a plane is one image.
#pragma once
#include <algorithm>
#include <vector>

#include "base/dtype.h"
#include "base/smallvec.h"

namespace clew::kernels {

// The windows along one dim: output i covers the inputs start(i), start(i) + step, ... below end(i)
// and counts for count(i) in a mean. Regular ones have a stride; of others the places are listed.
struct PoolDim {
  int64_t in = 1, out = 1, step = 1;
  int64_t stride = 1, pad = 0, kernel = 1;
  bool count_pad = false;
  std::vector<int64_t> starts, ends;  // where stride is 0

  int64_t start(int64_t i) const {
    if (stride == 0) return starts[static_cast<size_t>(i)];
    const int64_t first = i * stride - pad;
    return first >= 0 ? first : first + (-first + step - 1) / step * step;
  }
  int64_t end(int64_t i) const {
    if (stride == 0) return ends[static_cast<size_t>(i)];
    return std::min(i * stride - pad + (kernel - 1) * step + 1, in);
  }
  int64_t count(int64_t i) const {
    if (!count_pad) return std::max<int64_t>(0, end(i) - start(i));
    const int64_t first = i * stride - pad;
    return std::min(first + (kernel - 1) * step + 1, in + pad) - first;
  }
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

// gx (`in_points` per plane) is zero except for the sums of gy at its indices. False when an index
// is out of range.
bool pool_scatter(DType dtype, int64_t planes, int64_t in_points, int64_t out_points,
                  const void* gy, const int64_t* indices, void* gx);
// y[plane, i] = x[plane, indices[plane, i]]. False when an index is out of range.
bool pool_gather(DType dtype, int64_t planes, int64_t in_points, int64_t out_points, const void* x,
                 const int64_t* indices, void* y);

}  // namespace clew::kernels

// Pooling over 1 to 3 spatial dims: maxima with their places, means, gradients of both.
// May include: base.
// Invariant: operands are contiguous (planes, depth, height, width), a plane being one channel of
// an image, or (images, depth, height, width, channels).
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
  int64_t planes = 0;    // images times channels
  int64_t channels = 0;  // where they lie last
  PoolDim dim[3];
  int64_t divisor = 0;  // of every mean, unless zero

  int64_t in_points() const { return dim[0].in * dim[1].in * dim[2].in; }
  int64_t out_points() const { return dim[0].out * dim[1].out * dim[2].out; }
  // Inputs that the windows of a plane read, or write, roughly.
  int64_t taps() const {
    auto n = static_cast<double>(out_points());
    for (const PoolDim& d : dim)
      n *= static_cast<double>(d.stride > 0 ? std::min(d.kernel, d.in)
                                            : 1 + d.in / std::max<int64_t>(d.out, 1));
    return static_cast<int64_t>(std::min(n, 1e15));
  }
  // The place of the first input of window (a, b, o).
  int64_t corner(int64_t a, int64_t b, int64_t o) const {
    return (dim[0].start(a) * dim[1].in + dim[1].start(b)) * dim[2].in + dim[2].start(o);
  }
};

// Greatest value of each window and its index within the plane; NaN counts as greatest.
void max_pool(const PoolShape& s, const void* x, void* values, int64_t* indices);
void mean_pool(const PoolShape& s, const void* x, void* y);
void mean_pool_backward(const PoolShape& s, const void* gy, void* gx);

// What is routed by indices: planes of so many points, with the channels last unless there are 0.
struct PoolPlanes {
  int64_t planes, in, out, channels;
};
// gx (p.in points) is zero except for the sums of gy (p.out points) at its indices. False when an
// index is out of range.
bool pool_scatter(DType dtype, const PoolPlanes& p, const void* gy, const int64_t* indices,
                  void* gx);
// y[plane, i] = x[plane, indices[plane, i]]. False when an index is out of range.
bool pool_gather(DType dtype, const PoolPlanes& p, const void* x, const int64_t* indices, void* y);

// The same where the channels lie last; an image has less than 2^31 points.
void max_pool_last(const PoolShape& s, const void* x, void* values, int64_t* indices);
void mean_pool_last(const PoolShape& s, const void* x, void* y);
void mean_pool_backward_last(const PoolShape& s, const void* gy, void* gx);
bool pool_scatter_last(DType dtype, const PoolPlanes& p, const void* gy, const int64_t* indices,
                       void* gx);
bool pool_gather_last(DType dtype, const PoolPlanes& p, const void* x, const int64_t* indices,
                      void* y);

}  // namespace clew::kernels

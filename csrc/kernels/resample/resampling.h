// Weighted sums of elements along one dim, as in resizing an image, and their transpose.
// May include: the standard library.
// Invariant: places are in [0, size): the caller has looked.
#pragma once
#include <cstdint>

namespace clew::kernels {

// x [outer, size, inner] to out [outer, points, inner]: each point adds up `terms` weighted places,
// index and weight being [points, terms].
struct LineShape {
  int64_t outer, size, inner, points, terms;
};
template <class T>
void resample(T* out, const T* x, const int64_t* index, const T* weight, const LineShape& shape);
// The transpose: from [outer, points, inner] to [outer, size, inner].
template <class T>
void resample_backward(T* dx, const T* grad, const int64_t* index, const T* weight,
                       const LineShape& shape);

}  // namespace clew::kernels

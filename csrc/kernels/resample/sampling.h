// Weighted sums of elements at given places, and the two forms that are their gradients.
// May include: the standard library.
// Invariant: an index that is not in [0, s) stands for nothing: it is neither read nor added to.
#pragma once
#include <cstdint>

namespace clew::kernels {

// Samples x [n, c, s], places and weights [n, k, p], points [n, c, p]; all contiguous.
struct SamplingShape {
  int64_t n, c, s, k, p;
};
// out[n, c, p] = sum over k of weight[n, k, p] * x[n, c, index[n, k, p]]
template <class T>
void gather_weighted(T* out, const T* x, const int64_t* index, const T* weight,
                     const SamplingShape& shape);
// out[n, c, index[n, k, p]] += weight[n, k, p] * points[n, c, p], out being zero before
template <class T>
void scatter_weighted(T* out, const T* points, const int64_t* index, const T* weight,
                      const SamplingShape& shape);
// out[n, k, p] = sum over c of x[n, c, index[n, k, p]] * points[n, c, p]
template <class T>
void gather_dots(T* out, const T* x, const int64_t* index, const T* points,
                 const SamplingShape& shape);

}  // namespace clew::kernels

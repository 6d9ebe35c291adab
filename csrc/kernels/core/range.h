// Fills that depend on the position only: arange, linspace, logspace, the identity matrix,
// triangle indices.
// May include: base, kernels.
// Invariant: dst is contiguous.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

// dst[i] = start + i * step
void range(const NdView& dst, const Scalar& start, const Scalar& step);
// Equally spaced from start to end, both included; with base, base to these powers.
void linspace(const NdView& dst, const Scalar& start, const Scalar& end);
void logspace(const NdView& dst, const Scalar& start, const Scalar& end, double base);
// Ones on the diagonal of a two-dimensional dst, zeros elsewhere.
void eye(const NdView& dst);
// dst: integral [2, count]; rows and columns of the lower (upper) triangle in row-major order.
// -1: more than an int64 can count.
int64_t triangle_count(int64_t rows, int64_t cols, int64_t offset, bool lower);
void triangle_indices(const NdView& dst, int64_t cols, int64_t offset, bool lower);

}  // namespace clew::kernels

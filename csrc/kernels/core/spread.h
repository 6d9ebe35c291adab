// spread(): a small broadcast, strided or unlike-typed operand as dense rows on the caller's stack.
// May include: base/ndview.h.
// Invariant: exactly the target's elements are written, in the order of its indices.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

// The most dims and elements of a target.
constexpr int spread_dims = 8;
constexpr int64_t spread_elements = 512;

// Writes `from`, broadcast to sizes[0..ndim) and converted, densely to `to`.
void spread(const NdView& from, const int64_t* sizes, int ndim, DType dtype, char* to);

}  // namespace clew::kernels

// spread(): a small broadcast or strided operand laid out as dense rows, on the caller's stack.
// May include: base, kernels.
// Invariant: exactly the target's elements are written, in the order of its indices.
#pragma once
#include "kernels/ndview.h"

namespace clew::kernels {

// Dims of a target that spread() takes.
constexpr int spread_dims = 8;

// Writes `from`, broadcast to sizes[0..ndim), to `to`. Its dims are the last of those.
void spread(const NdView& from, const int64_t* sizes, int ndim, char* to);

}  // namespace clew::kernels

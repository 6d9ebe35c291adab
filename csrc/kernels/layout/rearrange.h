// Loops that reorder or keep a part: copies with negative strides, triangles.
// May include: base, base/ndview.h.
// Invariant: dst is fresh memory that src does not share.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

// dst[...] = src[...], equal sizes and dtypes; src's strides may be negative, its data then points
// at the first element.
void copy_signed(const NdView& dst, const NdView& src);
// Keeps elements with column - row <= diagonal (lower) or >= diagonal (upper) of every matrix,
// zeros elsewhere.
void triangle(const NdView& dst, const NdView& src, int64_t diagonal, bool lower);

}  // namespace clew::kernels

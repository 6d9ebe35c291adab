// Copies between layouts whose innermost dims differ.
// May include: base, base/ndview.h.
// Invariant: bytes are moved, never converted.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

// dst[...] = src[...] for equal sizes and dtypes; false, and nothing is done, unless each has a dim
// with stride 1 that is long, and not the same one, or two or three long rows are to alternate.
bool copy_transposed(const NdView& dst, const NdView& src);

}  // namespace clew::kernels

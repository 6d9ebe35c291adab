// Copies between layouts whose innermost dims differ.
// May include: base, base/ndview.h.
// Invariant: bytes are moved, never converted.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

// dst[...] = src[...] for equal sizes and dtypes; False, with nothing done, unless src and dst have
// stride 1 in different long dims, or two or three long rows are to be interleaved.
bool copy_transposed(const NdView& dst, const NdView& src);

}  // namespace clew::kernels

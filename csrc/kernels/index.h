// Loops that gather and scatter: cat's pieces, gather, scatter, index_select, index_add, advanced indexing.
// May include: base, kernels/ndview.h.
// Invariant: indices were checked before; sums over repeated indices are made in one fixed order.
#pragma once
#include "kernels/ndview.h"

namespace clew::kernels {

// dst[...] += src[...], equal sizes and dtypes; dst may overlap itself (its elements are then visited in row-major order).
void accumulate(const NdView& dst, const NdView& src);
// dst[...] /= src[...], equal sizes and dtypes, inexact.
void divide_by(const NdView& dst, const NdView& src);

}  // namespace clew::kernels

// Running sums, products and extrema along one axis.
// May include: base, kernels.
// Invariant: dst and src have equal shapes; each result is made of the elements up to and including
// its place.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

// dst of src's dtype; `reverse` runs from the end.
void cumsum(const NdView& dst, const NdView& src, int dim, bool reverse);
void cumprod(const NdView& dst, const NdView& src, int dim);
// log(cumsum(exp(x))), floating dtypes.
void logcumsumexp(const NdView& dst, const NdView& src, int dim);
// Running extremum and its index (the last one among equals; NaN stays once met).
void cumextremum(const NdView& values, const NdView& indices, const NdView& src, int dim,
                 bool largest);

}  // namespace clew::kernels

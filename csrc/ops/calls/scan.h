// Running sums, products and extrema as C++ functions, for gradient rules and composites.
// May include: ops/ops.h.
// Invariant: each function only calls apply() with its OpDef.
#pragma once
#include "ops/ops.h"

namespace clew {

Tensor cumsum(const Tensor& x, int64_t dim);
Tensor reverse_cumsum(const Tensor& x, int64_t dim);  // each element plus all after it
// The product of all elements before each one (after each one when `from_end`), right also where
// elements are zero.
Tensor exclusive_product(const Tensor& x, int64_t dim, bool from_end);

}  // namespace clew

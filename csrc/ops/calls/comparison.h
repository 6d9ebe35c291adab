// Comparison, logic, selection and limits as C++ functions, for gradient rules and composites.
// May include: graph/op.h.
// Invariant: each function only calls apply() with its OpDef.
#pragma once
#include "graph/op.h"

namespace clew {

Tensor eq(const Tensor& input, const Tensor& other);
Tensor ne(const Tensor& input, const Tensor& other);
Tensor lt(const Tensor& input, const Tensor& other);
Tensor le(const Tensor& input, const Tensor& other);
Tensor gt(const Tensor& input, const Tensor& other);
Tensor ge(const Tensor& input, const Tensor& other);
Tensor logical_and(const Tensor& input, const Tensor& other);
Tensor logical_or(const Tensor& input, const Tensor& other);
Tensor logical_not(const Tensor& input);
Tensor isnan(const Tensor& input);
Tensor isfinite(const Tensor& input);

// selection.cpp
Tensor where(const Tensor& condition, const Tensor& input, const Tensor& other);
// In place: the value, one number of x's dtype, where the mask holds.
void masked_fill_(const Tensor& x, const Tensor& mask, const Tensor& value);
Tensor maximum(const Tensor& input, const Tensor& other);
Tensor minimum(const Tensor& input, const Tensor& other);
Tensor clamp(const Tensor& input, const Scalar& min, const Scalar& max);  // a bound may be None

}  // namespace clew

// Reductions as C++ functions, for gradient rules and composites.
// May include: ops/ops.h.
// Invariant: each function only calls apply() with its OpDef; an empty `dim` list means all axes,
// as in PyTorch.
#pragma once
#include "ops/ops.h"

namespace clew {

Tensor sum(const Tensor& x);
Tensor sum(const Tensor& x, const Dims& dim, bool keepdim = false, std::optional<DType> dtype = {});
// x summed over its broadcast axes until it has `sizes`; x itself when it has them already.
Tensor sum_to(const Tensor& x, const Dims& sizes);
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, const Dims& dim, bool keepdim = false);
Tensor prod(const Tensor& x);
Tensor prod(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor any(const Tensor& x);
Tensor any(const Tensor& x, const Dims& dim, bool keepdim = false);
Tensor all(const Tensor& x);
Tensor all(const Tensor& x, const Dims& dim, bool keepdim = false);
Tensor amax(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor logsumexp(const Tensor& x, const Dims& dim, bool keepdim = false);

}  // namespace clew

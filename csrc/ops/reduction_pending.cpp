// Weak stand-ins for functions of other families until their files land.
// May include: ops.
// Invariant: none survives once the real definition is linked.
#include "ops/indexing.h"

namespace clew {
Tensor abs(const Tensor& input);
Tensor sgn(const Tensor& input);
Tensor maximum(const Tensor& input, const Tensor& other);
Tensor minimum(const Tensor& input, const Tensor& other);

__attribute__((weak)) Tensor gather(const Tensor&, int64_t, const Tensor&) { fail_internal("gather is missing"); }
__attribute__((weak)) Tensor scatter_add(const Tensor&, int64_t, const Tensor&, const Tensor&) {
  fail_internal("scatter_add is missing");
}
__attribute__((weak)) Tensor abs(const Tensor&) { fail_internal("abs is missing"); }
__attribute__((weak)) Tensor sgn(const Tensor&) { fail_internal("sgn is missing"); }
__attribute__((weak)) Tensor maximum(const Tensor&, const Tensor&) { fail_internal("maximum is missing"); }
__attribute__((weak)) Tensor minimum(const Tensor&, const Tensor&) { fail_internal("minimum is missing"); }
}  // namespace clew

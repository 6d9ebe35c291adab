// Weak stand-ins for gather and scatter_add until their file lands.
// May include: ops.
// Invariant: neither survives once the real definition is linked.
#include "ops/indexing.h"

namespace clew {
__attribute__((weak)) Tensor gather(const Tensor&, int64_t, const Tensor&) { fail_internal("gather is missing"); }
__attribute__((weak)) Tensor scatter_add(const Tensor&, int64_t, const Tensor&, const Tensor&) {
  fail_internal("scatter_add is missing");
}
}  // namespace clew

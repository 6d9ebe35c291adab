// Which calls wait.
// May include: graph.
// Invariant: what a profiler, nan_watch or anomaly detection looks at does not wait.
#include "graph/deferral.h"

namespace clew {

Deferral deferral;

bool may_wait(std::span<const Tensor> in, int64_t numel, const Tensor* written) {
  constexpr uint8_t watched = intercept_trace | intercept_watch | intercept_anomaly;
  if (numel == 0 || (modes.intercept & watched)) return false;
  if (written && (*written)->storage->is_exposed()) return false;
  bool worth = numel >= modes.least_deferred;
  for (const Tensor& t : in) {
    if (!t.defined()) continue;
    if (t->storage->is_exposed() && t->storage->nbytes > most_copied) return false;
    worth = worth || t->storage->device == Device::Pending || t.numel() >= modes.least_deferred;
  }
  return worth;
}

}  // namespace clew

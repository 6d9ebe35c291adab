// Which calls wait.
// May include: graph.
// Invariant: what a profiler, nan_watch, anomaly detection or a memory budget looks at does not
// wait.
#include "graph/deferral.h"

#include "graph/budget.h"

namespace clew {

Deferral deferral;
Retention retention;
int budgets_open = 0;

bool may_wait(std::span<const Tensor> in, int64_t numel, bool passes, const Tensor* written) {
  constexpr uint8_t watched = intercept_trace | intercept_watch | intercept_anomaly;
  if (numel == 0 || (modes.intercept & watched) || budgets_open > 0) return false;
  if (written && (*written)->storage->is_exposed()) return false;
  const int64_t least = modes.least_deferred;
  // Adding up gradients frees the summands, so it waits only if an operand is pending.
  passes = (passes && !modes.accumulating) || least == 0;
  bool worth = passes && numel >= least;
  for (const Tensor& t : in) {
    if (!t.defined()) continue;
    if (t->storage->is_exposed() && t->storage->nbytes > most_copied) return false;
    worth = worth || t->storage->is_pending() || (passes && t.numel() >= least);
  }
  return worth;
}

}  // namespace clew

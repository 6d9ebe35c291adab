// Which instruction set's optimizer loops run.
// May include: base, kernels.
// Invariant: the choice is made once and does not change.
#include "kernels/train/optimize.h"

#include "base/error.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const UpdateTable updates;)

Update optimizer_update(Optimizer kind, DType d) {
  static const UpdateTable& chosen = CLEW_CHOSEN(updates);
  const Updates& of_kind = chosen[static_cast<size_t>(kind)];
  switch (d) {
    case DType::Float32: return of_kind[0];
    case DType::Float64: return of_kind[1];
    case DType::BFloat16: return of_kind[2];
    case DType::Float16: return of_kind[3];
    default: fail_internal("optimizer_update: ", d);
  }
}

}  // namespace clew::kernels

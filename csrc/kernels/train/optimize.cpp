// Which instruction set's optimizer loops run.
// May include: base, kernels.
// Invariant: the choice is made once and does not change.
#include "kernels/train/optimize.h"

#include "base/error.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

namespace baseline {
extern const UpdateTable updates;
}
namespace avx2 {
extern const UpdateTable updates;
}
namespace avx512 {
extern const UpdateTable updates;
}

static const UpdateTable& table() {
#ifndef CLEW_ONLY_BASELINE
  InstructionSet isa = instruction_set();
  if (isa == InstructionSet::avx512) return avx512::updates;
  if (isa == InstructionSet::avx2) return avx2::updates;
#endif
  return baseline::updates;
}

Update optimizer_update(Optimizer kind, DType d) {
  static const UpdateTable& chosen = table();
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

// Which instruction set's loops over gradients run.
// May include: base, kernels.
// Invariant: the choice is made once and does not change.
#include "kernels/train/gradients.h"

#include "base/error.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

namespace baseline {
extern const GradientTables gradients;
}
namespace avx2 {
extern const GradientTables gradients;
}
namespace avx512 {
extern const GradientTables gradients;
}

static const GradientLoops* tables() {
#ifndef CLEW_ONLY_BASELINE
  InstructionSet isa = instruction_set();
  if (isa == InstructionSet::avx512) return avx512::gradients;
  if (isa == InstructionSet::avx2) return avx2::gradients;
#endif
  return baseline::gradients;
}

const GradientLoops& gradient_loops(DType d) {
  static const GradientLoops* table = tables();
  switch (d) {
    case DType::Float32: return table[0];
    case DType::Float64: return table[1];
    case DType::BFloat16: return table[2];
    case DType::Float16: return table[3];
    default: fail_internal("gradient_loops: ", d);
  }
}

}  // namespace clew::kernels

// Which instruction set's loops over gradients run.
// May include: base, kernels.
// Invariant: the choice is made once and does not change.
#include "kernels/train/gradients.h"

#include "base/error.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const GradientTables gradients;)

const GradientLoops& gradient_loops(DType d) {
  static const GradientLoops* table = CLEW_CHOSEN(gradients);
  switch (d) {
    case DType::Float32: return table[0];
    case DType::Float64: return table[1];
    case DType::BFloat16: return table[2];
    case DType::Float16: return table[3];
    default: fail_internal("gradient_loops: ", d);
  }
}

}  // namespace clew::kernels

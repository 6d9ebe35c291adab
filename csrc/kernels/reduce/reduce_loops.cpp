// The choice of the reductions' vector loops.
// May include: kernels.
// Invariant: the processor is asked once.
#include "kernels/reduce/reduce_loops.h"

#include "kernels/core/instruction_set.h"

namespace clew::kernels {

namespace baseline {
extern const ReduceTable reduce_loops;
}
namespace avx2 {
extern const ReduceTable reduce_loops;
}
namespace avx512 {
extern const ReduceTable reduce_loops;
}

const ReduceTable& reduce_table() {
#ifndef CLEW_ONLY_BASELINE
  static const InstructionSet isa = instruction_set();
  if (isa == InstructionSet::avx512) return avx512::reduce_loops;
  if (isa == InstructionSet::avx2) return avx2::reduce_loops;
#endif
  return baseline::reduce_loops;
}

}  // namespace clew::kernels

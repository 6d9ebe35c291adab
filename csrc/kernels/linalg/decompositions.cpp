// Which instruction set's decompositions of small matrices are used.
// May include: kernels.
// Invariant: loops are chosen by what the processor has.
#include "kernels/linalg/decompositions.h"

#include "kernels/core/instruction_set.h"

namespace clew::kernels {

#define CLEW_DECLARE                                           \
  extern const DecompositionLoops<float> decompositions_float; \
  extern const DecompositionLoops<double> decompositions_double;
namespace baseline {
CLEW_DECLARE
}
namespace avx2 {
CLEW_DECLARE
}
namespace avx512 {
CLEW_DECLARE
}
#undef CLEW_DECLARE

#define CLEW_CHOOSE(T, name)                                          \
  template <> const DecompositionLoops<T>& decomposition_loops<T>() { \
    CLEW_WIDER(name)                                                  \
    return baseline::name;                                            \
  }
#ifndef CLEW_ONLY_BASELINE
#define CLEW_WIDER(name)                                                \
  if (instruction_set() == InstructionSet::avx512) return avx512::name; \
  if (instruction_set() == InstructionSet::avx2) return avx2::name;
#else
#define CLEW_WIDER(name)
#endif
CLEW_CHOOSE(float, decompositions_float)
CLEW_CHOOSE(double, decompositions_double)

}  // namespace clew::kernels

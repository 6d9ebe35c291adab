// Which instruction set's decompositions of small matrices are used.
// May include: kernels.
// Invariant: loops are chosen by what the processor has.
#include "kernels/linalg/decompositions.h"

#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const DecompositionLoops<float> decompositions_float;
                 extern const DecompositionLoops<double> decompositions_double;)

template <> const DecompositionLoops<float>& decomposition_loops<float>() {
  return CLEW_CHOSEN(decompositions_float);
}
template <> const DecompositionLoops<double>& decomposition_loops<double>() {
  return CLEW_CHOSEN(decompositions_double);
}

}  // namespace clew::kernels

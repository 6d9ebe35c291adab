// Which instruction set's loops over tiny matrices are used.
// May include: kernels.
// Invariant: loops are chosen by what the processor has.
#include "kernels/linalg/side_by_side.h"

#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const SideBySideLoops<float> side_by_side_float;
                 extern const SideBySideLoops<double> side_by_side_double;)

template <> const SideBySideLoops<float>& side_by_side<float>() {
  return CLEW_CHOSEN(side_by_side_float);
}
template <> const SideBySideLoops<double>& side_by_side<double>() {
  return CLEW_CHOSEN(side_by_side_double);
}

}  // namespace clew::kernels

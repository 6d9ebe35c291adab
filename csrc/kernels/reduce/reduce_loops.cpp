// The choice of the reductions' vector loops.
// May include: kernels.
// Invariant: the processor's features are queried once.
#include "kernels/reduce/reduce_loops.h"

#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const ReduceTable reduce_loops;)

const ReduceTable& reduce_table() { return CLEW_CHOSEN(reduce_loops); }

}  // namespace clew::kernels

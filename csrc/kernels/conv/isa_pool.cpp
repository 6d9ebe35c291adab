// Maxima of windows of floats, doubles and int64, compiled once for each instruction set.
// May include: kernels/conv/pool_loops.h.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#include "kernels/conv/pool_loops.h"

#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif

namespace clew::kernels::CLEW_ISA {

extern const PoolLoops pool_loops;
const PoolLoops pool_loops = {max_line<float>, max_line<double>, max_line<int64_t>};

}  // namespace clew::kernels::CLEW_ISA

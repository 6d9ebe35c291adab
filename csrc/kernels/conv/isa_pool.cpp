// Loops of pooling for floats and doubles, compiled once for each instruction set.
// May include: kernels/conv/pool_loops.h.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#include "kernels/conv/pool_loops.h"

#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif

namespace clew::kernels::CLEW_ISA {

template <class T>
constexpr ChannelLoops<T> channels = {greatest_of_taps<T>, mean_of_taps<T>, spread_to_taps<T>};

extern const PoolLoops pool_loops;
const PoolLoops pool_loops = {run_loops<float>,         run_loops<double>, greatest_of_runs<float>,
                              greatest_of_runs<double>, channels<float>,   channels<double>,
                              channels<bf16>,           channels<f16>};

}  // namespace clew::kernels::CLEW_ISA

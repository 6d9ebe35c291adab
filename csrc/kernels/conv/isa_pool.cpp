// Loops of pooling for floats, doubles and int64, compiled once for each instruction set.
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
const PoolLoops pool_loops = {max_line<float>, max_line<double>, max_line<int64_t>,
                              channels<float>, channels<double>, channels<bf16>,
                              channels<f16>};

}  // namespace clew::kernels::CLEW_ISA

// Which instruction set's optimizer loops run.
// May include: base, kernels.
// Invariant: the choice is made once and does not change.
#include "kernels/optimize.h"

#include <type_traits>

#include "kernels/instruction_set.h"

namespace clew::kernels {

namespace baseline {
extern const OptimizerLoops<float> optimizer_float;
extern const OptimizerLoops<double> optimizer_double;
}  // namespace baseline
namespace avx2 {
extern const OptimizerLoops<float> optimizer_float;
extern const OptimizerLoops<double> optimizer_double;
}  // namespace avx2
namespace avx512 {
extern const OptimizerLoops<float> optimizer_float;
extern const OptimizerLoops<double> optimizer_double;
}  // namespace avx512

template <class C> const OptimizerLoops<C>& optimizer_loops() {
  auto pick = [](const OptimizerLoops<float>& f, const OptimizerLoops<double>& d) -> auto& {
    if constexpr (std::is_same_v<C, float>)
      return f;
    else
      return d;
  };
#ifndef CLEW_ONLY_BASELINE
  static const InstructionSet isa = instruction_set();
  if (isa == InstructionSet::avx512) return pick(avx512::optimizer_float, avx512::optimizer_double);
  if (isa == InstructionSet::avx2) return pick(avx2::optimizer_float, avx2::optimizer_double);
#endif
  return pick(baseline::optimizer_float, baseline::optimizer_double);
}
template const OptimizerLoops<float>& optimizer_loops<float>();
template const OptimizerLoops<double>& optimizer_loops<double>();

}  // namespace clew::kernels

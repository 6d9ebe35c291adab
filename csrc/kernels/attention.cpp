// Which instruction set's attention runs.
// May include: base, kernels.
// Invariant: the choice is made once, so equal calls give equal bits.
#include "kernels/attention.h"

#include "kernels/instruction_set.h"

namespace clew::kernels {

void attention(const AttentionShape& s, const AttentionTarget& out, void* logsum) {
#ifndef CLEW_ONLY_BASELINE
  static const InstructionSet set = instruction_set();
  if (set == InstructionSet::avx512) return avx512::attention_forward(s, out, logsum);
  if (set == InstructionSet::avx2) return avx2::attention_forward(s, out, logsum);
#endif
  baseline::attention_forward(s, out, logsum);
}

void attention_backward(const AttentionShape& s, const AttentionGrads& grads) {
#ifndef CLEW_ONLY_BASELINE
  static const InstructionSet set = instruction_set();
  if (set == InstructionSet::avx512) return avx512::attention_backward(s, grads);
  if (set == InstructionSet::avx2) return avx2::attention_backward(s, grads);
#endif
  baseline::attention_backward(s, grads);
}

}  // namespace clew::kernels

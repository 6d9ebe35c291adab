// Which instruction set's attention runs.
// May include: base, kernels.
// Invariant: the choice is made once, so equal calls give equal bits.
#include "kernels/sequence/attention.h"

#include "base/long_work.h"

namespace clew::kernels {

static int64_t work_of(const AttentionShape& s) { return s.batch * s.heads * s.queries * s.keys; }

void attention(const AttentionShape& s, const AttentionTarget& out, void* row_sums) {
  const LongWork work(work_of(s));
  CLEW_CHOSEN(attention_forward)(s, out, row_sums);
}

void attention_backward(const AttentionShape& s, const AttentionGrads& grads) {
  const LongWork work(work_of(s));
  CLEW_CHOSEN(attention_backward)(s, grads);
}

}  // namespace clew::kernels

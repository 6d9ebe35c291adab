// The sums over all alignments of CTC loss (Graves et al. 2006), and their gradient.
// May include: base.
// Invariant: everything runs on logarithms; minus infinity is what cannot be.
#pragma once
#include <cstdint>

namespace clew::kernels {

// T steps, N sequences, C classes; W states in a row: labels with blanks between.
struct CtcShape {
  int64_t steps, batch, classes, width;
};
// The targets of sequence n: states [N, W] with may_skip [N, W] (a state that the one two before
// leads to as well), lengths [2, N] of steps and of labels.
struct CtcTargets {
  const int64_t* state;
  const bool* may_skip;
  const int64_t* lengths;
};

// The loops over the states of one step, compiled once for each instruction set.
template <class C> struct CtcLoops {
  // to = log(e^a + e^b + e^(c + jump)) + add; add may be null (0)
  void (*join)(C* to, const C* a, const C* b, const C* c, const C* jump, const C* add, int64_t n);
  // to = exp(a + b + shift)
  void (*shares)(C* to, const C* a, const C* b, C shift, int64_t n);
  // to = exp(x) * scale
  void (*masses)(C* to, const C* x, C scale, int64_t n);
};

// x [T, N, C] to loss [N] and alpha [N, T, 2 + W]: the logarithm of the sum over all paths to a
// state. Two impossible states precede the states of each row.
template <class C>
void ctc(C* loss, C* alpha, const C* x, const CtcTargets& targets, const CtcShape& shape);
// dx [T, N, C]: exp(x) less the share of the alignments that pass through a class, times grad [N];
// 0 where no alignment fits.
template <class C>
void ctc_backward(C* dx, const C* grad, const C* x, const C* loss, const C* alpha,
                  const CtcTargets& targets, const CtcShape& shape);

}  // namespace clew::kernels

// Optimizer updates of one parameter's elements, in one pass over memory.
// May include: base.
// Invariant: element i of every array belongs to element i of the parameter; nothing else is read.
#pragma once
#include <cstdint>

namespace clew::kernels {

// Adam and AdamW; `step_size` is lr / (1 - beta1^t), `root` is sqrt(1 - beta2^t).
struct AdamRule {
  double beta1, beta2, eps;
  double weight_decay;  // added to the gradient
  double shrink;        // the parameter is multiplied with it (1 without decoupled decay)
  double step_size, root;
  bool maximize;
};
struct SgdRule {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
};

template <class C> struct OptimizerLoops {
  // m, v: running moments; largest: the greatest v so far, or null
  void (*adam)(const AdamRule& r, int64_t n, C* param, const C* grad, C* m, C* v, C* largest);
  // buffer: the running direction, or null without momentum
  void (*sgd)(const SgdRule& r, int64_t n, C* param, const C* grad, C* buffer);
};

// The fastest this processor runs; C is float or double.
template <class C> const OptimizerLoops<C>& optimizer_loops();

}  // namespace clew::kernels

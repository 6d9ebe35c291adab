// The loops of optimizer updates, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
// Comparisons may become selections: nobody reads the floating-point exception flags.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif
#include <cmath>

#include "kernels/optimize.h"

namespace clew::kernels::CLEW_ISA {
namespace {

template <class C, bool amsgrad>
void adam_loop(const AdamRule& r, int64_t n, C* __restrict param, const C* __restrict grad,
               C* __restrict m, C* __restrict v, C* __restrict largest) {
  const C sign = r.maximize ? C(-1) : C(1);
  const C decay = static_cast<C>(r.weight_decay), shrink = static_cast<C>(r.shrink);
  const C new1 = static_cast<C>(1 - r.beta1);
  const C beta2 = static_cast<C>(r.beta2), new2 = static_cast<C>(1 - r.beta2);
  const C eps = static_cast<C>(r.eps), root = static_cast<C>(1 / r.root);
  const C step = static_cast<C>(r.step_size);
  for (int64_t i = 0; i < n; ++i) {
    C p = param[i] * shrink;
    C g = grad[i] * sign;
    if (decay != 0) g += decay * p;  // 0 times an infinite parameter would be nan
    C a = m[i] + new1 * (g - m[i]);
    C b = beta2 * v[i] + new2 * (g * g);
    m[i] = a;
    v[i] = b;
    if constexpr (amsgrad) {
      b = b > largest[i] || b != b ? b : largest[i];
      largest[i] = b;
    }
    param[i] = p - step * (a / (std::sqrt(b) * root + eps));
  }
}
template <class C>
void adam(const AdamRule& r, int64_t n, C* param, const C* grad, C* m, C* v, C* largest) {
  if (largest)
    adam_loop<C, true>(r, n, param, grad, m, v, largest);
  else
    adam_loop<C, false>(r, n, param, grad, m, v, nullptr);
}

template <class C>
void sgd(const SgdRule& r, int64_t n, C* __restrict param, const C* __restrict grad,
         C* __restrict buffer) {
  const C sign = r.maximize ? C(-1) : C(1);
  const C decay = static_cast<C>(r.weight_decay), lr = static_cast<C>(r.lr);
  if (!buffer) {
    for (int64_t i = 0; i < n; ++i) {
      C g = grad[i] * sign;
      if (decay != 0) g += decay * param[i];
      param[i] -= lr * g;
    }
    return;
  }
  const C momentum = static_cast<C>(r.momentum), fresh = static_cast<C>(1 - r.dampening);
  if (r.nesterov) {
    for (int64_t i = 0; i < n; ++i) {
      C g = grad[i] * sign;
      if (decay != 0) g += decay * param[i];
      buffer[i] = momentum * buffer[i] + fresh * g;
      param[i] -= lr * (g + momentum * buffer[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      C g = grad[i] * sign;
      if (decay != 0) g += decay * param[i];
      buffer[i] = momentum * buffer[i] + fresh * g;
      param[i] -= lr * buffer[i];
    }
  }
}

}  // namespace

extern const OptimizerLoops<float> optimizer_float;
extern const OptimizerLoops<double> optimizer_double;
const OptimizerLoops<float> optimizer_float = {adam<float>, sgd<float>};
const OptimizerLoops<double> optimizer_double = {adam<double>, sgd<double>};

}  // namespace clew::kernels::CLEW_ISA

// The loops of CTC loss over the states of one step, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#include "kernels/math/vmath.h"
#include "kernels/norm/ctc.h"

namespace clew::kernels::CLEW_ISA {
namespace {

template <class C> [[gnu::always_inline]] inline C log_sum(C a, C b, C c) {
  C top = a > b ? a : b;
  top = c > top ? c : top;
  top = top == -vm::inf<C> ? C(0) : top;
  return vm::log(vm::exp_negative(a - top) + vm::exp_negative(b - top) +
                 vm::exp_negative(c - top)) +
         top;
}
template <class C>
void join(C* __restrict to, const C* __restrict a, const C* __restrict b, const C* __restrict c,
          const C* __restrict jump, const C* __restrict add, int64_t n) {
  if (add) {
    for (int64_t i = 0; i < n; ++i) to[i] = log_sum(a[i], b[i], c[i] + jump[i]) + add[i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = log_sum(a[i], b[i], c[i] + jump[i]);
  }
}
template <class C>
void shares(C* __restrict to, const C* __restrict a, const C* __restrict b, C shift, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = vm::exp((a[i] + b[i]) + shift);
}
template <class C> void masses(C* __restrict to, const C* __restrict x, C scale, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = vm::exp(x[i]) * scale;
}

template <class C> constexpr CtcLoops<C> loops() {
  return {.join = join<C>, .shares = shares<C>, .masses = masses<C>};
}

}  // namespace

extern const CtcLoops<float> ctc_float;
extern const CtcLoops<double> ctc_double;
const CtcLoops<float> ctc_float = loops<float>();
const CtcLoops<double> ctc_double = loops<double>();

}  // namespace clew::kernels::CLEW_ISA

// CTC loss by the forward recursion, its gradient by the backward one; a sequence is one thread's.
// May include: base, kernels.
// Invariant: a sequence reads its own steps, and the states of its own labels, alone.
#include "kernels/norm/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/parallel.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const CtcLoops<float> ctc_float; extern const CtcLoops<double> ctc_double;)

namespace {

template <class C> const CtcLoops<C>& loops() {
  return of_type<C>(CLEW_CHOSEN(ctc_float), CLEW_CHOSEN(ctc_double));
}

template <class C> constexpr C never = -std::numeric_limits<C>::infinity();

// One sequence: its states, and the rows of x that belong to it.
template <class C> struct Sequence {
  const CtcShape& shape;
  const C* x;
  const int64_t* state;
  int64_t steps, labels, width;
  std::vector<C> jump, emit;  // with two states that cannot be after the last

  Sequence(const CtcTargets& targets, const CtcShape& s, const C* all, int64_t n)
      : shape(s),
        x(all + n * s.classes),
        state(targets.state + n * s.width),
        steps(targets.lengths[n]),
        labels(targets.lengths[s.batch + n]),
        width(2 * labels + 1),
        jump(static_cast<size_t>(width) + 2, never<C>),
        emit(static_cast<size_t>(width) + 2, never<C>) {
    for (int64_t i = 0; i < width; ++i) {
      if (targets.may_skip[n * s.width + i]) jump[static_cast<size_t>(i)] = 0;
    }
  }
  int64_t row(int64_t t) const { return t * shape.batch * shape.classes; }
  // What step t gives to each state.
  void take(int64_t t) {
    for (int64_t i = 0; i < width; ++i) emit[static_cast<size_t>(i)] = x[row(t) + state[i]];
  }
};

template <class F> void for_sequences(const CtcShape& shape, F&& f) {
  const int64_t work = std::max<int64_t>(1, shape.steps * (shape.classes + 8 * shape.width));
  parallel_for(shape.batch, std::max<int64_t>(1, grain_default / work),
               [&](int64_t n0, int64_t n1) {
                 for (int64_t n = n0; n < n1; ++n) f(n);
               });
}

}  // namespace

template <class C>
void ctc(C* loss, C* alpha, const C* x, const CtcTargets& targets, const CtcShape& shape) {
  const CtcLoops<C>& run = loops<C>();
  for_sequences(shape, [&](int64_t n) {
    Sequence<C> s(targets, shape, x, n);
    const int64_t stride = shape.width + 2;
    C* row = alpha + n * shape.steps * stride;
    std::fill_n(row, shape.steps * stride, never<C>);
    if (s.steps == 0) {
      loss[n] = s.labels == 0 ? C(0) : -never<C>;
      return;
    }
    for (int64_t t = 0; t < s.steps; ++t, row += stride) {
      s.take(t);
      if (t == 0) {
        std::copy_n(s.emit.data(), std::min<int64_t>(s.width, 2), row + 2);
      } else {
        const C* before = row - stride;
        run.join(row + 2, before + 2, before + 1, before, s.jump.data(), s.emit.data(), s.width);
      }
    }
    const C* last = row - stride + 2;
    const C blank = last[s.width - 1], label = s.labels > 0 ? last[s.width - 2] : never<C>;
    const C top = std::max(blank, label), shift = top == never<C> ? C(0) : top;
    loss[n] = -(std::log(std::exp(blank - shift) + std::exp(label - shift)) + shift);
  });
}

template <class C>
void ctc_backward(C* dx, const C* grad, const C* x, const C* loss, const C* alpha,
                  const CtcTargets& targets, const CtcShape& shape) {
  const CtcLoops<C>& run = loops<C>();
  for_sequences(shape, [&](int64_t n) {
    Sequence<C> s(targets, shape, x, n);
    const int64_t stride = shape.width + 2;
    const bool fits = loss[n] != -never<C>;
    C* to = dx + n * shape.classes;
    // The gradient of an infinite loss is NaN, or 0 if the incoming gradient is 0.
    const C none = grad[n] == C(0) ? C(0) : std::numeric_limits<C>::quiet_NaN();
    for (int64_t t = fits ? s.steps : 0; t < shape.steps; ++t)
      std::fill_n(to + s.row(t), shape.classes, t < s.steps ? none : C(0));
    if (!fits) return;
    const auto size = static_cast<size_t>(s.width) + 2;
    // From a state to the end: without what its own step gives, and with it.
    std::vector<C> rest(size, never<C>), all(size, never<C>), share(size);
    rest[size - 3] = 0;
    if (s.labels > 0) rest[size - 4] = 0;
    for (int64_t t = s.steps - 1; t >= 0; --t) {
      if (t + 1 < s.steps)
        run.join(rest.data(), all.data(), all.data() + 1, all.data() + 2, s.jump.data() + 2,
                 nullptr, s.width);
      s.take(t);
      for (int64_t i = 0; i < s.width; ++i)
        all[static_cast<size_t>(i)] = rest[static_cast<size_t>(i)] + s.emit[static_cast<size_t>(i)];
      run.shares(share.data(), alpha + (n * shape.steps + t) * stride + 2, rest.data(), loss[n],
                 s.width);
      run.masses(to + s.row(t), x + n * shape.classes + s.row(t), grad[n], shape.classes);
      for (int64_t i = 0; i < s.width; ++i)
        to[s.row(t) + s.state[i]] -= grad[n] * share[static_cast<size_t>(i)];
    }
  });
}

template void ctc(float*, float*, const float*, const CtcTargets&, const CtcShape&);
template void ctc(double*, double*, const double*, const CtcTargets&, const CtcShape&);
template void ctc_backward(float*, const float*, const float*, const float*, const float*,
                           const CtcTargets&, const CtcShape&);
template void ctc_backward(double*, const double*, const double*, const double*, const double*,
                           const CtcTargets&, const CtcShape&);

}  // namespace clew::kernels

// The loops of optimizer updates, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#if defined(__GNUC__) && !defined(__clang__)
// Products are rounded before they are added, but where product_and() says otherwise: as the tensor
// operations round that an update stands for.
#pragma GCC optimize("fp-contract=off")
#endif
#include <algorithm>
#include <cmath>

#include "kernels/elementwise/pointwise_loops.h"
#include "kernels/math/vmath.h"
#include "kernels/train/optimize.h"

namespace clew::kernels::CLEW_ISA {
namespace {

using vm::product_and;

// Elements of half precision that are widened at once; they are computed with in float.
constexpr int64_t half_block = 256;

// The running means of gradients and of their squares. The first is lerp(): from the nearer end.
template <class C> [[gnu::always_inline]] inline C mean_with(C mean, C g, C fresh) {
  return fresh < C(0.5) ? product_and(fresh, g - mean, mean)
                        : product_and(mean - g, C(1) - fresh, g);
}
template <class C> [[gnu::always_inline]] inline C squares_with(C v, C g, C keep, C fresh) {
  return product_and(fresh * g, g, keep * v);
}

// The gradient as an update uses it: negated for maximize, plus the weight decay.
template <class C> struct Gradient {
  C sign, decay;
  Gradient(bool maximize, double weight_decay)
      : sign(maximize ? C(-1) : C(1)), decay(static_cast<C>(weight_decay)) {}
  C operator()(C grad, C param) const {
    C g = grad * sign;
    return decay != 0 ? product_and(decay, param, g)
                      : g;  // 0 times an infinite parameter would be nan
  }
};

template <class C> void update(const SgdRule& r, int64_t n, C* const* a) {
  C* __restrict param = a[0];
  const C* __restrict grad = a[1];
  C* __restrict buffer = a[2];
  const Gradient<C> gradient(r.maximize, r.weight_decay);
  const C lr = static_cast<C>(r.lr);
  const C momentum = static_cast<C>(r.momentum), fresh = static_cast<C>(1 - r.dampening);
  if (!buffer) {
    for (int64_t i = 0; i < n; ++i)
      param[i] = product_and(-lr, gradient(grad[i], param[i]), param[i]);
  } else if (r.nesterov) {
    for (int64_t i = 0; i < n; ++i) {
      C g = gradient(grad[i], param[i]);
      buffer[i] = product_and(fresh, g, momentum * buffer[i]);
      param[i] = product_and(-lr, product_and(momentum, buffer[i], g), param[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      buffer[i] = product_and(fresh, gradient(grad[i], param[i]), momentum * buffer[i]);
      param[i] = product_and(-lr, buffer[i], param[i]);
    }
  }
}

// What Adam and its variants share: both running means, and param = change(p, g, mean, square) of
// the decayed parameter and the new means; amsgrad: the largest square so far in the last one's
// place.
template <class C, bool amsgrad, class R, class F>
[[gnu::always_inline]] inline void with_means(const R& r, int64_t n, C* const* a, F&& change) {
  C* __restrict param = a[0];
  const C* __restrict grad = a[1];
  C* __restrict m = a[2];
  C* __restrict v = a[3];
  C* __restrict largest = amsgrad ? a[4] : nullptr;
  const Gradient<C> gradient(r.maximize, r.weight_decay);
  const C shrink = static_cast<C>(r.shrink), new1 = static_cast<C>(1 - r.beta1);
  const C beta2 = static_cast<C>(r.beta2), new2 = static_cast<C>(1 - r.beta2);
  for (int64_t i = 0; i < n; ++i) {
    C p = param[i] * shrink;
    C g = gradient(grad[i], p);
    C mean = mean_with(m[i], g, new1);
    C square = squares_with(v[i], g, beta2, new2);
    m[i] = mean;
    v[i] = square;
    if constexpr (amsgrad) {
      square = square > largest[i] || square != square ? square : largest[i];
      largest[i] = square;
    }
    param[i] = change(p, g, mean, square);
  }
}
template <class C, bool amsgrad> void adam(const AdamRule& r, int64_t n, C* const* a) {
  const C eps = static_cast<C>(r.eps), root = static_cast<C>(r.root);
  const C step = static_cast<C>(r.step_size);
  with_means<C, amsgrad>(r, n, a, [=](C p, C, C mean, C square) {
    return p + -step * mean / (std::sqrt(square) / root + eps);
  });
}
template <class C> void update(const AdamRule& r, int64_t n, C* const* a) {
  a[4] ? adam<C, true>(r, n, a) : adam<C, false>(r, n, a);
}

template <class C, bool buffered, bool centered>
void rmsprop(const RmspropRule& r, int64_t n, C* const* a) {
  C* __restrict param = a[0];
  const C* __restrict grad = a[1];
  C* __restrict v = a[2];
  C* __restrict buffer = a[3];
  C* __restrict mean = a[4];
  const Gradient<C> gradient(r.maximize, r.weight_decay);
  const C alpha = static_cast<C>(r.alpha), fresh = static_cast<C>(1 - r.alpha);
  const C eps = static_cast<C>(r.eps), lr = static_cast<C>(r.lr);
  const C momentum = static_cast<C>(r.momentum);
  for (int64_t i = 0; i < n; ++i) {
    C g = gradient(grad[i], param[i]);
    C square = squares_with(v[i], g, alpha, fresh);
    v[i] = square;
    if constexpr (centered) {
      mean[i] = mean_with(mean[i], g, fresh);
      square = product_and(-mean[i], mean[i], square);
    }
    C root = std::sqrt(square) + eps;
    if constexpr (buffered) {
      buffer[i] = momentum * buffer[i] + g / root;
      param[i] = product_and(-lr, buffer[i], param[i]);
    } else {
      param[i] = param[i] + -lr * g / root;
    }
  }
}
template <class C> void update(const RmspropRule& r, int64_t n, C* const* a) {
  if (a[3])
    a[4] ? rmsprop<C, true, true>(r, n, a) : rmsprop<C, true, false>(r, n, a);
  else
    a[4] ? rmsprop<C, false, true>(r, n, a) : rmsprop<C, false, false>(r, n, a);
}

template <class C> void update(const AdagradRule& r, int64_t n, C* const* a) {
  C* __restrict param = a[0];
  const C* __restrict grad = a[1];
  C* __restrict sum = a[2];
  const Gradient<C> gradient(r.maximize, r.weight_decay);
  const C eps = static_cast<C>(r.eps), lr = static_cast<C>(r.lr);
  for (int64_t i = 0; i < n; ++i) {
    C g = gradient(grad[i], param[i]);
    sum[i] = product_and(g, g, sum[i]);
    param[i] = param[i] + -lr * g / (std::sqrt(sum[i]) + eps);
  }
}

template <class C> void update(const NadamRule& r, int64_t n, C* const* a) {
  const C eps = static_cast<C>(r.eps), root2 = static_cast<C>(r.root2);
  const C grad_size = static_cast<C>(r.grad_size), mean_size = static_cast<C>(r.mean_size);
  with_means<C, false>(r, n, a, [=](C p, C g, C mean, C square) {
    C root = std::sqrt(square / root2) + eps;
    return p + -grad_size * g / root + -mean_size * mean / root;
  });
}

template <class C> void update(const RadamRule& r, int64_t n, C* const* a) {
  const C eps = static_cast<C>(r.eps), root = static_cast<C>(r.root);
  const C step = static_cast<C>(r.step_size);
  const bool adapted = r.adapted;
  with_means<C, false>(r, n, a, [=](C p, C, C mean, C square) {
    C scale = adapted ? root / (std::sqrt(square) + eps) : C(1);
    return p - step * mean * scale;
  });
}

template <class C> void update(const AdamaxRule& r, int64_t n, C* const* a) {
  C* __restrict param = a[0];
  const C* __restrict grad = a[1];
  C* __restrict m = a[2];
  C* __restrict most = a[3];
  const Gradient<C> gradient(r.maximize, r.weight_decay);
  const C new1 = static_cast<C>(1 - r.beta1), beta2 = static_cast<C>(r.beta2);
  const C eps = static_cast<C>(r.eps), step = static_cast<C>(r.step_size);
  for (int64_t i = 0; i < n; ++i) {
    C g = gradient(grad[i], param[i]);
    m[i] = mean_with(m[i], g, new1);
    C before = beta2 * most[i], now = std::fabs(g) + eps;
    C norm = now > before || now != now ? now : before;
    most[i] = norm;
    param[i] = param[i] + -step * m[i] / norm;
  }
}

template <class C> void update(const AdadeltaRule& r, int64_t n, C* const* a) {
  C* __restrict param = a[0];
  const C* __restrict grad = a[1];
  C* __restrict v = a[2];
  C* __restrict changes = a[3];
  const Gradient<C> gradient(r.maximize, r.weight_decay);
  const C rho = static_cast<C>(r.rho), fresh = static_cast<C>(1 - r.rho);
  const C eps = static_cast<C>(r.eps), lr = static_cast<C>(r.lr);
  for (int64_t i = 0; i < n; ++i) {
    C g = gradient(grad[i], param[i]);
    C square = squares_with(v[i], g, rho, fresh);
    v[i] = square;
    C change = std::sqrt(changes[i] + eps) / std::sqrt(square + eps) * g;
    changes[i] = squares_with(changes[i], change, rho, fresh);
    param[i] = product_and(-lr, change, param[i]);
  }
}

template <class Rule, class T> void run(const void* rule, int64_t n, void* const* arrays) {
  const Rule& r = *static_cast<const Rule*>(rule);
  if constexpr (is_half_v<T>) {
    float wide[most_optimizer_arrays][half_block];
    float* a[most_optimizer_arrays];
    for (int k = 0; k < most_optimizer_arrays; ++k) a[k] = arrays[k] ? wide[k] : nullptr;
    for (int64_t i = 0; i < n; i += half_block) {
      int64_t count = std::min(half_block, n - i);
      for (int k = 0; k < most_optimizer_arrays; ++k)
        if (a[k]) widen(static_cast<const T*>(arrays[k]) + i, a[k], count);
      update<float>(r, count, a);
      for (int k = 0; k < most_optimizer_arrays; ++k)
        if (a[k] && k != 1) narrow(a[k], static_cast<T*>(arrays[k]) + i, count);
    }
  } else {
    T* a[most_optimizer_arrays];
    for (int k = 0; k < most_optimizer_arrays; ++k) a[k] = static_cast<T*>(arrays[k]);
    update<T>(r, n, a);
  }
}

template <class... Rule> constexpr UpdateTable table_of() {
  return {Updates{run<Rule, float>, run<Rule, double>, run<Rule, bf16>, run<Rule, f16>}...};
}

}  // namespace

extern const UpdateTable updates;
const UpdateTable updates = table_of<SgdRule, AdamRule, RmspropRule, AdagradRule, NadamRule,
                                     RadamRule, AdamaxRule, AdadeltaRule>();

}  // namespace clew::kernels::CLEW_ISA

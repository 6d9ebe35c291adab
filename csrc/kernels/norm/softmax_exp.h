// exp() in a form that the compiler turns into vector code, for the loops of softmax and logsumexp.
// May include: base, kernels/core/lanes.h, kernels/math/vmath.h.
// Invariant: within 2 ulp of the true value for float, 3 for double; exp(-inf) is 0, NaN stays NaN.
// Arguments are at most 0, but for rounding, or infinite: from 71 on the result is infinity.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>

#include "kernels/core/lanes.h"
#include "kernels/math/vmath.h"

namespace clew::kernels {

namespace {

[[gnu::always_inline]] inline float exp_fast(float x) {
  // Below -104 the result is 0; 0 is computed with instead, for products that underflow are slow.
  float c = x < -104.0f ? 0.0f : x;
  vm::ExpParts<float> parts;
  if constexpr (vm::fuses) {
    // As exp_in_step() has it, so that all forms of softmax give the same bits.
    const float sum = std::fma(c, vm::log2_e<float>, vm::round_f);
    const float f = std::fma(c, vm::log2_e<float>, vm::round_f - sum);
    parts = {vm::horner(std::fma(c, vm::log2_e_rest, f), vm::exp2_series), sum};
  } else {
    parts = vm::exp_parts(c);
  }
  // 2^n in two factors, so that subnormals come out right.
  float raised = std::bit_cast<float>((std::bit_cast<uint32_t>(parts.sum) + (24u + 127u)) << 23);
  float e = parts.value * raised * 0x1p-24f;
  e = x < -104.0f ? 0.0f : e;
  return x > 71.0f ? vm::inf<float> : e;
}
[[gnu::always_inline]] inline double exp_fast(double x) { return vm::exp(x); }

// exp_fast() of U vectors (no element above 0), interleaved. One after another, each vector would
// wait for its chain of products, and the following ones for room in the schedulers.
template <class C, int U> [[gnu::always_inline]] inline void exp_in_step(Lanes_t<C> (&x)[U]) {
  if constexpr (vm::fuses && std::is_same_v<C, float>) {
    typedef uint32_t Bits __attribute__((vector_size(lane_bytes)));
    auto bits = [](Lanes_t<C> v) { return reinterpret_cast<Bits>(v); };
    auto lanes = [](Bits v) { return reinterpret_cast<Lanes_t<C>>(v); };
    constexpr int terms = std::size(vm::exp2_series);
    Lanes_t<C> sum[U], f[U];
    Bits some[U];  // results that are not 0
    for (int u = 0; u < U; ++u) some[u] = reinterpret_cast<Bits>(!(x[u] < -104.0f));
    for (int u = 0; u < U; ++u) x[u] = lanes(bits(x[u]) & some[u]);
    for (int u = 0; u < U; ++u) sum[u] = x[u] * vm::log2_e<C> + vm::round_f;
    for (int u = 0; u < U; ++u) f[u] = x[u] * vm::log2_e<C> - (sum[u] - vm::round_f);
    for (int u = 0; u < U; ++u) f[u] = x[u] * vm::log2_e_rest + f[u];
    for (int u = 0; u < U; ++u) x[u] = spread<C>(vm::exp2_series[terms - 1]);
    for (int k = terms - 2; k >= 0; --k) {
      for (int u = 0; u < U; ++u) x[u] = x[u] * f[u] + vm::exp2_series[k];
    }
    for (int u = 0; u < U; ++u) {
      const Lanes_t<C> raised = lanes((bits(sum[u]) + (24u + 127u)) << 23);
      x[u] = lanes(bits(x[u] * raised * 0x1p-24f) & some[u]);
    }
    return;
  }
  C room[U * lane_count<C>];
  std::memcpy(room, x, sizeof x);
  for (C& e : room) e = exp_fast(e);
  std::memcpy(x, room, sizeof x);
}

// The same for a sum of which 1 is the largest term: terms below e^-87 are replaced by e^-87. The
// rounding of log2_e changes no term by more than 1e-8.
template <class C, int U> [[gnu::always_inline]] inline void terms_in_step(Lanes_t<C> (&x)[U]) {
  if constexpr (vm::fuses && std::is_same_v<C, float>) {
    typedef uint32_t Bits __attribute__((vector_size(lane_bytes)));
    constexpr int terms = std::size(vm::exp2_series);
    Lanes_t<C> sum[U], f[U];
    for (int u = 0; u < U; ++u) x[u] = x[u] < -87.0f ? spread(-87.0f) : x[u];
    for (int u = 0; u < U; ++u) sum[u] = x[u] * vm::log2_e<C> + vm::round_f;
    for (int u = 0; u < U; ++u) f[u] = x[u] * vm::log2_e<C> - (sum[u] - vm::round_f);
    for (int u = 0; u < U; ++u) x[u] = spread<C>(vm::exp2_series[terms - 1]);
    for (int k = terms - 2; k >= 0; --k) {
      for (int u = 0; u < U; ++u) x[u] = x[u] * f[u] + vm::exp2_series[k];
    }
    for (int u = 0; u < U; ++u)
      x[u] *= reinterpret_cast<Lanes_t<C>>((reinterpret_cast<Bits>(sum[u]) + 127u) << 23);
    return;
  }
  exp_in_step<C>(x);
}

}  // namespace
}  // namespace clew::kernels

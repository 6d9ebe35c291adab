// exp() in a form that the compiler turns into vector code, for the loops of softmax and logsumexp.
// May include: base, kernels/vmath.h.
// Invariant: within 2 ulp of the true value for float, 3 for double; exp(-inf) is 0, NaN stays NaN.
// Arguments are at most 0, but for rounding, or infinite: from 71 on the result is infinity.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/vmath.h"

namespace clew::kernels {

namespace {

[[gnu::always_inline]] inline float exp_fast(float x) {
  // Below -104 the result is 0; 0 is computed with instead, for products that underflow are slow.
  float c = x < -104.0f ? 0.0f : x;
  vm::ExpParts<float> parts = vm::exp_parts(c);
  // 2^n in two factors, so that subnormals come out right.
  float raised = std::bit_cast<float>((std::bit_cast<uint32_t>(parts.sum) + (24u + 127u)) << 23);
  float e = parts.value * raised * 0x1p-24f;
  e = x < -104.0f ? 0.0f : e;
  return x > 71.0f ? vm::inf<float> : e;
}
[[gnu::always_inline]] inline double exp_fast(double x) { return vm::exp(x); }

}  // namespace
}  // namespace clew::kernels

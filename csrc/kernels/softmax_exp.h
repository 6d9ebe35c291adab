// exp() in a form that the compiler turns into vector code, for the loops of softmax and logsumexp.
// May include: base, kernels/vmath.h.
// Invariant: within 2 ulp of the true value for float, 3 for double; exp(-inf) is 0, NaN stays NaN,
// overflow gives infinity.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/vmath.h"

namespace clew::kernels {

inline float exp_fast(float x) {
  // x = k ln 2 + r with |r| <= ln 2 / 2; e^r by a polynomial; 2^k in two factors, so that
  // subnormals come out right.
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  // Below -104 the result is 0; 0 is computed with instead, for products that underflow are slow.
  float lo = x < -104.0f ? 0.0f : x;
  float c = x > 89.0f ? 89.0f : lo;  // NaN passes both comparisons
  float t = c * 1.44269504088896341f + shift;
  int32_t k = std::bit_cast<int32_t>(t) - std::bit_cast<int32_t>(shift);
  float kf = t - shift;
  float r = c - kf * 0.693359375f;
  r = r + kf * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  int32_t half = k >> 1;
  float a = std::bit_cast<float>((half + 127) << 23);
  float b = std::bit_cast<float>((k - half + 127) << 23);
  return x < -104.0f ? 0.0f : p * a * b;
}
inline double exp_fast(double x) { return vm::exp(x); }

}  // namespace clew::kernels

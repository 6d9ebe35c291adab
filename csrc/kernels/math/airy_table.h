// Airy's function Ai and its slope at multiples of 1 / 8, from which vmath_bessel.h goes on.
// May include: nothing.
// Invariant: one table for all instruction sets, made when the library is loaded.
#pragma once

namespace clew::kernels {

constexpr int airy_steps = 8;  // of one unit
constexpr int airy_end = 16;   // the table reaches from -airy_end to airy_end
struct AiryPoint {
  double value, slope;
};
extern AiryPoint airy_points[2 * airy_end * airy_steps + 1];

}  // namespace clew::kernels

// The recurrence of mt19937: what Generator steps through, and kernels run in vectors.
// May include: the standard library.
// Invariant: everything is inlined: code for one instruction set never leaks into another's.
#pragma once
#include <cstdint>

namespace clew::mersenne {

constexpr int words = 624, middle = 397;

// The output that a word of the state gives.
[[gnu::always_inline]] inline uint32_t temper(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}
// What is added to the word `middle` places on, of a word and the one after it.
[[gnu::always_inline]] inline uint32_t twist(uint32_t a, uint32_t b) {
  uint32_t y = (a & 0x80000000u) | (b & 0x7fffffffu);
  return (y >> 1) ^ ((0u - (b & 1u)) & 0x9908b0dfu);
}

}  // namespace clew::mersenne

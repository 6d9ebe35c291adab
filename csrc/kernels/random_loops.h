// The vector loops of random numbers: words of mt19937, and what they are turned into.
// May include: the standard library.
// Invariant: the same bits whatever the instruction set: nothing is contracted to fused operations.
#pragma once
#include <cstdint>

namespace clew::kernels {

struct RandomLoops {
  // n words of the generator with this state of 624 words and this position in it.
  void (*words)(uint32_t* state, uint32_t& position, uint32_t* out, int64_t n);
  // out[i] = 1 where pair i of words, 53 bits of it, is below the limit.
  void (*below)(uint8_t* out, const uint32_t* words, int64_t n, uint64_t limit);
  // Blocks of 16 uniforms into normals: the first half gives the radii, the second the angles.
  void (*normals)(float* x, int64_t blocks, float mean, float std);
};
// The fastest this processor runs.
const RandomLoops& random_loops();

}  // namespace clew::kernels

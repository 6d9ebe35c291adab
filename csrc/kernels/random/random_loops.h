// The vector loops of random numbers: words of mt19937, and what they are turned into.
// May include: the standard library.
// Invariant: the same bits whatever the instruction set: nothing is contracted to fused operations.
#pragma once
#include <cstdint>

namespace clew::kernels {

struct RandomLoops {
  // Appends `blocks` blocks of 624 untempered words of mt19937 to the block at x.
  void (*extend)(uint32_t* x, int64_t blocks);
  // Tempers n words: turns the state into the generator's output.
  void (*temper)(uint32_t* x, int64_t n);
  // As extend(), but stores even and odd words separately: 312 of each per block. Prefetches as
  // many numbers at `soon`, because memory is idle meanwhile.
  void (*extend_apart)(uint32_t* even, uint32_t* odd, int64_t blocks, const float* soon);
  // out[i] = 1 where pair i of words, 53 bits of it, is below the limit.
  void (*below)(uint8_t* out, const uint32_t* words, int64_t n, uint64_t limit);
  // out[i] = mask[i] ? x[i] * a + b : x[i] * 0 + dropped
  void (*masked)(float* out, const float* x, const uint8_t* mask, int64_t n, float a, float b,
                 float dropped);
  // The mask of below() and what masked() makes with it, from n pairs of words that are not
  // tempered yet. Where it is streamed, `out` starts a line.
  void (*drop)(float* out, uint8_t* mask, const float* x, const uint32_t* upper,
               const uint32_t* lower, int64_t n, uint64_t limit, float a, float b, float dropped,
               bool streamed);
  // Blocks of 16 uniforms into normals: the first half gives the radii, the second the angles.
  void (*normals)(float* x, int64_t blocks, float mean, float std);
};
// The fastest this processor runs.
const RandomLoops& random_loops();

}  // namespace clew::kernels

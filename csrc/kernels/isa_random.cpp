// The vector loops of random numbers, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage; products and sums
// round one by one, so that all instruction sets give the same bits.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma clang fp contract(off)
#endif
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/random_loops.h"

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int size = 624, middle = 397;

inline uint32_t temper(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}
inline uint32_t twist(uint32_t a, uint32_t b) {
  uint32_t y = (a & 0x80000000u) | (b & 0x7fffffffu);
  return (y >> 1) ^ ((0u - (b & 1u)) & 0x9908b0dfu);
}
// The next 624 words. No word depends on one less than 227 places before it.
void advance(uint32_t* state) {
  for (int i = 0; i < size - middle; ++i)
    state[i] = state[i + middle] ^ twist(state[i], state[i + 1]);
  for (int i = size - middle; i < size - 1; ++i)
    state[i] = state[i + middle - size] ^ twist(state[i], state[i + 1]);
  state[size - 1] = state[middle - 1] ^ twist(state[size - 1], state[0]);
}

void words(uint32_t* state, uint32_t& position, uint32_t* __restrict out, int64_t n) {
  while (n > 0) {
    if (position == size) {
      advance(state);
      position = 0;
    }
    int64_t take = size - static_cast<int64_t>(position);
    if (take > n) take = n;
    const uint32_t* from = state + position;
    for (int64_t i = 0; i < take; ++i) out[i] = temper(from[i]);
    position += static_cast<uint32_t>(take);
    out += take;
    n -= take;
  }
}

void below(uint8_t* __restrict out, const uint32_t* __restrict words, int64_t n, uint64_t limit) {
  for (int64_t i = 0; i < n; ++i) {
    // The first word of a pair is the upper half.
    uint64_t pair;
    std::memcpy(&pair, words + 2 * i, sizeof pair);
    if constexpr (std::endian::native == std::endian::little) pair = pair << 32 | pair >> 32;
    out[i] = (pair & ((uint64_t{1} << 53) - 1)) < limit;
  }
}

constexpr int block = 16;

// Natural logarithm of x in (0, 1], a multiple of 2^-24: within 2 units in the last place, and
// vectorisable.
inline float log_unit(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  uint32_t shifted = bits + (0x3f800000u - 0x3f3504f3u);
  int exponent = static_cast<int>(shifted >> 23) - 127;
  float m = std::bit_cast<float>((shifted & 0x007fffffu) + 0x3f3504f3u);
  float s = (m - 1) / (m + 1);
  float z = s * s;
  // 2 * atanh(s) by its series; |s| < 0.1716.
  float p = 2.0f / 9 * z + 2.0f / 7;
  p = p * z + 2.0f / 5;
  p = p * z + 2.0f / 3;
  float e = static_cast<float>(exponent);
  return e * 0.693359375f + (s * p * z + (e * -2.12194440e-4f + 2 * s));
}

// Cosine and sine of 2 pi u, u in [0, 1): exact reduction to an eighth of a turn, then the two
// Taylor series.
inline void turn(float u, float& cosine, float& sine) {
  float t = u * 4;
  int quadrant = static_cast<int>(t + 0.5f);
  float x = (t - static_cast<float>(quadrant)) * static_cast<float>(std::numbers::pi / 2);
  float z = x * x;
  float s = x + x * z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 + z * (1.0f / 362880))));
  float c = 1 - z * 0.5f +
            z * z * (1.0f / 24 + z * (-1.0f / 720 + z * (1.0f / 40320 + z * (-1.0f / 3628800))));
  float a = quadrant & 1 ? s : c;
  float b = quadrant & 1 ? c : s;
  cosine = ((quadrant + 1) & 2) ? -a : a;
  sine = (quadrant & 2) ? -b : b;
}

inline void normal_block(float* x, float mean, float std) {
  for (int j = 0; j < block / 2; ++j) {
    float radius = std::sqrt(-2 * log_unit(1 - x[j]));
    float c, s;
    turn(x[j + block / 2], c, s);
    x[j] = radius * c * std + mean;
    x[j + block / 2] = radius * s * std + mean;
  }
}
void normals(float* x, int64_t blocks, float mean, float std) {
  for (int64_t k = 0; k < blocks; ++k) normal_block(x + k * block, mean, std);
}

}  // namespace

extern const RandomLoops random_table;
const RandomLoops random_table = {.words = words, .below = below, .normals = normals};

}  // namespace clew::kernels::CLEW_ISA

// The 16-bit floats.
// May include: the standard library only.
// Invariant: a float becomes the nearest number of the type, ties to the even one; NaN stays NaN.
#pragma once
#include <bit>
#include <cstdint>

namespace clew {

// IEEE 754's binary16; arithmetic converts to float and rounds to nearest even on the way back.
struct f16 {
  uint16_t bits = 0;
  f16() = default;
#if defined(__F16C__) || defined(__aarch64__)  // one instruction
  [[gnu::always_inline]] f16(float value)
      : bits(std::bit_cast<uint16_t>(static_cast<_Float16>(value))) {}
  [[gnu::always_inline]] operator float() const {
    return static_cast<float>(std::bit_cast<_Float16>(bits));
  }
#else
  // Branch-free, so that loops vectorize. Subnormal numbers are rounded by an addition to 0.5:
  // floats there are 2^-24 apart, as subnormal float16 numbers are.
  [[gnu::always_inline]] f16(float value) {
    constexpr uint32_t half = 0x3f000000u, least_normal = 0x38800000u, infinite = 0x7f800000u;
    const auto all = std::bit_cast<uint32_t>(value);
    const uint32_t u = all & 0x7fffffffu;
    const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(u) + 0.5f) - half;
    const uint32_t normal = (u - 0x38000000u + 0xfffu + (u >> 13 & 1u)) >> 13;
    const uint32_t special = u > infinite ? 0x7e00u | (u >> 13 & 0x3ffu) : 0x7c00u;
    const uint32_t finite = u < least_normal ? small : normal;
    bits = static_cast<uint16_t>((u >= 0x47800000u ? special : finite) | (all >> 16 & 0x8000u));
  }
  [[gnu::always_inline]] operator float() const {
    constexpr uint32_t exponents = 0x7c00u << 13, least_normal = 0x38800000u;
    const uint32_t u = (bits & 0x7fffu) << 13, exponent = u & exponents;
    const uint32_t normal = u + 0x38000000u, special = u + 0x70000000u;
    const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(u + least_normal) -
                                                   std::bit_cast<float>(least_normal));
    const uint32_t quiet = u > exponents ? 0x400000u : 0u;
    const uint32_t finite = exponent == 0 ? small : normal;
    return std::bit_cast<float>((exponent == exponents ? special | quiet : finite) |
                                static_cast<uint32_t>(bits & 0x8000u) << 16);
  }
#endif
};

// Upper half of a float32; arithmetic converts to float and rounds to nearest even on the way back.
struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  bf16(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((u >> 16) | 0x40u);
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace clew

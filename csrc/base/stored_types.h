// Element types that are kept and converted, but not computed with: 8-bit floats, half complex.
// May include: base/half.h.
// Invariant: a float becomes the nearest number of the type, ties to the even one, as PyTorch does.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/half.h"

namespace clew {

// What the codes above the greatest number mean: infinity and NaN (IEEE), NaN alone ("fn"), or
// nothing, because minus zero is the only NaN ("fnuz"). Micikevicius et al. 2022 (arXiv:2209.05433)
// and Noune et al. 2022 (arXiv:2206.02915).
enum class Top : uint8_t { infinity, nan, number };

// A sign, `exponent` bits of exponent with a bias, and the other bits of mantissa.
template <int exponent, int bias, Top top> struct float8 {
  static constexpr int mantissa = 7 - exponent;
  static constexpr uint8_t nan = top == Top::number ? 0x80 : 0x7f;
  static constexpr uint32_t greatest = top == Top::infinity ? (0x7f >> mantissa << mantissa) - 1
                                       : top == Top::nan    ? 0x7e
                                                            : 0x7f;
  // Numbers without an infinity or a code for "too large" end at the greatest one.
  static constexpr uint8_t beyond = top == Top::infinity ? greatest + 1
                                    : top == Top::nan    ? greatest
                                                         : nan;

  uint8_t bits = 0;
  float8() = default;
  float8(float value) {
    const auto u = std::bit_cast<uint32_t>(value);
    const uint32_t size = u & 0x7fffffffu, sign = u >> 24 & 0x80u;
    constexpr int cut = 23 - mantissa;
    uint32_t code;
    if (size > 0x7f800000u) {
      code = nan;
    } else if (size < static_cast<uint32_t>(128 - bias) << 23) {  // below the normal numbers
      constexpr float steps = std::bit_cast<float>((126u + bias + mantissa) << 23);
      code = static_cast<uint32_t>(std::nearbyintf(std::bit_cast<float>(size) * steps));
    } else {
      code = (size + ((1u << (cut - 1)) - 1) + (size >> cut & 1)) >> cut;
      code -= static_cast<uint32_t>(127 - bias) << mantissa;
      if (code > greatest) code = beyond;
    }
    if constexpr (top == Top::number)
      bits = static_cast<uint8_t>(code == 0 ? 0 : code | sign);
    else
      bits = static_cast<uint8_t>(code | sign);
  }
  operator float() const { return values[bits]; }

 private:
  static constexpr float value_of(uint32_t code) {
    const uint32_t size = code & 0x7f, e = size >> mantissa, m = size & ((1u << mantissa) - 1);
    const float sign = code & 0x80 ? -1.0f : 1.0f;
    if (top == Top::number ? code == nan : size > greatest) {
      if (top == Top::infinity && size == beyond)
        return sign * std::numeric_limits<float>::infinity();
      return std::numeric_limits<float>::quiet_NaN();
    }
    if (e == 0)
      return sign * static_cast<float>(m) * std::bit_cast<float>((128u - bias - mantissa) << 23);
    return sign * std::bit_cast<float>((e + 127 - bias) << 23 | m << (23 - mantissa));
  }
  static constexpr std::array<float, 256> values = [] {
    std::array<float, 256> v{};
    for (uint32_t code = 0; code < 256; ++code) v[code] = value_of(code);
    return v;
  }();
};
using f8e4m3fn = float8<4, 7, Top::nan>;
using f8e5m2 = float8<5, 15, Top::infinity>;
using f8e4m3fnuz = float8<4, 8, Top::number>;
using f8e5m2fnuz = float8<5, 16, Top::number>;

// A power of two, from 2^-127 to 2^127, or NaN: a scale of a block of numbers (OCP Microscaling
// Formats 1.0, section 5.4.1). Of a negative number only the size is kept.
struct f8e8m0fnu {
  uint8_t bits = 0;
  f8e8m0fnu() = default;
  f8e8m0fnu(float value) {
    const auto u = std::bit_cast<uint32_t>(value);
    const uint32_t exponent = u >> 23 & 0xffu, rest = u & 0x7fffffu;
    // Half way between two powers goes up; so do the halves of the least one.
    const bool up = exponent != 0xff && (exponent ? rest >= 0x400000u : rest > 0x400000u);
    bits = static_cast<uint8_t>(exponent + up);
  }
  operator float() const {
    if (bits == 0xff) return std::numeric_limits<float>::quiet_NaN();
    return std::bit_cast<float>(bits == 0 ? 0x400000u : static_cast<uint32_t>(bits) << 23);
  }
};

// A complex number of two float16.
struct c32 {
  using value_type = f16;
  value_type re = 0, im = 0;
  c32() = default;
  c32(value_type re, value_type im) : re(re), im(im) {}
  value_type real() const { return re; }
  value_type imag() const { return im; }
};

}  // namespace clew

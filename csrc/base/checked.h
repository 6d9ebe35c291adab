// Sums and products of sizes, strides and offsets that know whether they overflowed.
// May include: the standard library only.
// Invariant: `value` is right where `fits` is true, and to be read nowhere else.
#pragma once
#include <cstddef>
#include <cstdint>

namespace clew {

struct Checked {
  int64_t value = 0;
  bool fits = true;

  constexpr Checked(int64_t v) : value(v) {}
  constexpr Checked(int64_t v, bool f) : value(v), fits(f) {}
  friend constexpr Checked operator*(Checked a, Checked b) {
    int64_t v = 0;
    const bool over = __builtin_mul_overflow(a.value, b.value, &v);
    return {v, a.fits && b.fits && !over};
  }
  friend constexpr Checked operator+(Checked a, Checked b) {
    int64_t v = 0;
    const bool over = __builtin_add_overflow(a.value, b.value, &v);
    return {v, a.fits && b.fits && !over};
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    int64_t v = 0;
    const bool over = __builtin_sub_overflow(a.value, b.value, &v);
    return {v, a.fits && b.fits && !over};
  }
  constexpr Checked& operator*=(Checked o) { return *this = *this * o; }
  constexpr Checked& operator+=(Checked o) { return *this = *this + o; }
  constexpr bool at_most(int64_t limit) const { return fits && value <= limit; }
};
// Of bytes, as the parameters of sizes are int64.
constexpr Checked byte_count(size_t n) { return {static_cast<int64_t>(n), n <= INT64_MAX}; }

}  // namespace clew

// Images and the like continued beyond their borders.
// May include: base.
// Invariant: every element of the result is a copy of one element of the source.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace clew::kernels {

enum class Border : uint8_t { reflect, replicate, circular };

// A dimension, and how many elements come before and after it; negative numbers cut off.
struct PaddedDim {
  int64_t in = 1, left = 0, right = 0;

  int64_t out() const { return in + left + right; }
  // Where element k of the result comes from.
  int64_t source(Border border, int64_t k) const {
    const int64_t i = k - left;
    if (border == Border::replicate) return std::clamp<int64_t>(i, 0, in - 1);
    if (border == Border::reflect) return i < 0 ? -i : i >= in ? 2 * (in - 1) - i : i;
    // Circular padding repeats the part that negative padding leaves.
    const int64_t first = std::max<int64_t>(-left, 0);
    const int64_t kept = in - first - std::max<int64_t>(-right, 0);
    return ((i - first) % kept + kept) % kept + first;
  }
};

// Blocks of dims[0] x dims[1] x dims[2] units, which lie densely one after the other, as all of the
// result does. A unit is an element, or all channels of a point.
void continue_borders(char* to, const char* from, int64_t blocks, const PaddedDim (&dims)[3],
                      Border border, size_t unit);

}  // namespace clew::kernels

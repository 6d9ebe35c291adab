// Sorting many short lines side by side, a line in each lane of a vector.
// May include: base, kernels/reduce/reduce_lines.h, kernels/sort/sort_keys.h.
// Invariant: the order is that of sort_items(): by key, ties by position.
#pragma once
#include <algorithm>
#include <array>
#include <span>

#include "base/ndview.h"
#include "base/parallel.h"
#include "kernels/reduce/reduce_lines.h"
#include "kernels/sort/sort_keys.h"

namespace clew::kernels {

constexpr int64_t side_by_side_most = 256;  // elements of a line

// The exchanges that sort n items, side_by_side_most at most, whatever their order (Batcher's
// network; Knuth, The Art of Computer Programming, volume 3, algorithm 5.2.2M).
std::span<const Exchange> exchanges_for(int64_t n);

// A few lines in order: by their keys, and where those are equal by place.
struct SortedLines {
  alignas(64) int64_t words[side_by_side_most * side_by_side];
  alignas(64) int64_t places[side_by_side_most * side_by_side];  // where words are keys of 8 bytes

  // The place in its line of the i-th element in order.
  template <class U> int64_t place(int64_t i, int64_t lane) const {
    const int64_t at = i * side_by_side + lane;
    return sizeof(U) == 8 ? places[at] : static_cast<int64_t>(static_cast<uint32_t>(words[at]));
  }
  template <class U> U key(int64_t i, int64_t lane) const {
    const int64_t word = words[i * side_by_side + lane];
    if constexpr (sizeof(U) == 8)
      return static_cast<U>(word) ^ wide_top;
    else
      return static_cast<U>(static_cast<uint32_t>(word >> 32) ^ narrow_top);
  }

  // Loads the line from[0], from[step] ... of n elements.
  template <class T> void load(int64_t lane, const T* from, int64_t step, int64_t n, bool invert) {
    using U = key_t<T>;
    const auto flip = static_cast<U>(invert ? ~U(0) : U(0));
    int64_t* to = words + lane;
    for (int64_t i = 0; i < n; ++i, to += side_by_side) {
      const auto key = static_cast<U>(key_of(from[i * step]) ^ flip);
      if constexpr (sizeof(U) == 8) {
        *to = static_cast<int64_t>(key ^ wide_top);
        places[i * side_by_side + lane] = i;
      } else {
        const uint64_t high = static_cast<uint64_t>(uint32_t{key} ^ narrow_top) << 32;
        *to = static_cast<int64_t>(high | static_cast<uint64_t>(i));
      }
    }
  }

 private:
  // Words are compared as signed numbers, which more processors do.
  static constexpr uint64_t wide_top = uint64_t{1} << 63;
  static constexpr uint32_t narrow_top = uint32_t{1} << 31;
};

// Sorts all lines, or finds the first `wanted` elements in order of each, and calls
// each(sorted lines, lane, offsets of the lane's line). The source is the last of K operands.
// False, with nothing done, where the lines are too long or too few for this to pay.
template <class T, int K, class Each>
bool sort_side_by_side(const KeyTable& loops, const Lines<K>& lines, const T* source,
                       int64_t wanted, bool invert, Each&& each) {
  constexpr bool wide = sizeof(T) == 8;
  const int64_t n = lines.length[K - 1];
  if (n < 2 || n > side_by_side_most || lines.count < 4) return false;
  const bool some = !wide && wanted <= least_most;
  if (!some && wanted < n && n > side_by_side_most / 2) return false;  // others select faster
  const std::span<const Exchange> list = some ? std::span<const Exchange>() : exchanges_for(n);
  const int64_t groups = (lines.count + side_by_side - 1) / side_by_side;
  const int64_t grain = std::max<int64_t>(1, grain_default / 8 / (n * side_by_side));
  parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
    SortedLines sorted;
    std::array<int64_t, K> at[side_by_side];
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * side_by_side;
      const int64_t count = std::min<int64_t>(side_by_side, lines.count - first);
      const bool apart_alike =
          lines.run(first, count) == count;  // the usual case, without divisions
      at[0] = lines.place(first);
      for (int64_t lane = 0; lane < side_by_side; ++lane) {
        const int64_t own = lane < count ? lane : 0;
        if (lane > 0) at[lane] = apart_alike ? at[0] : lines.place(first + own);
        for (int k = 0; apart_alike && k < K; ++k) at[lane][k] += own * lines.spacing(k);
        sorted.load(lane, source + at[lane][K - 1], lines.step[K - 1], n, invert);
      }
      if (some)
        loops.least(sorted.words, n, wanted);
      else if (wide)
        loops.sort_wide(sorted.words, sorted.places, list.data(), list.size());
      else
        loops.sort(sorted.words, list.data(), list.size());
      for (int64_t lane = 0; lane < count; ++lane) each(sorted, lane, at[lane]);
    }
  });
  return true;
}

}  // namespace clew::kernels

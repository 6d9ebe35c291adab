// Sorting items by the digits of their keys.
// May include: base, kernels.
// Invariant: items of equal keys stay in order of position, however many threads there are.
#include "kernels/sort/sort_items.h"

namespace clew::kernels {
namespace {

// Below this many, counting bytes costs more than comparing items.
template <class It> constexpr int64_t few_items = 12 * sizeof(typename It::Key);
// By bytes from the lowest, counted together, skipping those in which all keys agree.
template <class It> It* sort_short(It* from, It* to, int64_t n) {
  constexpr int digits = sizeof(typename It::Key);
  uint32_t counts[digits][256] = {};
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < digits; ++d) ++counts[d][(from[i].key >> (8 * d)) & 255];
  }
  for (int d = 0; d < digits; ++d) {
    uint32_t* count = counts[d];
    if (count[(from[0].key >> (8 * d)) & 255] == n) continue;
    uint32_t at = 0;
    for (int b = 0; b < 256; ++b) at += std::exchange(count[b], at);
    for (int64_t i = 0; i < n; ++i) to[count[(from[i].key >> (8 * d)) & 255]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

// Digits of the keys that a pass sorts by, and how many there are.
struct Digits {
  int count, bits;
  explicit Digits(int width) {
    constexpr int widest = 11;
    count = (width + widest - 1) / widest;
    bits = count ? (width + count - 1) / count : 0;
  }
};

// Estimates from a sample how many of the highest digits distinguish nearly all keys.
template <class Key, class At> int telling_digits(Digits digits, int64_t n, At&& at) {
  if (digits.count <= 2) return digits.count;
  Key keys[4096];
  const int64_t sample = std::clamp<int64_t>(n / 64, 256, std::ssize(keys));
  for (int64_t i = 0; i < sample; ++i) keys[i] = at(n / sample * i).key;
  std::sort(keys, keys + sample);
  // With this many equal pairs in the sample, an item has about one other item with equal digits.
  const int64_t few = sample * sample / (2 * n);
  for (int count = 2; count < digits.count; ++count) {
    const int rest = (digits.count - count) * digits.bits;
    int64_t alike = 0;
    for (int64_t i = 1; i < sample; ++i)
      alike += keys[i] != keys[i - 1] && keys[i] >> rest == keys[i - 1] >> rest;
    if (alike <= few) return count;
  }
  return digits.count;
}

// One pass: at(i) for all i < n go to `to` in the order of a digit, as they come where it is equal.
// `elsewhere`: at() reads what another thread may change between the count and the move.
template <class It, bool elsewhere = false, class At>
void sort_by_digit(It* to, int64_t n, int64_t pieces, int shift, int bits, At&& at,
                   std::vector<typename It::Index>& counts) {
  using Count = typename It::Index;
  const auto buckets = size_t{1} << bits;
  auto digit = [shift, mask = buckets - 1](const It& item) {
    return static_cast<size_t>(item.key >> shift) & mask;
  };
  for_pieces(n, pieces, [&](int64_t piece, int64_t begin, int64_t end) {
    Count* count = counts.data() + static_cast<size_t>(piece) * buckets;
    std::fill_n(count, buckets, Count(0));
    for (int64_t i = begin; i < end; ++i) ++count[digit(at(i))];
  });
  Count place = 0;
  for (size_t b = 0; b < buckets; ++b) {
    for (size_t c = b; c < static_cast<size_t>(pieces) * buckets; c += buckets)
      place = static_cast<Count>(place + std::exchange(counts[c], place));
  }
  for_pieces(n, pieces, [&](int64_t piece, int64_t begin, int64_t end) {
    Count* next = counts.data() + static_cast<size_t>(piece) * buckets;
    for (int64_t i = begin; i < end; ++i) {
      const It item = at(i);
      const Count place = next[digit(item)]++;
      if (!elsewhere || static_cast<int64_t>(place) < n) to[place] = item;
    }
  });
}

// Sorts items whose keys agree above their `rest` lowest bits.
template <class It> void sort_alike(It* items, It* other, int64_t n, int rest) {
  if (std::is_sorted(items, items + n)) return;
  if (n < 256) {
    std::sort(items, items + n);
    return;
  }
  const Digits digits(rest);
  std::vector<typename It::Index> counts(size_t{1} << digits.bits);
  It *from = items, *to = other;
  for (int d = 0; d < digits.count; ++d) {
    sort_by_digit(
        to, n, 1, d * digits.bits, digits.bits, [from](int64_t i) { return from[i]; }, counts);
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, n, items);
}

// Sorts every run of items whose keys agree above their `rest` lowest bits.
template <class It> void sort_runs(It* items, It* other, int64_t n, int64_t pieces, int rest) {
  auto starts_run = [&](int64_t i) {
    return i == 0 || i >= n || items[i].key >> rest != items[i - 1].key >> rest;
  };
  std::vector<int64_t> edges;
  for (int64_t p = 0; p <= pieces; ++p) {
    int64_t edge = n * p / pieces;
    while (!starts_run(edge)) ++edge;
    edges.push_back(edge);
  }
  parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
    const int64_t end = edges[static_cast<size_t>(last)];
    for (int64_t i = edges[static_cast<size_t>(first)]; i < end;) {
      int64_t stop = i + 1;
      while (stop < end && !starts_run(stop)) ++stop;
      if (stop - i > 1) sort_alike(items + i, other + i, stop - i, rest);
      i = stop;
    }
  });
}

template <class It> auto loaded(const It* from) {
  return [from](int64_t i) { return from[i]; };
}
// Does the remaining passes by the digits above the `rest` lowest bits; the first `done` of them
// have been done.
template <class It>
const It* sort_on(It* from, It* to, int64_t n, int64_t pieces, Digits digits, int done, int rest,
                  std::vector<typename It::Index>& counts) {
  const int needed = digits.count - rest / std::max(digits.bits, 1);
  for (int d = done; d < needed; ++d) {
    sort_by_digit(to, n, pieces, rest + d * digits.bits, digits.bits, loaded(from), counts);
    std::swap(from, to);
  }
  if (rest) sort_runs(from, to, n, pieces, rest);
  return from;
}

}  // namespace

template <class It> const It* sort_items(It* room, int64_t n, typename It::Key most) {
  It *from = room, *to = room + n;
  if (n <= tiny_line) {
    sort_tiny(from, to, n);
    return to;
  }
  if (n < few_items<It>) {
    std::sort(from, from + n);
    return from;
  }
  if (n < short_line) return sort_short(from, to, n);
  const Digits digits(static_cast<int>(std::bit_width(most)));
  if (digits.count == 0) return from;
  const int64_t pieces = pieces_of(n);
  const int needed = telling_digits<typename It::Key>(digits, n, loaded(from));
  std::vector<typename It::Index> counts(static_cast<size_t>(pieces) << digits.bits);
  return sort_on(from, to, n, pieces, digits, 0, (digits.count - needed) * digits.bits, counts);
}

template <class It>
const It* sort_spanned(It* room, Keys<int64_t> keys, int64_t n, uint64_t low, uint32_t most) {
  auto at = [keys, low](int64_t i) -> It {
    const auto key = static_cast<uint32_t>(keys[i] - low);
    if constexpr (requires(It item) { item.index; })
      return {key, static_cast<uint32_t>(i)};
    else
      return {key};
  };
  const Digits digits(static_cast<int>(std::bit_width(most)));
  if (digits.count == 0) {
    for (int64_t i = 0; i < n; ++i) room[i] = at(i);
    return room;
  }
  const int64_t pieces = pieces_of(n);
  const int needed = telling_digits<uint32_t>(digits, n, at);
  const int rest = (digits.count - needed) * digits.bits;
  std::vector<uint32_t> counts(static_cast<size_t>(pieces) << digits.bits);
  sort_by_digit<It, true>(room, n, pieces, rest, digits.bits, at, counts);
  return sort_on(room, room + n, n, pieces, digits, 1, rest, counts);
}

using Short = Item<uint32_t, uint32_t>;
using Wide = Item<uint64_t, uint32_t>;
using ShortBare = Bare<uint32_t, uint32_t>;
using WideBare = Bare<uint64_t, uint32_t>;
using LongBare = Bare<uint64_t, int64_t>;
template const Short* sort_items(Short*, int64_t, uint32_t);
template const Wide* sort_items(Wide*, int64_t, uint64_t);
template const LongItem* sort_items(LongItem*, int64_t, uint64_t);
template const ShortBare* sort_items(ShortBare*, int64_t, uint32_t);
template const WideBare* sort_items(WideBare*, int64_t, uint64_t);
template const LongBare* sort_items(LongBare*, int64_t, uint64_t);
template const Short* sort_spanned(Short*, Keys<int64_t>, int64_t, uint64_t, uint32_t);
template const ShortBare* sort_spanned(ShortBare*, Keys<int64_t>, int64_t, uint64_t, uint32_t);

}  // namespace clew::kernels

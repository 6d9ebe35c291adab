// Keys with the order of their elements, and sorting or selecting among them on all threads.
// May include: base, kernels.
// Invariant: elements are compared as unsigned keys that have their order; ties are broken by
// position, so that no result depends on the thread count.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "kernels/ndview.h"
#include "kernels/sort_keys.h"

namespace clew::kernels {

template <class U, class I> struct Item {
  using Key = U;
  using Index = I;
  U key;
  I index;
  bool operator<(const Item& o) const { return key < o.key || (key == o.key && index < o.index); }
};

// Where nobody asks where an element stood.
template <class U, class I> struct Bare {
  using Key = U;
  using Index = I;  // what counts the elements
  U key;
  bool operator<(const Bare& o) const { return key < o.key; }
};

// Elements of a line by their keys, which are turned around for descending order.
template <class T> struct Keys {
  using U = key_t<T>;
  const T* from;
  int64_t step;
  bool invert;
  U operator[](int64_t i) const {
    U key = key_of(from[i * step]);
    return static_cast<U>(invert ? ~key : key);
  }
  // The element at a place whose key is low + key: a number with one key is not looked up again.
  T element(U key, U low, int64_t place) const {
    if constexpr (std::is_integral_v<T>) {
      const auto whole = static_cast<U>(low + key);
      return value_of<T>(static_cast<U>(invert ? ~whole : whole));
    } else {
      return from[place * step];
    }
  }
};

using SortTypes = RealNumericTypes;

// Calls body(Item<key, index> type, ...) with the dtype's key and an index type that n fits.
template <class F> void with_items(DType d, int64_t n, F&& body) {
  dispatch(d, SortTypes{}, [&]<class T>() {
    if (n <= std::numeric_limits<uint32_t>::max())
      body.template operator()<T, Item<key_t<T>, uint32_t>>();
    else
      body.template operator()<T, Item<key_t<T>, int64_t>>();
  });
}

// Bool is sorted as the byte it is.
inline NdView as_bytes(NdView v) {
  if (v.dtype == DType::Bool) v.dtype = DType::UInt8;
  return v;
}

// A line this long is worth all threads.
constexpr int64_t long_line = int64_t{1} << 16;

inline int64_t pieces_of(int64_t n) {
  if (omp_in_parallel()) return 1;
  return std::clamp<int64_t>(n / (long_line / 2), 1, num_threads());
}
// Calls f(piece, begin, end) for equal pieces of [0, n), each on a thread of its own.
template <class F> void for_pieces(int64_t n, int64_t pieces, F&& f) {
  parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) f(p, n * p / pieces, n * (p + 1) / pieces);
  });
}

// Lines below this are sorted on one thread, by bytes: their tables stay small.
constexpr int64_t short_line = 16384;

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

// How many of the digits, from the highest on, tell nearly all keys apart, judged by a sample.
template <class Key, class At> int telling_digits(Digits digits, int64_t n, At&& at) {
  if (digits.count <= 2) return digits.count;
  Key keys[4096];
  const int64_t sample = std::clamp<int64_t>(n / 64, 256, std::ssize(keys));
  for (int64_t i = 0; i < sample; ++i) keys[i] = at(n / sample * i).key;
  std::sort(keys, keys + sample);
  // So many pairs of the sample alike mean one other item beside each.
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
template <class It, class At>
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
      to[next[digit(item)]++] = item;
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

// The items at(0) ... at(n - 1), whose keys are at most `most` and which stand in order of
// position, sorted; they lie in `room`, which holds 2 n of them. Long lines go by digits from the
// lowest, as few as will do: those above the ones that hardly any two keys need are enough, for
// what is left to do is then little.
template <class It, class At>
const It* sorted_items(void* room, int64_t n, typename It::Key most, bool cheap, At&& at) {
  It *from = static_cast<It*>(room), *to = from + n;
  if (n < short_line) {
    for (int64_t i = 0; i < n; ++i) from[i] = at(i);
    if (n >= 256) return sort_short(from, to, n);
    std::sort(from, from + n);
    return from;
  }
  const int64_t pieces = pieces_of(n);
  const Digits digits(static_cast<int>(std::bit_width(most)));
  if (digits.count == 0) {
    for_pieces(n, pieces, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) from[i] = at(i);
    });
    return from;
  }
  const int needed = telling_digits<typename It::Key>(digits, n, at);
  const int rest = (digits.count - needed) * digits.bits;
  std::vector<typename It::Index> counts(static_cast<size_t>(pieces) << digits.bits);
  // Keys of numbers are made once, in vectors; those of integers are hardly more than read.
  int d = 0;
  if (!cheap) {
    for_pieces(n, pieces, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) from[i] = at(i);
    });
    std::swap(from, to);
  } else {
    sort_by_digit(to, n, pieces, rest, digits.bits, at, counts);
    d = 1;
  }
  for (; d < needed; ++d) {
    std::swap(from, to);
    sort_by_digit(
        to, n, pieces, rest + d * digits.bits, digits.bits, [from](int64_t i) { return from[i]; },
        counts);
  }
  if (rest) sort_runs(to, from, n, pieces, rest);
  return to;
}

template <class T, class It> void load_items(It* items, Keys<T> keys, int64_t n) {
  for (int64_t i = 0; i < n; ++i) items[i] = {keys[i], static_cast<typename It::Index>(i)};
}

// The least key of a line and how far above it the greatest is.
template <class T> std::pair<key_t<T>, key_t<T>> key_range(Keys<T> keys, int64_t n) {
  using U = key_t<T>;
  const int64_t pieces = pieces_of(n);
  std::vector<U> lows(static_cast<size_t>(pieces)), highs(static_cast<size_t>(pieces));
  for_pieces(n, pieces, [&](int64_t piece, int64_t begin, int64_t end) {
    U low = std::numeric_limits<U>::max(), high = 0;
    for (int64_t i = begin; i < end; ++i) {
      U key = keys[i];
      low = std::min(low, key);
      high = std::max(high, key);
    }
    lows[static_cast<size_t>(piece)] = low;
    highs[static_cast<size_t>(piece)] = high;
  });
  const U low = *std::min_element(lows.begin(), lows.end());
  return {low, static_cast<U>(*std::max_element(highs.begin(), highs.end()) - low)};
}

// Calls each(sorted items, low) once: low + an item's key is the element's key. `room` holds
// 2 n items with keys of T. Items are Item or Bare, with indices or counts I.
template <template <class, class> class ItemOf, class T, class I, class Each>
void with_sorted(Keys<T> keys, int64_t n, void* room, Each&& each) {
  using U = key_t<T>;
  U low = 0, most = std::numeric_limits<U>::max();
  if (n >= short_line) std::tie(low, most) = key_range(keys, n);
  auto run = [&]<class Key>(Key) {
    using It = ItemOf<Key, I>;
    const It* sorted = sorted_items<It>(room, n, static_cast<Key>(most), std::is_integral_v<T>,
                                        [keys, low](int64_t i) -> It {
                                          const auto key = static_cast<Key>(keys[i] - low);
                                          if constexpr (std::is_same_v<It, Bare<Key, I>>)
                                            return {key};
                                          else
                                            return {key, static_cast<I>(i)};
                                        });
    each(sorted, low);
  };
  // Wide integers mostly span little: half the bytes to move.
  if constexpr (sizeof(U) == 8) {
    if (most <= std::numeric_limits<uint32_t>::max()) return run(uint32_t{0});
  }
  run(U{0});
}

// The k-th smallest item (k from 0) goes to items[k] and the smaller ones, in no order, before it.
// Room for n items. Long lines are counted by their keys' leading bits first: only those in the
// k-th one's bucket are then compared.
template <class T, class It> void select_items(It* items, Keys<T> keys, int64_t n, int64_t k) {
  using U = key_t<T>;
  if (n < 4096) {
    load_items(items, keys, n);
    std::nth_element(items, items + k, items + n);
    return;
  }
  constexpr int drop = std::max(0, static_cast<int>(sizeof(U)) * 8 - 11);
  constexpr size_t buckets = size_t{1} << (sizeof(U) * 8 - drop);
  const int64_t pieces = pieces_of(n);
  std::vector<int64_t> counts(static_cast<size_t>(pieces) * buckets, 0);
  for_pieces(n, pieces, [&](int64_t piece, int64_t begin, int64_t end) {
    int64_t* count = counts.data() + static_cast<size_t>(piece) * buckets;
    for (int64_t i = begin; i < end; ++i) ++count[keys[i] >> drop];
  });
  int64_t below = 0, here = 0;
  size_t bucket = 0;
  for (;; ++bucket) {
    here = 0;
    for (size_t c = bucket; c < counts.size(); c += buckets) here += counts[c];
    if (below + here > k) break;
    below += here;
  }
  It *less = items, *equal = items + below;
  for (int64_t i = 0; i < n; ++i) {
    U key = keys[i];
    auto at = static_cast<size_t>(key >> drop);
    if (at > bucket) continue;
    *(at < bucket ? less++ : equal++) = {key, static_cast<typename It::Index>(i)};
  }
  std::nth_element(items + below, items + k, items + below + here);
}

}  // namespace clew::kernels

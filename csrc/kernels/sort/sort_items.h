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

#include "base/ndview.h"
#include "base/parallel.h"
#include "kernels/sort/sort_keys.h"

namespace clew::kernels {

template <class U, class I> struct Item {
  using Key = U;
  using Index = I;
  using Narrow = Item<uint32_t, I>;
  U key;
  I index;
  bool operator<(const Item& o) const { return key < o.key || (key == o.key && index < o.index); }
};

// An item without an index, for callers that do not need positions.
template <class U, class I> struct Bare {
  using Key = U;
  using Index = I;  // what counts the elements
  using Narrow = Bare<uint32_t, I>;
  U key;
  bool operator<(const Bare& o) const { return key < o.key; }
};

// Elements of a line by their keys, which are turned around for descending order.
template <class T> struct Keys {
  using Element = T;
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

// The same of neighbours in ascending order.
template <class T> struct PlainKeys {
  using Element = T;
  using U = key_t<T>;
  const T* from;
  U operator[](int64_t i) const { return key_of(from[i]); }
  T element(U key, U low, int64_t place) const {
    return Keys<T>{from, 1, false}.element(key, low, place);
  }
  operator Keys<T>() const { return {from, 1, false}; }
};

using SortTypes = RealNumericTypes;

// Keys of items are wide ones: the items of all dtypes are of few types.
template <class T>
using wide_key_t = std::conditional_t<(sizeof(key_t<T>) > 4), uint64_t, uint32_t>;
using LongItem = Item<uint64_t, int64_t>;  // of lines that 32 bits do not count

// Calls body<element, item>() with the dtype's types for a line of n.
template <class F> void with_items(DType d, int64_t n, F&& body) {
  dispatch(d, SortTypes{}, [&]<class T>() {
    if (n <= std::numeric_limits<uint32_t>::max())
      body.template operator()<T, Item<wide_key_t<T>, uint32_t>>();
    else
      body.template operator()<T, LongItem>();
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
  if (in_parallel()) return 1;
  return std::clamp<int64_t>(n / (long_line / 2), 1, num_threads());
}
// Calls f(piece, begin, end) for equal pieces of [0, n), each on a thread of its own.
template <class F> void for_pieces(int64_t n, int64_t pieces, F&& f) {
  if (pieces == 1 && n < long_line) return f(0, int64_t{0}, n);
  parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      if (n >= long_line) stop_point();
      f(p, n * p / pieces, n * (p + 1) / pieces);
    }
  });
}

// Lines below this are sorted on one thread, by bytes: their tables stay small.
constexpr int64_t short_line = 16384;

// Lines up to this long, and those of which a part is asked for up to the second length, are sorted
// by counting how many items go before each, without branches.
constexpr int64_t tiny_line = 48, tiny_selection = 24;
// n items in order of position to `to`, sorted.
template <class It> void sort_tiny(const It* from, It* to, int64_t n) {
  uint8_t before[tiny_line] = {};
  for (int64_t i = 1; i < n; ++i) {
    const auto key = from[i].key;
    int count = 0;
    for (int64_t j = 0; j < i; ++j) {
      const int stays = from[j].key <= key;
      count += stays;
      before[j] = static_cast<uint8_t>(before[j] + 1 - stays);
    }
    before[i] = static_cast<uint8_t>(count);
  }
  for (int64_t i = 0; i < n; ++i) to[before[i]] = from[i];
}

// Sorts the n items at `room`, which stand in order of position and whose keys are at most `most`;
// there is room for n more after them, and the result is in one of the two places. Long lines are
// sorted by digits from the lowest. Low digits that few pairs of keys need are skipped; the runs
// that still agree are sorted afterwards.
template <class It> const It* sort_items(It* room, int64_t n, typename It::Key most);
// The same for int64 keys from low to low + most; the first pass reads the keys directly instead of
// items made from them.
template <class It>
const It* sort_spanned(It* room, Keys<int64_t> keys, int64_t n, uint64_t low, uint32_t most);

// The least key of a line and how far above it the greatest is.
template <class K, class U = typename K::U> std::pair<U, U> key_range(K keys, int64_t n) {
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

// Fills items with the keys, less the smallest key, and with their places if the type keeps places.
template <class It, class K> void load_items(It* items, K keys, int64_t n, typename K::U low) {
  for_pieces(n, n < short_line ? 1 : pieces_of(n), [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto key = static_cast<typename It::Key>(static_cast<typename K::U>(keys[i] - low));
      if constexpr (requires { items->index; })
        items[i] = {key, static_cast<typename It::Index>(i)};
      else
        items[i] = {key};
    }
  });
}

// Calls each(sorted items, low) once: low + an item's key is the element's key. `room` holds
// 2 n items of type It, or of the same with narrower keys.
template <class It, class K, class Each>
void with_sorted(K keys, int64_t n, void* room, Each&& each) {
  using U = typename K::U;
  U low = 0, most = std::numeric_limits<U>::max();
  if (n >= short_line) std::tie(low, most) = key_range(keys, n);
  // Wide integers mostly span little: half the bytes to move.
  if constexpr (std::is_same_v<typename It::Key, uint64_t> &&
                std::is_same_v<typename It::Index, uint32_t>) {
    if (most <= std::numeric_limits<uint32_t>::max()) {
      using Narrow = typename It::Narrow;
      auto* items = static_cast<Narrow*>(room);
      const auto span = static_cast<uint32_t>(most);
      if constexpr (std::is_same_v<typename K::Element, int64_t>) {
        if (n >= short_line) return each(sort_spanned<Narrow>(items, keys, n, low, span), low);
      }
      load_items(items, keys, n, low);
      return each(sort_items(items, n, span), low);
    }
  }
  auto* items = static_cast<It*>(room);
  load_items(items, keys, n, low);
  each(sort_items(items, n, static_cast<typename It::Key>(most)), low);
}

// The k-th smallest item (k from 0) goes to items[k] and the smaller ones, in no order, before it.
// Room for n items, and for n more where the line is tiny, which is sorted. Long lines are counted
// by their keys' leading bits first: only those in the k-th one's bucket are then compared.
template <class T, class It> void select_items(It* items, Keys<T> keys, int64_t n, int64_t k) {
  using U = key_t<T>;
  if (n <= tiny_selection) {
    load_items(items + n, keys, n, key_t<T>(0));
    return sort_tiny(items + n, items, n);
  }
  if (n < 4096) {
    load_items(items, keys, n, key_t<T>(0));
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
  It *less = items, *equal = items + below, *const middle = equal, *const end = equal + here;
  for (int64_t i = 0; i < n; ++i) {
    U key = keys[i];
    auto at = static_cast<size_t>(key >> drop);
    if (at > bucket) continue;
    It*& to = at < bucket ? less : equal;
    if (to == (at < bucket ? middle : end)) break;
    *to++ = {key, static_cast<typename It::Index>(i)};
  }
  if (less != middle || equal != end) {  // another thread has changed elements since the count
    load_items(items, keys, n, key_t<T>(0));
    std::nth_element(items, items + k, items + n);
    return;
  }
  std::nth_element(middle, items + k, end);
}

}  // namespace clew::kernels

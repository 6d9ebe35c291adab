// Keys with the order of their elements, and sorting or selecting among them on all threads.
// May include: base, kernels.
// Invariant: elements are compared as unsigned keys that have their order; ties are broken by
// position, so that no result depends on the thread count.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "kernels/ndview.h"

namespace clew::kernels {

template <int Bytes> struct unsigned_of;
template <> struct unsigned_of<1> { using type = uint8_t; };
template <> struct unsigned_of<2> { using type = uint16_t; };
template <> struct unsigned_of<4> { using type = uint32_t; };
template <> struct unsigned_of<8> { using type = uint64_t; };
template <class T> using key_t = typename unsigned_of<sizeof(T)>::type;

template <class T>
constexpr key_t<T> infinity_bits = std::is_same_v<T, double>  ? key_t<T>(0x7ffull << 52)
                                   : std::is_same_v<T, float> ? key_t<T>(0xffu << 23)
                                   : std::is_same_v<T, bf16>  ? key_t<T>(0xffu << 7)
                                                              : key_t<T>(0x1fu << 10);

template <class T> inline key_t<T> key_of(T v) {
  using U = key_t<T>;
  constexpr U top = static_cast<U>(U(1) << (sizeof(T) * 8 - 1));
  if constexpr (std::is_unsigned_v<T>) {
    return v;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<U>(static_cast<U>(v) ^ top);
  } else {
    // Without branches, so that lines are turned into keys by vectors.
    constexpr U infinity = infinity_bits<T>;
    const U bits = std::bit_cast<U>(v), size = static_cast<U>(bits & ~top);
    const U key = static_cast<U>(bits & top ? ~bits : bits | top);
    const U number = size == 0 ? top : key;
    return size > infinity ? static_cast<U>(~U(0)) : number;
  }
}

template <class U, class I> struct Item {
  using Key = U;
  using Index = I;
  U key;
  I index;
  bool operator<(const Item& o) const { return key < o.key || (key == o.key && index < o.index); }
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
};

// Room for items, left uninitialised and kept from line to line.
class Room {
 public:
  template <class It> It* take(int64_t n) {
    size_t need = static_cast<size_t>(n) * sizeof(It);
    if (need > size_) {
      bytes_.reset();
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(need);
      size_ = need;
    }
    return reinterpret_cast<It*>(bytes_.get());
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
};

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

// Sorts items that stand in order of position and whose keys are at most `most`, by digits from
// the lowest, as few as will do; the result lies in one of the two places, which is returned.
template <class It> It* sort_items(It* from, It* to, int64_t n, typename It::Key most) {
  using Count = typename It::Index;
  if (n < 256) {
    std::sort(from, from + n);
    return from;
  }
  if (n < short_line) return sort_short(from, to, n);
  const int width = static_cast<int>(std::bit_width(most)), widest = 11;
  const int passes = (width + widest - 1) / widest;
  if (passes == 0) return from;
  const int bits = (width + passes - 1) / passes;
  const auto buckets = size_t{1} << bits;
  const int64_t pieces = pieces_of(n);
  std::vector<Count> counts(static_cast<size_t>(pieces) * buckets);
  for (int pass = 0; pass < passes; ++pass) {
    auto digit = [shift = pass * bits, mask = buckets - 1](const It& item) {
      return static_cast<size_t>(item.key >> shift) & mask;
    };
    for_pieces(n, pieces, [&](int64_t piece, int64_t begin, int64_t end) {
      Count* count = counts.data() + static_cast<size_t>(piece) * buckets;
      std::fill_n(count, buckets, Count(0));
      for (int64_t i = begin; i < end; ++i) ++count[digit(from[i])];
    });
    Count at = 0;
    for (size_t b = 0; b < buckets; ++b) {
      for (size_t c = b; c < counts.size(); c += buckets) {
        Count here = counts[c];
        counts[c] = at;
        at = static_cast<Count>(at + here);
      }
    }
    for_pieces(n, pieces, [&](int64_t piece, int64_t begin, int64_t end) {
      Count* place = counts.data() + static_cast<size_t>(piece) * buckets;
      for (int64_t i = begin; i < end; ++i) to[place[digit(from[i])]++] = from[i];
    });
    std::swap(from, to);
  }
  return from;
}

template <class T, class It> void load_items(It* items, Keys<T> keys, int64_t n) {
  for (int64_t i = 0; i < n; ++i) items[i] = {keys[i], static_cast<typename It::Index>(i)};
}

// Calls each(i, index of the i-th element in order) for all i, from several threads.
template <class T, class I, class Each>
void in_order(Keys<T> keys, int64_t n, Room& room, Each&& each) {
  using U = key_t<T>;
  if (n < short_line) {
    using It = Item<U, I>;
    It* items = room.take<It>(2 * n);
    load_items(items, keys, n);
    const It* sorted = sort_items(items, items + n, n, std::numeric_limits<U>::max());
    for (int64_t i = 0; i < n; ++i) each(i, static_cast<int64_t>(sorted[i].index));
    return;
  }
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
  const U most = static_cast<U>(*std::max_element(highs.begin(), highs.end()) - low);
  auto run = [&]<class Key>(Key) {
    using It = Item<Key, I>;
    It* items = room.take<It>(2 * n);
    for_pieces(n, pieces, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        items[i] = {static_cast<Key>(keys[i] - low), static_cast<I>(i)};
    });
    const It* sorted = sort_items(items, items + n, n, static_cast<Key>(most));
    for_pieces(n, pieces, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) each(i, static_cast<int64_t>(sorted[i].index));
    });
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

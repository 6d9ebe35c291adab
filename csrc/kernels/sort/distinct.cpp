// Distinct elements, found by marking them in a bit set or by sorting, and runs of equal rows.
// May include: base, kernels.
// Invariant: no result depends on the thread count.
#include "kernels/sort/distinct.h"

#include <atomic>
#include <numeric>

#include "base/long_work.h"
#include "base/read_once.h"
#include "kernels/sort/sort_items.h"

namespace clew::kernels {
namespace {

using Word = uint64_t;
constexpr int64_t word_bits = 64;

// Counts how often each of `count` places occurs among at(i), i < n. Where it is cheap, neighbours
// use separate counters: they often have the same place, and each addition would wait for the one
// before it. Places are clamped to the range, because another thread may be changing the elements.
template <class At> void count_places(int64_t* counts, int64_t count, int64_t n, At&& at) {
  constexpr int64_t ways = 4;
  const int64_t pieces = std::clamp<int64_t>(n / std::max<int64_t>(count, 1), 1, pieces_of(n));
  std::fill_n(counts, count, int64_t{0});
  if (ways * count > n) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t place = at(i);
      if (static_cast<uint64_t>(place) < static_cast<uint64_t>(count)) ++counts[place];
    }
    return;
  }
  const auto room = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
  std::vector<int64_t> apart(static_cast<size_t>(pieces * ways * room), 0);
  for_pieces(n, pieces, [&](int64_t piece, int64_t i, int64_t end) {
    int64_t* mine = apart.data() + piece * ways * room;
    const int64_t mask = room - 1;
    for (; i + ways <= end; i += ways)
      for (int64_t w = 0; w < ways; ++w) ++mine[w * room + (at(i + w) & mask)];
    for (; i < end; ++i) ++mine[at(i) & mask];
  });
  for (int64_t p = 0; p < pieces * ways; ++p)
    for (int64_t b = 0; b < count; ++b) counts[b] += apart[static_cast<size_t>(p * room + b)];
}

// Distinct integers of a small range: one bit for each possible value, and for each word the number
// of values before it.
template <class T> class Marked final : public DistinctElements {
  using U = key_t<T>;
  const T* from_;
  int64_t n_;
  U low_;
  size_t mask_;  // the set has room for all keys up to this, a power of two less one
  std::vector<Word> bits_;
  std::vector<int64_t> before_;

  // The key of an element, which is read once. An element that another thread has moved out of the
  // range is masked into it.
  static size_t key_in(const T& element, U low, size_t mask) {
    return static_cast<size_t>(static_cast<U>(key_of(read_once(element)) - low)) & mask;
  }
  int64_t place(const T& element) const {
    const size_t key = key_in(element, low_, mask_);
    const size_t word = key / word_bits;
    const Word lower = bits_[word] & ((Word{1} << key % word_bits) - 1);
    return before_[word] + std::popcount(lower);
  }

 public:
  // Whether a set is small beside the n elements whose keys span `most`.
  static bool suits(int64_t n, U most) { return most / 32 < static_cast<uint64_t>(n); }

  Marked(const T* from, int64_t n, U low, U most) : from_(from), n_(n), low_(low) {
    const auto words = static_cast<int64_t>(most / word_bits) + 1;
    const auto room = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(words)));
    mask_ = static_cast<size_t>(room * word_bits - 1);
    bits_.resize(static_cast<size_t>(room));
    // Sets of their own for all threads, as long as they are small beside the elements.
    const int64_t pieces = std::clamp<int64_t>(n / words / 2, 1, pieces_of(n));
    std::vector<Word> others(static_cast<size_t>((pieces - 1) * room));
    for_pieces(n, pieces, [&](int64_t piece, int64_t begin, int64_t end) {
      const size_t mask = mask_;
      const U least = low;
      Word* set = piece ? others.data() + (piece - 1) * room : bits_.data();
      for (int64_t i = begin; i < end; ++i) {
        const size_t key = key_in(from[i], least, mask);
        set[key / word_bits] |= Word{1} << key % word_bits;
      }
    });
    before_.reserve(static_cast<size_t>(room));
    for (int64_t w = 0; w < room; ++w) {
      Word& word = bits_[static_cast<size_t>(w)];
      for (int64_t p = 1; p < pieces; ++p) word |= others[static_cast<size_t>((p - 1) * room + w)];
      before_.push_back(count_);
      count_ += std::popcount(word);
    }
  }
  void write(void* values, int64_t* places, int64_t* counts) const override {
    const auto words = std::ssize(bits_);
    for_pieces(words, pieces_of(count_), [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t w = begin; w < end; ++w) {
        T* to = static_cast<T*>(values) + before_[static_cast<size_t>(w)];
        for (Word left = bits_[static_cast<size_t>(w)]; left; left &= left - 1) {
          const int64_t key = w * word_bits + std::countr_zero(left);
          *to++ = value_of<T>(static_cast<U>(low_ + static_cast<U>(key)));
        }
      }
    });
    if (places) {
      for_pieces(n_, pieces_of(n_), [&](int64_t, int64_t i, int64_t end) {
        for (; i < end; ++i) places[i] = place(from_[i]);
      });
    }
    if (counts) {
      count_places(counts, count_, n_,
                   [&](int64_t i) { return places ? places[i] : place(from_[i]); });
    }
  }
};

// Calls each(p, begin, end) for pieces of n sorted items and keeps where runs of equal ones begin.
template <class StartsRun> std::vector<int64_t> run_starts(int64_t n, StartsRun&& starts_run) {
  const int64_t pieces = pieces_of(n);
  std::vector<int64_t> before(static_cast<size_t>(pieces) + 1, 0);
  for_pieces(n, pieces, [&](int64_t piece, int64_t i, int64_t end) {
    int64_t found = i == 0 && i < end;  // the first item does
    for (i += found; i < end; ++i) found += starts_run(i);
    before[static_cast<size_t>(piece) + 1] = found;
  });
  std::partial_sum(before.begin(), before.end(), before.begin());
  std::vector<int64_t> starts(static_cast<size_t>(before.back()));
  for_pieces(n, pieces, [&](int64_t piece, int64_t i, int64_t end) {
    // Every place is written, and written over until a run starts: no branch to predict.
    auto to = static_cast<size_t>(before[static_cast<size_t>(piece)]);
    const auto stop = static_cast<size_t>(before[static_cast<size_t>(piece) + 1]);
    if (i == 0 && i < end) ++to, ++i;
    for (; to < stop && i < end; ++i) {
      starts[to] = i;
      to += starts_run(i);
    }
  });
  return starts;
}

// Whether item i, which is not the first, differs from the one before. Without the type of the
// elements: one loop serves all that are sorted by such items.
template <class It> struct NextKey {
  const It* sorted;
  typename It::Key nan;
  bool has_nan;
  bool operator()(int64_t i) const {
    const auto key = sorted[i].key;
    return key != sorted[i - 1].key || (has_nan && key == nan);
  }
};

// Distinct elements found by sorting. Integers are sorted without positions if those are not
// needed.
template <class T, class It> class Sorted final : public DistinctElements {
  using U = key_t<T>;
  static constexpr bool bare = !requires(It item) { item.index; };
  PlainKeys<T> keys_;
  int64_t n_;
  const It* sorted_;
  U low_;
  std::vector<int64_t> starts_;

  int64_t end_of_run(int64_t i) const {
    return i + 1 < count_ ? starts_[static_cast<size_t>(i) + 1] : n_;
  }

 public:
  Sorted(PlainKeys<T> keys, int64_t n, const It* sorted, U low)
      : keys_(keys), n_(n), sorted_(sorted), low_(low) {
    // All NaNs have the greatest key. Each of them is distinct.
    using Key = typename It::Key;
    const auto nan = static_cast<U>(~low);
    const bool has_nan = !std::is_integral_v<T> && nan <= std::numeric_limits<Key>::max();
    starts_ = run_starts(n, NextKey<It>{sorted, static_cast<Key>(nan), has_nan});
    count_ = std::ssize(starts_);
  }
  void write(void* values, int64_t* places, int64_t* counts) const override {
    for_pieces(count_, pieces_of(count_), [&](int64_t, int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const int64_t begin = starts_[static_cast<size_t>(i)], stop = end_of_run(i);
        int64_t place = 0;
        if constexpr (!bare) place = static_cast<int64_t>(sorted_[begin].index);
        static_cast<T*>(values)[i] = keys_.element(static_cast<U>(sorted_[begin].key), low_, place);
        if (counts) counts[i] = stop - begin;
        if constexpr (!bare) {
          for (int64_t k = begin; places && k < stop; ++k)
            if (static_cast<int64_t>(sorted_[k].index) < n_) places[sorted_[k].index] = i;
        }
      }
    });
  }
};

// Distinct elements in the given order: only equal neighbours are joined.
template <class T> class Consecutive final : public DistinctElements {
  const T* from_;
  int64_t n_;
  std::vector<int64_t> starts_;

 public:
  Consecutive(const T* from, int64_t n) : from_(from), n_(n) {
    starts_ = run_starts(n, [from](int64_t i) { return from[i] != from[i - 1]; });
    count_ = std::ssize(starts_);
  }
  void write(void* values, int64_t* places, int64_t* counts) const override {
    for_pieces(count_, pieces_of(count_), [&](int64_t, int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const auto at = static_cast<size_t>(i);
        const int64_t begin = starts_[at], stop = i + 1 < count_ ? starts_[at + 1] : n_;
        static_cast<T*>(values)[i] = from_[begin];
        if (counts) counts[i] = stop - begin;
        if (places) std::fill(places + begin, places + stop, i);
      }
    });
  }
};

template <class T> bool row_before(const char* a, const char* b, int64_t m) {
  auto *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
  for (int64_t i = 0; i < m; ++i) {
    const auto p = key_of(x[i]), q = key_of(y[i]);
    if (p != q) return p < q;
  }
  return false;
}
template <class T> bool row_differs(const char* a, const char* b, int64_t m) {
  auto *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
  for (int64_t i = 0; i < m; ++i)
    if (!(static_cast<compute_t<T>>(x[i]) == static_cast<compute_t<T>>(y[i]))) return true;
  return false;
}
// Type-erased comparisons of two rows, so that the sorting is compiled once.
struct RowTests {
  bool (*before)(const char* a, const char* b, int64_t m);
  bool (*differs)(const char* a, const char* b, int64_t m);
};

}  // namespace

size_t distinct_room(const NdView& elements, bool with_places) {
  size_t bytes = 0;
  const int64_t n = elements.sizes[0];
  with_items(as_bytes(elements).dtype, n, [&]<class T, class It>() {
    using Alone = Bare<typename It::Key, typename It::Index>;
    bytes = std::is_integral_v<T> && !with_places ? sizeof(Alone) : sizeof(It);
  });
  return 2 * static_cast<size_t>(n) * bytes;
}

std::unique_ptr<DistinctElements> distinct_elements(const NdView& elements, bool with_places,
                                                    void* room) {
  const LongWork work(elements.numel());
  const NdView v = as_bytes(elements);
  const int64_t n = v.sizes[0];
  std::unique_ptr<DistinctElements> found;
  with_items(v.dtype, n, [&]<class T, class It>() {
    const PlainKeys<T> keys{v.ptr<const T>()};
    auto keep = [&]<class Kept>(const Kept* sorted, key_t<T> low) {
      found = std::make_unique<Sorted<T, Kept>>(keys, n, sorted, low);
    };
    if constexpr (std::is_integral_v<T>) {
      const auto [low, most] = key_range(keys, n);
      if (Marked<T>::suits(n, most)) {
        found = std::make_unique<Marked<T>>(keys.from, n, low, most);
        return;
      }
      if (!with_places)
        return with_sorted<Bare<typename It::Key, typename It::Index>>(keys, n, room, keep);
    }
    with_sorted<It>(keys, n, room, keep);
  });
  return found;
}

std::unique_ptr<DistinctElements> consecutive_elements(const NdView& elements) {
  const LongWork work(elements.numel());
  std::unique_ptr<DistinctElements> found;
  auto look = [&]<class T>() {
    found = std::make_unique<Consecutive<T>>(elements.ptr<const T>(), elements.sizes[0]);
  };
  // Whole numbers are equal where their bits are.
  if (!dispatch(elements.dtype, FloatTypes{}, look)) {
    switch (itemsize(elements.dtype)) {
      case 1: look.template operator()<uint8_t>(); break;
      case 2: look.template operator()<uint16_t>(); break;
      case 4: look.template operator()<uint32_t>(); break;
      default: look.template operator()<uint64_t>(); break;
    }
  }
  return found;
}

void count_values(int64_t* counts, int64_t size, const int64_t* values, int64_t n) {
  const LongWork work(n);
  count_places(counts, size, n, [values](int64_t i) { return read_once(values[i]); });
}

std::vector<int64_t> equal_runs(const NdView& rows, int64_t* order, bool sorted) {
  const LongWork work(rows.numel());
  const NdView v = as_bytes(rows);
  const int64_t n = v.sizes[0], m = v.sizes[1];
  const int64_t bytes = m * static_cast<int64_t>(itemsize(v.dtype));
  RowTests tests{};
  dispatch(v.dtype, SortTypes{}, [&]<class T>() { tests = {row_before<T>, row_differs<T>}; });
  std::iota(order, order + n, int64_t{0});
  auto row = [&](int64_t r) { return v.data + r * bytes; };
  if (sorted) {
    std::stable_sort(order, order + n,
                     [&](int64_t a, int64_t b) { return tests.before(row(a), row(b), m); });
  }
  return run_starts(n,
                    [&](int64_t i) { return tests.differs(row(order[i]), row(order[i - 1]), m); });
}

}  // namespace clew::kernels

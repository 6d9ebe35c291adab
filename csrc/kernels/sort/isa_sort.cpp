// Loops over the keys of elements that are sorted, compiled once for each instruction set.
// May include: kernels.
// Invariant: keys are those of key_of().
#include <array>
#include <limits>
#include <utility>

#include "kernels/core/lanes.h"
#include "kernels/sort/sort_keys.h"

namespace clew::kernels::CLEW_ISA {

namespace {

template <class T> void turn(const T* from, int64_t n, key_t<T> flip, key_t<T>* keys) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) keys[i] = static_cast<key_t<T>>(key_at(from + i) ^ flip);
}
template <class T> void lower(const T* from, int64_t n, key_t<T> flip, key_t<T>* minima) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const auto key = static_cast<key_t<T>>(key_at(from + i) ^ flip);
    minima[i] = key < minima[i] ? key : minima[i];
  }
}
template <class U> int64_t below(const U* keys, int64_t n, U bound, uint32_t* places) {
  constexpr int64_t run = 32;  // tested together: usually none of them is
  int64_t count = 0, i = 0;
  auto one = [&](int64_t q) {
    places[count] = static_cast<uint32_t>(q);
    count += keys[q] <= bound;
  };
  for (; i + run <= n; i += run) {
    int hits = 0;
    for (int64_t q = i; q < i + run; ++q) hits |= keys[q] <= bound;
    if (!hits) continue;
    for (int64_t q = i; q < i + run; ++q) one(q);
  }
  for (; i < n; ++i) one(i);
  return count;
}
// A word of each of some lines; of all in turn.
using Words = Lanes_t<int64_t>;
constexpr int64_t lines = lane_count<int64_t>;
static_assert(side_by_side % lines == 0);

void sort(int64_t* words, const Exchange* list, size_t count) {
  for (int64_t line = 0; line < side_by_side; line += lines) {
    for (size_t e = 0; e < count; ++e) {
      int64_t* low = words + list[e].low * side_by_side + line;
      int64_t* high = words + list[e].high * side_by_side + line;
      const Words a = load(low), b = load(high);
      store<int64_t>(low, a < b ? a : b);
      store<int64_t>(high, a < b ? b : a);
    }
  }
}
void sort_wide(int64_t* keys, int64_t* places, const Exchange* list, size_t count) {
  for (int64_t line = 0; line < side_by_side; line += lines) {
    for (size_t e = 0; e < count; ++e) {
      const int64_t low = list[e].low * side_by_side + line;
      const int64_t high = list[e].high * side_by_side + line;
      const Words a = load(keys + low), b = load(keys + high);
      const Words i = load(places + low), j = load(places + high);
      const Words stay = (a < b) | ((a == b) & (i < j));
      store<int64_t>(keys + low, stay ? a : b);
      store<int64_t>(keys + high, stay ? b : a);
      store<int64_t>(places + low, stay ? i : j);
      store<int64_t>(places + high, stay ? j : i);
    }
  }
}
// Each word is passed along the k smallest so far, and left where it is one.
template <int k> void least_of(int64_t* words, int64_t n) {
  for (int64_t line = 0; line < side_by_side; line += lines) {
    Words top[k];
    for (Words& t : top) t = spread(std::numeric_limits<int64_t>::max());
    for (int64_t i = 0; i < n; ++i) {
      Words w = load(words + i * side_by_side + line);
      for (Words& t : top) {
        const Words smaller = w < t ? w : t;
        w = w < t ? t : w;
        t = smaller;
      }
    }
    for (int64_t i = 0; i < k; ++i) store(words + i * side_by_side + line, top[i]);
  }
}
void least(int64_t* words, int64_t n, int64_t k) {
  static constexpr auto all = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array<void (*)(int64_t*, int64_t), least_most>{least_of<i + 1>...};
  }
  (std::make_integer_sequence<int, least_most>());
  all[static_cast<size_t>(k - 1)](words, n);
}
template <class T> constexpr KeyLoops<T> loops() { return {turn<T>, lower<T>, below<key_t<T>>}; }

}  // namespace

extern const KeyTable key_table;
const KeyTable key_table = {loops<float>(),
                            loops<double>(),
                            loops<int32_t>(),
                            loops<int64_t>(),
                            loops<f16>(),
                            loops<bf16>(),
                            sort,
                            sort_wide,
                            least};

}  // namespace clew::kernels::CLEW_ISA

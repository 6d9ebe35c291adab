// Loops over the keys of elements that are sorted, compiled once for each instruction set.
// May include: kernels.
// Invariant: keys are those of key_of().
#include "kernels/sort/sort_keys.h"

namespace clew::kernels::CLEW_ISA {

namespace {

template <class T> void turn(const T* from, int64_t n, key_t<T> flip, key_t<T>* keys) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) keys[i] = static_cast<key_t<T>>(key_of(from[i]) ^ flip);
}
template <class T> void lower(const T* from, int64_t n, key_t<T> flip, key_t<T>* minima) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const auto key = static_cast<key_t<T>>(key_of(from[i]) ^ flip);
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
template <class T> constexpr KeyLoops<T> loops() { return {turn<T>, lower<T>, below<key_t<T>>}; }

}  // namespace

extern const KeyTable key_table;
const KeyTable key_table = {loops<float>(), loops<double>(), loops<int32_t>(), loops<int64_t>()};

}  // namespace clew::kernels::CLEW_ISA

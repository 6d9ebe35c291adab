// Loops of functions that have another form for each kind of argument: elements of one kind are
// brought together, so that vectors are of one kind and nothing is computed twice.
// May include: base, kernels.
// Invariant: as in pointwise_loops.h; an element's result does not depend on those beside it.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/elementwise/pointwise_loops.h"

namespace clew::kernels {
namespace {

constexpr int64_t sorted_block = 512;

// F::kind(x) is the kind of x, below F::kinds, and F::of<kind>(x) is the function's value; both
// take doubles. Kind 0 must be harmless for any number.
template <class F, int kind, class T>
[[gnu::flatten]] void rows_of_kind(const T* x, T* out, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(F::template of<kind>(static_cast<double>(x[i])));
}
// The elements of kinds that are present, from `kind` on.
template <class F, int kind, class T>
void rows_of_each_kind(const T* x, T* out, const uint8_t* kinds, unsigned present, int64_t n) {
  if constexpr (kind < F::kinds) {
    if (present == 1u << kind) return rows_of_kind<F, kind>(x, out, n);
    if (present & 1u << kind) {
      int16_t at[sorted_block];
      alignas(64) T given[sorted_block] = {}, made[sorted_block];
      int64_t count = 0;
      for (int64_t i = 0; i < n; ++i) {
        at[count] = static_cast<int16_t>(i);
        count += kinds[i] == kind;
      }
      for (int64_t k = 0; k < count; ++k) given[k] = x[at[k]];
      rows_of_kind<F, kind>(given, made, count);
      for (int64_t k = 0; k < count; ++k) out[at[k]] = made[k];
    }
    rows_of_each_kind<F, kind + 1>(x, out, kinds, present, n);
  }
}
struct Kinds {
  unsigned present;
  int64_t first;  // how many are of kind 0
};
template <class T, class F> [[gnu::flatten]] Kinds kinds_of(const T* x, uint8_t* kinds, int64_t n) {
  int present = 0, first = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int kind = F::kind(static_cast<double>(x[i]));
    kinds[i] = static_cast<uint8_t>(kind);
    present |= 1 << kind;
    first += kind == 0;
  }
  return {static_cast<unsigned>(present), first};
}
template <class T, class F>
void sorted_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  if (s[0] != sizeof(T) || s[1] != sizeof(T))
    return block_rows<1, T, T, T>(sorted_loop<T, F>, p, s, n, params);
  auto* out = reinterpret_cast<T*>(p[0]);
  auto* x = reinterpret_cast<const T*>(p[1]);
  for (int64_t begin = 0; begin < n; begin += sorted_block) {
    const int64_t count = std::min(sorted_block, n - begin);
    uint8_t kinds[sorted_block];
    const Kinds found = kinds_of<T, F>(x + begin, kinds, count);
    if (2 * found.first > count && x != out) {  // the others are written over
      rows_of_kind<F, 0>(x + begin, out + begin, count);
      if (found.present != 1)
        rows_of_each_kind<F, 1>(x + begin, out + begin, kinds, found.present, count);
    } else {
      rows_of_each_kind<F, 0>(x + begin, out + begin, kinds, found.present, count);
    }
  }
}
template <class F> void sorted(LoopTable& table, F) {
  set_loops<1, sorted_loop<float, F>, sorted_loop<double, F>>(table);
}

}  // namespace
}  // namespace clew::kernels

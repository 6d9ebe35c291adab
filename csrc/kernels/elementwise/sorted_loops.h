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
// take doubles. Kind 0 must be harmless for any number. Out of line: each form is compiled once.
template <class F, int kind>
[[gnu::flatten, gnu::noinline]] void rows_of_kind(const double* x, double* out, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = F::template of<kind>(x[i]);
}
// The elements of kinds that are present, from `kind` on.
template <class F, int kind>
void rows_of_each_kind(const double* x, double* out, const uint8_t* kinds, unsigned present,
                       int64_t n) {
  if constexpr (kind < F::kinds) {
    if (present == 1u << kind) return rows_of_kind<F, kind>(x, out, n);
    if (present & 1u << kind) {
      int16_t at[sorted_block];
      alignas(64) double given[sorted_block] = {}, made[sorted_block];
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
template <class F> [[gnu::flatten]] Kinds kinds_of(const double* x, uint8_t* kinds, int64_t n) {
  int present = 0, first = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int kind = F::kind(x[i]);
    kinds[i] = static_cast<uint8_t>(kind);
    present |= 1 << kind;
    first += kind == 0;
  }
  return {static_cast<unsigned>(present), first};
}
// At most sorted_block elements.
template <class F> [[gnu::noinline]] void sorted_rows(const double* x, double* out, int64_t n) {
  uint8_t kinds[sorted_block];
  const Kinds found = kinds_of<F>(x, kinds, n);
  if (2 * found.first > n && x != out) {  // the others are written over
    rows_of_kind<F, 0>(x, out, n);
    if (found.present != 1) rows_of_each_kind<F, 1>(x, out, kinds, found.present, n);
  } else {
    rows_of_each_kind<F, 0>(x, out, kinds, found.present, n);
  }
}
template <class T, class F>
void sorted_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  if (s[0] != sizeof(T) || s[1] != sizeof(T))
    return block_rows<1, T, T, T>(sorted_loop<T, F>, p, s, n, params);
  auto* out = reinterpret_cast<T*>(p[0]);
  auto* x = reinterpret_cast<const T*>(p[1]);
  for (int64_t begin = 0; begin < n; begin += sorted_block) {
    const int64_t count = std::min(sorted_block, n - begin);
    if constexpr (std::is_same_v<T, double>) {
      sorted_rows<F>(x + begin, out + begin, count);
    } else {
      alignas(64) double wide[sorted_block], made[sorted_block];
      std::copy_n(x + begin, count, wide);
      sorted_rows<F>(wide, made, count);
      for (int64_t i = 0; i < count; ++i) out[begin + i] = static_cast<T>(made[i]);
    }
  }
}
template <class F> void sorted(LoopTable& table, F) {
  set_loops<1, sorted_loop<float, F>, sorted_loop<double, F>>(table);
}

}  // namespace
}  // namespace clew::kernels

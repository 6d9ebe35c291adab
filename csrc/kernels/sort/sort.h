// Sorting along one axis and what sorting answers: top k, order statistics.
// May include: base, kernels.
// Invariant: NaN is greater than every number and equal to NaN, -0 equals 0; equal elements keep
// their order.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

// Real dtypes throughout. `indices` are int64; values have src's dtype.
void sort(const NdView& values, const NdView& indices, const NdView& src, int dim, bool descending);
// The k largest (or smallest), k being the length of the results along dim; in order when `sorted`.
void topk(const NdView& values, const NdView& indices, const NdView& src, int dim, bool largest,
          bool sorted);

// One element of each line; values and indices have size 1 along dim.
enum class Pick : uint8_t {
  kth,         // the k-th smallest, k from 0
  median,      // the lower median, NaN when there is one
  nan_median,  // the lower median of the numbers
  mode,        // the smallest of the most frequent, its last index
};
void pick(const NdView& values, const NdView& indices, const NdView& src, int dim, Pick what,
          int64_t k);

}  // namespace clew::kernels

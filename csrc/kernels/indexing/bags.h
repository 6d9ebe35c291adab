// Sums of rows of a table, bag by bag.
// May include: base, kernels.
// Invariant: the order of a bag's rows is the order they are added in, whatever the thread count.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

// Bag b names the rows indices[offsets[b]] ... indices[offsets[b + 1] - 1], each with a factor
// (null: all are one), and is divided by their number where it is a mean. Indices are in range,
// offsets rise; all tables are contiguous and of one inexact dtype, `factors` too.
struct Bags {
  const int64_t* indices;
  const int64_t* offsets;
  int64_t count;
  const char* factors;
  bool mean;
};
// out[b, :] = the sum of b's rows of `table`.
void bag_sums(const NdView& out, const NdView& table, const Bags& bags);
// table[i, :] += what the gradient of the sums is for it.
void bag_spread(const NdView& table, const NdView& grad, const Bags& bags);
// out[k] = the gradient of the factor of the k-th index.
void bag_dots(char* out, const NdView& table, const NdView& grad, const Bags& bags);

}  // namespace clew::kernels

// Products of sparse matrices, row by row.
// May include: base, kernels.
// Invariant: the order of a row's elements is the order they are added in, whatever the thread
// count; no index is trusted, since another thread may write it meanwhile.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

// Where a sparse matrix has elements: row r those crow[r] ... crow[r + 1] - 1, in the columns that
// col names. Both are contiguous, of int32 or of int64.
struct Pattern {
  NdView crow, col;
  int64_t rows() const { return crow.sizes[0] - 1; }
  int64_t count() const { return col.sizes[0]; }
};
// These return the first row whose places do not fit, or -1. Tables are contiguous, of one inexact
// dtype.
// out[r, :] = the sum over r's elements of values[e] * dense[col[e], :].
int64_t csr_product(const NdView& out, const Pattern& p, const NdView& values, const NdView& dense);
// out[e] = the dot product of a[row of e, :] and b[col[e], :].
int64_t csr_dots(const NdView& out, const Pattern& p, const NdView& a, const NdView& b);
// The pattern of the transposed matrix, as one int64 array: where each of its `columns` rows
// begins, its column indices, and for each of its elements the position in p.
int64_t csr_mirror(int64_t* out, const Pattern& p, int64_t columns);

}  // namespace clew::kernels

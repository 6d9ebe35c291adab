// Loops that gather and scatter: cat's rows, gather, scatter, advanced indexing, nonzero,
// searching.
// May include: base, base/ndview.h.
// Invariant: no index that is out of range is followed; writes to one place happen in the order
// of the indices, however many threads.
#pragma once
#include <vector>

#include "base/ndview.h"

namespace clew::kernels {

// dst[...] += src[...], equal sizes and dtypes; dst may overlap itself (its elements are then
// visited in row-major order).
void accumulate(const NdView& dst, const NdView& src);
// dst[...] /= src[...], equal sizes and dtypes, inexact.
void divide_by(const NdView& dst, const NdView& src);
// Of contiguous x, `each` elements at a time are divided by a count, after the last of `size` by
// the first again; integers round down, elements with count 0 stay.
void divide_by_counts(const NdView& x, const int64_t* counts, int64_t size, int64_t each);

// Every row of `out` is made of bytes[k] bytes from the rows of src[k], one after another; those
// lie steps[k] bytes apart.
void cat_rows(char* out, const char* const* src, const int64_t* bytes, const int64_t* steps,
              int count, int64_t rows);

// The first index, in row-major order, that is out of range, if there is one.
struct BadIndex {
  int64_t at = -1;
  int64_t value = 0;
  explicit operator bool() const { return at >= 0; }
};
// out[k] += stride * index[k] with negative indices counted from the end of `size`, k running
// through the int64 `index` in row-major order. Nothing is promised of out where one is bad.
[[nodiscard]] BadIndex add_offsets(int64_t* out, const NdView& index, int64_t size, int64_t stride);
// out[k] = index[k], none of which may be negative.
[[nodiscard]] BadIndex copy_indices(int64_t* out, const NdView& index, int64_t size);

enum class Combine : uint8_t { Assign, Add, Multiply, Max, Min };

// The four below read each index once and follow it only if it is in range; false where one was
// not, with the result half written then: another thread may write to the indices meanwhile.

// out[.., k, ..] = src[.., places[k], ..] where a place is `scale` elements: sizes are equal,
// `axis` is where k stands and src's stride there is ignored; places are below `total`.
[[nodiscard]] bool take_at(const NdView& out, const NdView& src, int axis, const int64_t* places,
                           int64_t scale, int64_t total);
// dst[.., places[k], ..] = (or +=, *=, max=, min=) values[.., k, ..].
[[nodiscard]] bool put_at(const NdView& dst, const NdView& values, int axis, const int64_t* places,
                          int64_t scale, int64_t total, Combine combine);

// out[.., j, ..] = src[.., index[.., j, ..], ..] along dim; out has index's sizes. All have at
// least one dimension.
[[nodiscard]] bool gather(const NdView& out, const NdView& src, const NdView& index, int dim);
// dst[.., index[.., j, ..], ..] = (or +=, *=, max=, min=) src[.., j, ..]; src has index's sizes.
// With a `base`, dst is a copy of it first (copies_rows() must hold).
[[nodiscard]] bool scatter(const NdView& dst, const NdView& src, const NdView& index, int dim,
                           Combine combine, const NdView* base);
// Whether scatter() can copy `base` to dst row by row, just before it writes to the row.
bool copies_rows(const NdView& dst, const NdView& base, const NdView& index, int dim);
// First position (row-major) whose index is outside [-size, size), or -1; negative ones are allowed
// only when asked for.
int64_t find_bad_index(const NdView& index, int64_t size, bool negative);
// The k-th index in row-major order.
int64_t index_value(const NdView& index, int64_t k);

// The nonzero elements before each stretch of an array, in row-major order, and at the end all.
using NonzeroCounts = std::vector<int64_t>;
NonzeroCounts count_nonzero(const NdView& x);
// Coordinates of nonzero elements: out[i * row_step + d * column_step].
void nonzero(const NdView& x, const NonzeroCounts& counts, int64_t* out, int64_t row_step,
             int64_t column_step);
// Row-major positions of nonzero elements.
void nonzero_flat(const NdView& x, const NonzeroCounts& counts, int64_t* out);

// For each value the first place in its sorted row (row r of `sorted` and of `values`, or the one
// row of `sorted`) where it could be put in: before equals, or after them when `right`. `sorter`,
// when given, orders the rows. All contiguous.
void search_sorted(const NdView& sorted, const int64_t* sorter, const NdView& values,
                   const NdView& out, bool right);

}  // namespace clew::kernels

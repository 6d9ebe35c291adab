// RowWise: how a call goes over the first dim of its inputs.
// May include: graph.
// Invariant: what a rule promises holds for any number of rows of the same sizes.
#pragma once
#include "graph/op.h"

namespace clew {

// A row is the elements at one place of the first dim.
struct RowWise {
  enum class Makes : uint8_t {
    nothing,  // the call does not go row by row
    rows,     // of each row by itself, one row of each result or as many for each
    sum,      // the sum of all rows, or of all elements
    mean,
  };
  Makes makes = Makes::nothing;
  uint32_t inputs = 0;  // a bit for each that has rows
  // Whether the others may be different ones for each sample: they are broadcast to its rows.
  bool broadcasts = false;
  // The input whose numbers, none of them negative, count rows of in[0]; -1: none does.
  int8_t index = -1;
  // The input that has the results' number of rows; -1: the first that has rows.
  int8_t counted = -1;
};
constexpr RowWise no_rows = {};

// How the call goes over rows. `attrs` is a copy of its attributes: what counts the rows there
// becomes `rows`. Samples of different numbers of rows can run as one call on all of them where the
// rule gives the same for each.
RowWise rows_by_rule(const Call& c, void* attrs, int64_t rows);

}  // namespace clew

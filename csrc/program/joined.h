// Calls that work row by row, of samples with different numbers of rows: as one call on all rows.
// May include: base, tensor, graph, program.
// Invariant: calls of one joined kind differ in nothing but the number of rows.
#pragma once
#include <vector>

#include "graph/rows.h"
#include "program/batching.h"

namespace clew::program {

// The call's operands; a result that waits is stood for by a tensor of its shape without bytes.
std::vector<Tensor> operands_of(const Gathered& c, std::span<const Given> givens,
                                std::span<const Value> values);
// What calls have in common whose rows may be joined.
struct JoinedKind {
  uint64_t hash = 0;        // 0 where this one's may not
  uint32_t inputs = 0;      // those that have rows
  bool broadcasts = false;  // the others need not be the same for all
};
JoinedKind joined_kind(const Gathered& c, std::span<const Given> givens,
                       std::span<const Value> values);

// The rows of samples that lie one after the other in `rows`, reduced by `op` for each, as a tensor
// with a row for each sample. `op` is the sum or mean of the first dim, or of all.
Tensor reduce_rows(const OpDef& op, const void* attrs, const Tensor& rows,
                   std::span<const int64_t> counts, bool mean);

}  // namespace clew::program

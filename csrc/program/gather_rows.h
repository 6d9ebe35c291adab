// Joins rows of several tensors as one recorded operation.
// May include: base, tensor, graph.
// Invariant: its gradient is added row by row to what others have put into the gradients of its
// parts, so that many gathers from one part cost no more than their rows.
#pragma once
#include <vector>

#include "graph/node.h"

namespace clew::program {

struct RowOf {
  uint32_t part;
  int32_t row;
};
// The number of inputs of one node for which the engine can tell which already have their
// gradients.
constexpr int most_parts = 64;
// parts: at most so many, each of one row's sizes behind a first dim, or just one
// row (`alone`). All of one dtype.
Tensor gather_rows(std::span<const Tensor> parts, const std::vector<bool>& alone,
                   std::vector<RowOf> rows);

}  // namespace clew::program

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

// Takes rows of any number of tensors, which have numbers below `count`.
class RowGatherer {
  std::vector<int32_t>& part_of_;  // -1 for each number, but while rows are taken
  std::vector<int32_t> used_;
  Tensors parts_, pieces_;
  std::vector<bool> alone_;
  std::vector<RowOf> rows_;
  int32_t last_ = -1;
  uint32_t part_ = 0;

  void finish();

 public:
  RowGatherer(std::vector<int32_t>& part_of, size_t count) : part_of_(part_of) {
    part_of_.resize(count, -1);
  }
  ~RowGatherer() {
    for (const int32_t n : used_) part_of_[static_cast<size_t>(n)] = -1;
  }
  RowGatherer(const RowGatherer&) = delete;
  // `part()` is the tensor, or one row of it where it is `alone`.
  template <class Part>
  void add(int32_t number, Part&& part, bool alone, int32_t row, int32_t rows) {
    if (number != last_) {
      int32_t& known = part_of_[static_cast<size_t>(number)];
      if (known < 0) {
        if (parts_.size() == most_parts) finish();
        known = parts_.size();
        used_.push_back(number);
        parts_.push_back(part());
        alone_.push_back(alone);
      }
      last_ = number;
      part_ = static_cast<uint32_t>(known);
    }
    for (int32_t k = 0; k < rows; ++k) rows_.push_back({part_, row + k});
  }
  Tensor join();
};

}  // namespace clew::program

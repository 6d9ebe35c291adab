// Distinct elements of a vector, distinct rows of a matrix.
// May include: base, kernels.
// Invariant: NaN differs from NaN here, as == has it; -0 equals 0.
#pragma once
#include <memory>
#include <vector>

#include "base/ndview.h"

namespace clew::kernels {

// What was found among elements: their number is known before there is room for them.
class DistinctElements {
 public:
  virtual ~DistinctElements() = default;
  int64_t count() const { return count_; }
  // The distinct elements in rising order, for each element of the input its place among them, and
  // how often each stands there. The latter two may be null.
  virtual void write(void* values, int64_t* places, int64_t* counts) const = 0;

 protected:
  int64_t count_ = 0;
};

// Looks for them among contiguous elements, which must stay until they are written; `with_places`
// if those will be asked for. `room` has distinct_room() bytes and must stay as long.
std::unique_ptr<DistinctElements> distinct_elements(const NdView& elements, bool with_places,
                                                    void* room);
size_t distinct_room(const NdView& elements, bool with_places);

// The same without sorting, where only neighbours are compared.
std::unique_ptr<DistinctElements> consecutive_elements(const NdView& elements);

// counts[v] = how often v stands among n integers from 0 to size - 1.
void count_values(int64_t* counts, int64_t size, const int64_t* values, int64_t n);

// Finds equal rows of a contiguous [n, m] operand. `order` (n entries) receives the row numbers,
// sorted by content when `sorted` and in place otherwise; returned are the positions in `order`
// where a run of equal rows begins.
std::vector<int64_t> equal_runs(const NdView& rows, int64_t* order, bool sorted);

}  // namespace clew::kernels

// How operations of the views family describe the views that they return.
// May include: ops/ops.h.
// Invariant: a view without elements keeps its offset inside the storage.
#pragma once
#include <vector>

#include "ops/ops.h"

namespace clew {

using Specs = std::vector<ViewSpec>;

inline void add_spec(Specs& out, Dims sizes, Dims strides, int64_t offset = 0) {
  ViewSpec& s = out.emplace_back();
  s.sizes = std::move(sizes);
  s.strides = std::move(strides);
  s.offset = offset;
}

// `length` indices of `dim`, each `step` after the one before.
inline void add_part(Specs& out, const Tensor& x, int dim, int64_t start, int64_t length,
                     int64_t step) {
  ViewSpec& s = out.emplace_back();
  s.sizes = x.sizes();
  s.strides = x.strides();
  s.offset = length ? start * s.strides[dim] : 0;
  s.sizes[dim] = length;
  s.strides[dim] *= step;
}

}  // namespace clew

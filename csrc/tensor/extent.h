// How far sizes and strides reach.
// May include: base.
// Invariant: what does not fit says so (base/checked.h).
#pragma once
#include "base/checked.h"
#include "base/smallvec.h"

namespace clew {

// Number of elements from the first to one past the last that sizes and strides can reach; strides
// of 0 and above.
Checked span_of(const Dims& sizes, const Dims& strides);

}  // namespace clew

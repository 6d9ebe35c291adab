// Checks that a 0-d value which an operation writes into a tensor fits the tensor's dtype.
// May include: graph, tensor.
// Invariant: the value is not read if it is pending, batched or on the meta device.
#pragma once
#include "base/fits.h"
#include "graph/batch.h"
#include "tensor/tensor.h"

namespace clew {

inline void require_held(std::string_view op, const Tensor& value, DType d) {
  if (value.dtype() == d || !value->storage->is_ready() || is_batched(value)) return;
  require_fits(op, item(value), d);
}

}  // namespace clew

// A value without dimensions that an operation puts into a tensor: it must fit there.
// May include: graph, tensor.
// Invariant: what waits, stands for samples or has no value is not asked for it.
#pragma once
#include "base/fits.h"
#include "graph/batch.h"
#include "tensor/tensor.h"

namespace clew {

inline void require_held(std::string_view op, const Tensor& value, DType d) {
  if (value.dtype() == d || value->storage->device != Device::CPU || is_batched(value)) return;
  require_fits(op, item(value), d);
}

}  // namespace clew

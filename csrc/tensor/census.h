// Every live tensor, for reports of what holds memory.
// May include: tensor.
// Invariant: none.
#pragma once
#include <vector>

#include "tensor/tensor.h"

namespace clew {

std::vector<Tensor> live_tensors();

}  // namespace clew

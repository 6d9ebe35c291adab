// Every tensor that is alive, for whoever asks what holds memory.
// May include: tensor.
// Invariant: none.
#pragma once
#include <vector>

#include "tensor/tensor.h"

namespace clew {

std::vector<Tensor> live_tensors();

}  // namespace clew

// Operations on lists of tensors in one pass: optimizers' steps, norms and scales of gradients.
// May include: graph/node.h, kernels/train.
// Invariant: nothing is recorded; the caller has checked dtypes and layouts, and counts the writes.
#pragma once
#include <span>

#include "graph/node.h"
#include "kernels/train/optimize.h"

namespace clew {

// The arrays of one parameter's step: the parameter, its gradient and its states, dense, with their
// elements in the same order.
struct StepArrays {
  struct Part {
    Storage* storage = nullptr;  // held by the caller
    int64_t offset = 0;          // in bytes
  };
  std::array<Part, kernels::most_optimizer_arrays> part;
  int64_t n = 0;
  DType dtype = DType::Float32;
  int rule = 0;  // its number among those of the call
};
// `rules` holds structs of `rule_size` bytes, of that kind.
void optimizer_step(kernels::Optimizer kind, std::span<const StepArrays> all, const void* rules,
                    size_t rule_size);

// Of floating tensors that are dense, in any order of their dims. Sums do not depend on the number
// of threads. The order of the norm is 1, 2 or infinity.
double norm_of_all(std::span<const Tensor> all, double order);
void scale_all(std::span<const Tensor> all, double factor);
void clamp_all(std::span<const Tensor> all, double bound);  // to [-bound, bound]
// Whether all elements were finite before they were multiplied by factor.
bool unscale_all(std::span<const Tensor> all, double factor);

}  // namespace clew

// What is written to a tensor while it may lie in that tensor's own memory.
// May include: graph, ops/calls.
// Invariant: what comes back shares no memory with the tensor written to.
#pragma once
#include "graph/deferral.h"
#include "graph/modes.h"
#include "ops/calls/unary.h"

namespace clew {

// A value that is written to many elements of x: a copy of it where it lies in x's memory.
inline Tensor apart_from(const Tensor& value, const Tensor& x) {
  // Gathered results have no memory yet, and it must be known which memory the two share.
  if (collects()) [[unlikely]] {
    const Tensor both[2] = {value, x};
    settle(both);
  }
  return value->storage == x->storage ? clone(value) : value;
}

}  // namespace clew

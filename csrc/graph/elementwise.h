// Running an elementwise operation's loops into a result that is there.
// May include: graph/op.h.
// Invariant: the result has the broadcast shape of the inputs.
#pragma once
#include "graph/op.h"

namespace clew {

// `compute`: the dtype that inputs are converted to. Where calls wait, so does this one.
void run_elementwise_into(const OpDef& op, std::span<const Tensor> given, const void* attrs,
                          DType compute, const Tensor& result, DType out_dtype);

}  // namespace clew

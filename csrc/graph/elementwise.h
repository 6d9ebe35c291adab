// Elementwise operations: their dtypes and shapes, results, and running their loops.
// May include: graph/op.h, tensor/kernel_frame.h.
// Invariant: a result has the broadcast shape of the inputs.
#pragma once
#include "graph/op.h"
#include "tensor/kernel_frame.h"

namespace clew {

// The name for messages: a private op's is that of the function it stands behind.
std::string_view spoken_name(const OpDef& op);
// Where the result lies; raises where the operands do not lie together.
Device device_of(const OpDef& op, std::span<const Tensor> in);

struct OutputTypes {
  DType compute;
  DType output;
};
OutputTypes elementwise_types(const OpDef& op, std::span<const Tensor> in);
Dims elementwise_shape(const OpDef& op, std::span<const Tensor> in);
// A fresh elementwise result lies as its inputs do.
Tensor empty_like_inputs(const Dims& sizes, std::span<const Tensor> in, DType dtype, NewBytes what);
// Whether reading `src` while writing `dst` in one loop would go wrong.
bool hazardous(const Tensor& dst, const Tensor& src);
// After a kernel that let other threads run. What would be recorded must be what was computed.
void require_kept(const KernelFrame& frame, const OpDef& op, std::span<const Tensor> in);

// Runs the loop into `result`, which has the broadcast shape. `compute`: the dtype that inputs are
// converted to. Inside a deferred region the call waits instead.
void run_elementwise_into(const OpDef& op, std::span<const Tensor> given, const void* attrs,
                          DType compute, const Tensor& result, DType out_dtype);
// The fast path for most calls: few elements, dense tensors of one shape and dtype, perhaps
// numbers. Undefined, with nothing done, in other cases.
Tensor run_small_dense(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                       TensorObj* disposable);
Tensor run_elementwise(const OpDef& op, std::span<const Tensor> in, const void* attrs);

}  // namespace clew

// Attention in blocks: scores exist only for a few queries and keys at a time.
// May include: base.
// Invariant: a query without unmasked keys has result 0, logarithm +infinity, zero gradients.
#pragma once
#include "base/dtype.h"

namespace clew::kernels {

// Strides in elements of batch, head, row and column; zero where an operand repeats.
struct AttentionOperand {
  const char* data = nullptr;
  int64_t stride[4] = {};
};
struct AttentionShape {
  DType dtype;  // float32 or float64
  int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  double scale;
  bool causal;
  AttentionOperand q, k, v, mask;  // mask.data may be null
  bool mask_is_bool;
};

// out (batch, heads, queries, value_width) and the logarithm of each row's sum (batch, heads,
// queries), contiguous.
void attention(const AttentionShape& s, void* out, void* logsum);
// dq, dk, dv, contiguous with their operands' sizes, from contiguous out, logsum and the gradient g
// of out.
void attention_backward(const AttentionShape& s, const void* out, const void* logsum, const void* g,
                        void* dq, void* dk, void* dv);

}  // namespace clew::kernels

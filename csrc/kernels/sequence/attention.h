// Attention in blocks: scores exist only for a few queries and keys at a time.
// May include: base.
// Invariant: a query without unmasked keys has result 0, row sums of zeros, zero gradients.
#pragma once
#include "base/dtype.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

// Strides in elements of batch, head, row and column; zero where an operand repeats.
template <class Byte> struct AttentionView {
  Byte* data = nullptr;
  int64_t stride[4] = {};
};
using AttentionOperand = AttentionView<const char>;
using AttentionTarget = AttentionView<char>;  // contiguous columns
struct AttentionShape {
  DType dtype;  // float32 or float64
  int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  double scale;
  bool causal;
  AttentionOperand q, k, v, mask;  // mask.data may be null
  bool mask_is_bool;
};

// out (batch, heads, queries, value_width), and what the weights of each row are made with: its
// greatest score, and one over the sum of e^(score - greatest) (batch, heads, queries, 2),
// contiguous.
void attention(const AttentionShape& s, const AttentionTarget& out, void* row_sums);

// From the gradient g of out: dq, dk, dv with their operands' sizes.
struct AttentionGrads {
  AttentionOperand out, g;
  const void* row_sums;
  AttentionTarget dq, dk, dv;
};
void attention_backward(const AttentionShape& s, const AttentionGrads& grads);

// The kernels, compiled once per instruction set.
CLEW_IN_EACH_SET(void attention_forward(const AttentionShape& s, const AttentionTarget& out,
                                        void* row_sums);
                 void attention_backward(const AttentionShape& s, const AttentionGrads& grads);)

}  // namespace clew::kernels

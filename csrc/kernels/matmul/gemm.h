// Matrix products over strided operands of any numeric dtype, single and batched.
// May include: base, base/ndview.h.
// Invariant: C becomes exactly alpha*A@B + beta*C; with beta = 0 what C held is ignored.
#pragma once
#include "base/ndview.h"
#include "kernels/matmul/gemm_isa.h"

namespace clew::kernels {

// C[m, n] = alpha * A[m, k] @ B[k, n] + beta * C. Strides in elements, any value (0 for broadcast
// operands).
struct Gemm {
  DType dtype;
  int64_t m, n, k;
  const char* a;
  int64_t a_rs, a_cs;
  const char* b;
  int64_t b_rs, b_cs;
  char* c;
  int64_t c_rs, c_cs;
  Scalar alpha = Scalar(1);
  Scalar beta = Scalar(0);
  // n contiguous elements that every row of C gets as well; only where beta is 0. May be null.
  const char* bias = nullptr;
};

// False when matrix products of the dtype are not offered (bool).
constexpr bool gemm_supports(DType d) { return d != DType::Bool; }

void gemm(const Gemm& g);
// Computes a small product, or one of one short row, by a kernel without packing; false if it is
// neither. For such products the setup costs more than the product.
bool gemm_if_small(const SmallGemm& g);

// The same product for every index of the batch dims; strides in elements.
struct GemmBatch {
  Dims sizes, a, b, c;
};
void gemm_batched(const Gemm& first, const GemmBatch& batch);

}  // namespace clew::kernels

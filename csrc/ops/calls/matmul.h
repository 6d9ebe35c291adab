// Matrix products as C++ functions, for gradient rules and composites.
// May include: ops/ops.h.
// Invariant: each function only calls apply() with its OpDef.
#pragma once
#include "ops/ops.h"

namespace clew {

// Any ranks, batch dims broadcast: vectors, matrices and batches of them, as Python's `@` has it.
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor mm(const Tensor& a, const Tensor& b);
// beta * input + alpha * a @ b.
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
             const Scalar& alpha = 1);
Tensor addmv(const Tensor& input, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha);
Tensor addr(const Tensor& input, const Tensor& a, const Tensor& b, const Scalar& beta,
            const Scalar& alpha);
Tensor addbmm(const Tensor& input, const Tensor& a, const Tensor& b, const Scalar& beta,
              const Scalar& alpha);
Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
               const Scalar& alpha = 1);
// input @ weight^T + bias; bias may be undefined.
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias);
// Sums over pairs of dims; the rest of a's dims come first, then b's.
Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b);

}  // namespace clew

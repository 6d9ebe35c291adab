// oneDNN behind plain functions: large matrix products; convolutions are in onednn_conv.h.
// May include: base, kernels/matmul/gemm.h.
// Invariant: false means that nothing was written: oneDNN cannot or should not do the job.
#pragma once
#include "kernels/matmul/gemm.h"

namespace clew::kernels::onednn {

// float32, bfloat16 and float16 products whose operands are row- or column-major and whose C is
// row-major.
bool takes(const Gemm& g);
// Such a product, by the calling thread alone.
bool gemm(const Gemm& g);
// Whether this processor multiplies the dtype natively; oneDNN uses such instructions.
bool has_units_for(DType d);

}  // namespace clew::kernels::onednn

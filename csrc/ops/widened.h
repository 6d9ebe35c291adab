// float16 for kernels without loops of their own for it: computed in float32, rounded once.
// May include: tensor.
// Invariant: other dtypes pass through untouched.
#pragma once
#include "tensor/tensor.h"

namespace clew {

// A processor converts float16 in vectors; loops that do it one by one ask a library function.
inline Tensor widened(const Tensor& x) {
  if (x.dtype() != DType::Float16) return x;
  Tensor wide = empty(x.sizes(), DType::Float32);
  copy_into(wide, x);
  return wide;
}
// Calls run(to): out itself, or a float32 tensor that is then copied there.
template <class F> void through_floats(const Tensor& out, F&& run) {
  if (out.dtype() != DType::Float16) return run(out);
  Tensor wide = empty(out.sizes(), DType::Float32);
  run(wide);
  copy_into(out, wide);
}

}  // namespace clew

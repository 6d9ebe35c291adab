// PyTorch's type promotion: tensors with dims outrank 0-d tensors, which outrank Python numbers,
// inside a category.
// May include: base, tensor.
// Invariant: result_type is symmetric in its inputs.
#pragma once
#include <span>

#include "tensor/tensor.h"

namespace clew {

inline DType result_type(std::span<const Tensor> in) {
  DType first = in[0].dtype();
  bool uniform = true;
  for (const Tensor& t : in)
    uniform = uniform && t.defined() && t.dtype() == first && !t.is_wrapped_number();
  if (uniform) return first;
  constexpr int none = -1;
  int rank[3] = {none, none, none};  // with dims, 0-d, Python number
  auto join = [](int a, DType b) {
    return a == none ? static_cast<int>(b) : static_cast<int>(promote(static_cast<DType>(a), b));
  };
  for (const Tensor& t : in) {
    if (!t.defined()) continue;
    DType d = t.dtype();
    if (t.is_wrapped_number()) {
      if (is_complex(d))
        d = complex_of(default_dtype());
      else if (is_floating(d))
        d = default_dtype();
    }
    int k = t.is_wrapped_number() ? 2 : t.ndim() == 0 ? 1 : 0;
    rank[k] = join(rank[k], d);
  }
  auto combine = [](int high, int low) {
    if (high == none) return low;
    if (low == none) return high;
    auto h = static_cast<DType>(high);
    auto l = static_cast<DType>(low);
    if (is_complex(h)) return high;
    if (is_floating(h)) return is_complex(l) ? static_cast<int>(complex_of(h)) : high;
    if (h == DType::Bool || is_inexact(l)) return static_cast<int>(promote(h, l));
    return high;
  };
  return static_cast<DType>(combine(combine(rank[0], rank[1]), rank[2]));
}

// Whether a result of type `from` may be stored into `to` without losing its kind.
inline bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to)) return false;
  if (from != DType::Bool && to == DType::Bool) return false;
  return true;
}

}  // namespace clew

// Whether numbers fit into elements.
// May include: base.
// Invariant: what fits is stored without losing a part of it that is not 0, nor its size.
#pragma once
#include <string_view>

#include "base/scalar.h"

namespace clew {

// Whether dtype d keeps both parts of v: a real dtype cannot hold an imaginary part; bool only
// tests for nonzero.
inline bool keeps_parts(const Scalar& v, DType d) {
  return !v.is_complex() || v.im == 0 || is_complex(d) || d == DType::Bool;
}
// Whether the number is out of a dtype's range. By PyTorch's rule a negative whole number wraps
// around in an unsigned type, down to minus the greatest one.
bool overflows(const Scalar& v, DType d);
// Raises if a number to be written into a tensor does not fit its dtype.
void require_fits(std::string_view op, const Scalar& v, DType d);

}  // namespace clew

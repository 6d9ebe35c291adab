// Whether numbers fit into elements.
// May include: base.
// Invariant: what fits is stored without losing a part of it that is not 0, nor its size.
#pragma once
#include <string_view>

#include "base/scalar.h"

namespace clew {

// Real elements hold no imaginary part; bools ask only whether there is anything.
inline bool keeps_parts(const Scalar& v, DType d) {
  return !v.is_complex() || v.im == 0 || is_complex(d) || d == DType::Bool;
}
// Whether the number lies beyond the elements of a dtype. By PyTorch's rule a negative whole number
// wraps around in an unsigned type, down to minus the greatest one.
bool overflows(const Scalar& v, DType d);
// Raises where a number that is put into a tensor does not fit there.
void require_fits(std::string_view op, const Scalar& v, DType d);

}  // namespace clew

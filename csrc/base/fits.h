// Whether numbers fit into elements.
// May include: base.
// Invariant: what fits is stored without losing a part of it that is not 0.
#pragma once
#include "base/scalar.h"

namespace clew {

// Real elements hold no imaginary part; bools ask only whether there is anything.
inline bool is_stored(const Scalar& v, DType d) {
  return !v.is_complex() || v.im == 0 || is_complex(d) || d == DType::Bool;
}

}  // namespace clew

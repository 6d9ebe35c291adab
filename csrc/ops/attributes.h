// Attributes that operations of several families have: a dimension, several, a size.
// May include: base.
// Invariant: members are in the order of the parameters after the tensors.
#pragma once
#include <cstdint>
#include <optional>
#include <tuple>

#include "base/scalar.h"
#include "base/smallvec.h"

namespace clew {

struct DimAttrs {
  int64_t dim = 0;
  static constexpr auto members() { return std::tuple(&DimAttrs::dim); }
};

struct KeepDimAttrs {
  int64_t dim = 0;
  bool keepdim = false;
  static constexpr auto members() { return std::tuple(&KeepDimAttrs::dim, &KeepDimAttrs::keepdim); }
};

struct DimsAttrs {
  Dims dims;
  static constexpr auto members() { return std::tuple(&DimsAttrs::dims); }
};

// All dimensions where none are given.
struct KeepDimsAttrs {
  std::optional<Dims> dim;
  bool keepdim = false;
  static constexpr auto members() {
    return std::tuple(&KeepDimsAttrs::dim, &KeepDimsAttrs::keepdim);
  }
};

// The factor of `other` in sums.
struct AlphaAttrs {
  Scalar alpha = 1;
  static constexpr auto members() { return std::tuple(&AlphaAttrs::alpha); }
};

struct SizeAttrs {
  Dims size;
  static constexpr auto members() { return std::tuple(&SizeAttrs::size); }
};

}  // namespace clew

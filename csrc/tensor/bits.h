// Looks at the bytes of tensors outside of operations: for comparing, watching and keeping them.
// May include: base, tensor/tensor.h.
// Invariant: no result of an operation depends on an answer, and nothing is recorded or counted.
#pragma once
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "tensor/tensor.h"

namespace clew {

// The first element, with zeros behind it.
inline std::array<uint64_t, 2> bits_of_first(const Tensor& t) {
  std::array<uint64_t, 2> bits = {};
  std::memcpy(bits.data(), t->address(), itemsize(t.dtype()));
  return bits;
}
// The first or the last element of a contiguous tensor of float32 or float64.
inline double end_of(const TensorObj* t, bool last) {
  const int64_t at = last ? t->shape->numel - 1 : 0;
  const char* p = t->storage->at(t->offset) + at * static_cast<int64_t>(itemsize(t->dtype));
  return t->dtype == DType::Float32 ? double{*reinterpret_cast<const float*>(p)}
                                    : *reinterpret_cast<const double*>(p);
}
// All elements of a contiguous tensor, out and in.
inline std::span<std::byte> bytes_of(const Tensor& t) {
  return {reinterpret_cast<std::byte*>(t->address()),
          static_cast<size_t>(t.numel()) * itemsize(t.dtype())};
}

// Whether all elements of a contiguous float32 or float64 tensor of at most 1,024 are finite; what
// is nothing of the kind counts as not.
bool is_small_and_finite(const Tensor& t);
// Tells the elements of a tensor from others.
uint64_t fingerprint_of(const Tensor& t);

}  // namespace clew

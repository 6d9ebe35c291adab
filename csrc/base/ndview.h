// What a kernel sees of a tensor: a pointer, sizes, strides in elements, a dtype. Also iteration
// over several of them at once.
// May include: base.
// Invariant: kernels never allocate results and never see a Tensor.
#pragma once
#include "base/dtype.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/scalar.h"
#include "base/smallvec.h"

namespace clew::kernels {

struct NdView {
  char* data;
  const int64_t* sizes;
  const int64_t* strides;  // in elements
  int ndim;
  DType dtype;

  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < ndim; ++i) n *= sizes[i];
    return n;
  }
  bool contiguous() const {
    int64_t expect = 1;
    for (int i = ndim - 1; i >= 0; --i) {
      if (sizes[i] == 0) return true;
      if (sizes[i] != 1 && strides[i] != expect) return false;
      expect *= sizes[i];
    }
    return true;
  }
  template <class T> T* ptr() const { return reinterpret_cast<T*>(data); }
};

// Inner loop over n elements: p[0] is the output, p[1..] the inputs, strides in bytes, params the
// op's scalar attributes.
using Loop = void (*)(char* const* p, const int64_t* strides, int64_t n, const Scalar* params);

// One Loop per compute dtype; null where the op does not support the dtype.
struct LoopTable {
  Loop fn[num_dtypes] = {};
  // Of float16 and bfloat16 operands, beside numbers that are not rounded to these types: operand k
  // is params[k - 1] where that holds a value, and its step is 0. The op has no other params.
  Loop beside_numbers[2] = {};
  Loop beside_number(DType d) const {
    return d == DType::Float16    ? beside_numbers[0]
           : d == DType::BFloat16 ? beside_numbers[1]
                                  : nullptr;
  }
  Loop operator[](DType d) const { return fn[static_cast<int>(d)]; }
};

// Runs `loop` over `count` operands of equal shape (broadcast dims have stride 0): dims are sorted
// by stride and coalesced, the outer ones iterated, large ones split over threads. strides[k] are
// in elements of operand k.
void run_loop(Loop loop, int count, char* const* data, const int64_t* const* strides,
              const size_t* itemsizes, const int64_t* sizes, int ndim, const Scalar* params);

// dst[...] = src[...] with conversion; equal sizes.
void copy(const NdView& dst, const NdView& src);
void fill(const NdView& dst, const Scalar& value);
// Makes bytes zero, many of them on all threads.
void clear(char* at, int64_t bytes);

}  // namespace clew::kernels

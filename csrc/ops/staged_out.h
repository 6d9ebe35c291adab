// A kernel's result where the kernel wants another layout or dtype than the tensor has.
// May include: tensor.
// Invariant: the tensor holds the result once the object is gone.
#pragma once
#include "tensor/layout.h"
#include "tensor/tensor.h"

namespace clew {

// A place for a kernel's result: `out` itself when it lies as wanted and is of dtype d, else a
// buffer that is copied back.
class StagedOut {
  Tensor out_, room_;

 public:
  StagedOut(const Tensor& out, DType d) : out_(out), room_(out) {
    if (out.dtype() != d || !out.is_contiguous()) room_ = empty(out.sizes(), d);
  }
  StagedOut(const Tensor& out, DType d, const Dims& strides) : out_(out), room_(out) {
    if (out.dtype() != d || out.strides() != strides)
      room_ = empty_strided(out.sizes(), strides, d);
  }
  // Dense, with its dims in order or with the channels last.
  StagedOut(const Tensor& out, DType d, bool last) : out_(out), room_(out) {
    if (!last && (out.dtype() != d || !out.is_contiguous())) room_ = empty(out.sizes(), d);
    if (!last) return;
    const Dims strides = channels_last_strides(out.sizes());
    if (out.dtype() != d || out.strides() != strides)
      room_ = empty_strided(out.sizes(), strides, d);
  }
  ~StagedOut() noexcept(false) {
    if (!room_.is_same(out_)) copy_into(out_, room_);
  }
  StagedOut(const StagedOut&) = delete;
  StagedOut& operator=(const StagedOut&) = delete;
  template <class T> T* data() const { return room_.data<T>(); }
};

}  // namespace clew

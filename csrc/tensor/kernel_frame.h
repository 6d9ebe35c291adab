// Holds the tensors that a kernel works on, so that the GIL may be released meanwhile.
// May include: base, tensor/tensor.h.
// Invariant: what another thread does to a tensor object (`x.data = y`, resize_, deletion) reaches
// neither the bytes nor the sizes that a held tensor's kernel reads.
#pragma once
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "base/long_work.h"
#include "tensor/tensor.h"

namespace clew {

// Smaller calls are done before another thread could gain by it: they keep the interpreter.
constexpr int64_t held_elements = 8192;

inline bool is_worth_holding(const Tensor& t) {
  return t.defined() && t.numel() >= held_elements && !t.is_meta();
}
inline bool is_worth_holding(std::span<const Tensor> tensors) {
  for (const Tensor& t : tensors)
    if (is_worth_holding(t)) return true;
  return false;
}

// Keeps bytes and sizes of tensors whose addresses a kernel has taken, or is about to take, where
// one of them is large: for kernels that no KernelFrame leads to.
class Held {
  struct Part {
    Storage* storage;
    Shape* shape;
  };
  SmallVec<Part, 8> parts_;
  bool holds_ = false;
  void hold(std::span<const Tensor> tensors);

 public:
  Held(std::initializer_list<Tensor> tensors)
      : Held(std::span<const Tensor>(tensors.begin(), tensors.size())) {}
  explicit Held(std::span<const Tensor> tensors) {
    if (is_worth_holding(tensors)) hold(tensors);
  }
  ~Held() {
    if (holds_) release();
  }
  Held(const Held&) = delete;

 private:
  void release();
};

// The inputs of a call as its kernel sees them. Where the call is large, these are tensor objects
// of its own over the same bytes; otherwise nothing happens.
class KernelFrame {
  // Made only where the call is large: small ones pass by without a look at them.
  std::span<const Tensor> given_, seen_;
  std::vector<Tensor>* own_ = nullptr;  // owned
  void take();
  void release();

 public:
  KernelFrame(std::span<const Tensor> given, bool large) : given_(given), seen_(given) {
    if (large) hold();
  }
  // From now on; for a call that its results show to be large.
  void hold() {
    if (!own_) take();
  }
  ~KernelFrame() {
    if (own_) release();
  }
  KernelFrame(const KernelFrame&) = delete;

  std::span<const Tensor> tensors() const { return seen_; }
  // Whether another thread gave an input other bytes or sizes meanwhile.
  bool replaced() const { return own_ && differs(); }

 private:
  bool differs() const;
};

}  // namespace clew

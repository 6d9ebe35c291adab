// Holding the tensors of a call while the interpreter runs other threads.
// May include: base, tensor.
// Invariant: counts change with the GIL held; what was held is released exactly once.
#include "tensor/kernel_frame.h"

#include <memory>

namespace clew {

void Held::hold(std::span<const Tensor> tensors) {
  holds_ = true;
  ++stretch.held;
  for (const Tensor& t : tensors) {
    if (!t.defined()) continue;
    parts_.push_back({t->storage, t->shape});
    t->storage->incref();
    t->shape->incref();
  }
}

void Held::release() {
  --stretch.held;
  for (const auto& [storage, shape] : parts_) {
    storage->decref();
    shape->decref();
  }
}

void KernelFrame::take() {
  auto own = std::make_unique<std::vector<Tensor>>(given_.size());
  for (size_t i = 0; i < given_.size(); ++i)
    if (given_[i].defined()) (*own)[i] = alias(given_[i]);
  own_ = own.release();
  seen_ = *own_;
  ++stretch.held;
}

void KernelFrame::release() {
  --stretch.held;
  delete own_;
}

bool KernelFrame::differs() const {
  for (size_t i = 0; i < given_.size(); ++i) {
    const TensorObj *now = given_[i].get(), *then = seen_[i].get();
    if (now && (now->storage != then->storage || now->shape != then->shape ||
                now->offset != then->offset || now->dtype != then->dtype))
      return true;
  }
  return false;
}

}  // namespace clew

// A counted handle of an object that has incref() and decref().
// May include: the standard library only.
// Invariant: a handle that is not empty owns one reference.
#pragma once
#include <utility>

namespace clew {

template <class T> class Counted {
  T* p_ = nullptr;

 public:
  Counted() = default;
  Counted(const Counted& o) : p_(o.p_) {
    if (p_) p_->incref();
  }
  Counted(Counted&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Counted& operator=(Counted o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Counted() {
    if (p_) p_->decref();
  }
  static Counted steal(T* p) {
    Counted made;
    made.p_ = p;
    return made;
  }
  static Counted borrow(T* p) {
    if (p) p->incref();
    return steal(p);
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  T* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }
};

}  // namespace clew

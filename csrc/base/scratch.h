// Bytes that a thread keeps from one call to the next.
// May include: the standard library only.
// Invariant: what get() gave stays until the next get() or trim() of the same one.
#pragma once
#include <cstddef>
#include <cstdint>

namespace clew {

class Scratch {
  void* data_ = nullptr;
  size_t bytes_ = 0;
  void grow(size_t need);

 public:
  constexpr Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  // At least so many bytes, at the start of a cache line; what they hold is anything. (Inlined even
  // into loops that are compiled for one instruction set: none of them may become everybody's.)
  [[gnu::always_inline]] void* get(size_t need) {
    if (need > bytes_) grow(need);
    return data_;
  }
  template <class T> [[gnu::always_inline]] T* of(int64_t n) {
    return static_cast<T*>(get(static_cast<size_t>(n) * sizeof(T)));
  }
  // Gives them back when they are more than so many megabytes.
  void trim(size_t megabytes);
};

}  // namespace clew

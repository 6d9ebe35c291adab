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

  // At least so many bytes, aligned to a cache line, uninitialized. (Inlined even into loops that
  // are compiled for one instruction set: none of them may become everybody's.)
  [[gnu::always_inline]] void* get(size_t need) {
    if (need > bytes_) grow(need);
    return data_;
  }
  template <class T> [[gnu::always_inline]] T* of(int64_t n) {
    return static_cast<T*>(get(static_cast<size_t>(n) * sizeof(T)));
  }
  // Frees the bytes if they are more than this many megabytes.
  void trim(size_t megabytes);
};

// One Scratch for every thread; an object of this class is a global variable. (All of them share
// one thread-local pointer: of variables that the loader must place, a process has room for few.)
class LocalScratch {
  int index_;

 public:
  LocalScratch();
  LocalScratch(const LocalScratch&) = delete;
  LocalScratch& operator=(const LocalScratch&) = delete;
  Scratch& here() const;  // this thread's

  [[gnu::always_inline]] void* get(size_t need) const { return here().get(need); }
  template <class T> [[gnu::always_inline]] T* of(int64_t n) const { return here().of<T>(n); }
  void trim(size_t megabytes) const { here().trim(megabytes); }
};

// While one lives, its thread uses other scratch, so that the scratch of the surrounding scope
// keeps its contents.
class ScratchAside {
  Scratch* before_;

 public:
  ScratchAside();
  ~ScratchAside();
  ScratchAside(const ScratchAside&) = delete;
};

}  // namespace clew

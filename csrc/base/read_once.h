// Reading memory that another thread may be writing.
// May include: nothing of ours.
// Invariant: a value that decides an address or a count is read through here, checked, and used
// from the copy: the compiler may not read it a second time.
#pragma once
#include <cstdint>

namespace clew {

// Volatile, not atomic: both make one load, but around an atomic load the compiler keeps no values
// in registers, which slows gather().
template <class T> [[gnu::always_inline]] inline T read_once(const T& v) {
  static_assert(sizeof(T) <= sizeof(void*));
  return *const_cast<const volatile T*>(&v);
}
// The check of one that counts from 0.
[[gnu::always_inline]] inline bool within(int64_t index, int64_t size) {
  return static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
}

}  // namespace clew

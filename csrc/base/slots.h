// Memory for many small objects of one size, which come and go together.
// May include: base.
// Invariant: used with the GIL held; objects lie in chunks that begin at a cache line; when the
// last object is freed, all but a few chunks are freed.
#pragma once
#include <cstddef>
#include <new>
#include <vector>

#include "base/kept_blocks.h"
#include "base/lines.h"

namespace clew {

template <class T> class Slots {
  union Slot {
    Slot* next;
    alignas(T) std::byte bytes[sizeof(T)];
  };
  static constexpr size_t in_a_chunk = (size_t{1} << 16) / sizeof(Slot);
  static constexpr size_t kept = 64;  // chunks: the next step needs about as many
  std::vector<Slot*> chunks_;
  Slot* free_ = nullptr;
  size_t unused_ = 0;  // slots of chunks_[at_ - 1], from its beginning
  size_t at_ = 0;      // chunks in use
  size_t live_ = 0;

  // What comes next is on its way from memory meanwhile.
  static void fetch(Slot* s) {
    for (size_t at = 0; at < sizeof(Slot); at += line_bytes)
      fetch_line(reinterpret_cast<char*>(s) + at);
  }

 public:
  void* take() {
    if (!keeps_freed_blocks) return ::operator new (sizeof(T), std::align_val_t{alignof(T)});
    if (Slot* s = free_) {
      free_ = s->next;
      if (free_) fetch(free_);
      ++live_;
      return s;
    }
    if (unused_ == 0) {
      if (at_ == chunks_.size()) {
        chunks_.reserve(at_ + 1);
        chunks_.push_back(static_cast<Slot*>(
            ::operator new (in_a_chunk * sizeof(Slot), std::align_val_t{line_bytes})));
      }
      ++at_;
      unused_ = in_a_chunk;
    }
    ++live_;
    Slot* s = chunks_[at_ - 1] + --unused_;
    if (unused_ > 0) fetch(s - 1);
    return s;
  }
  void give(void* p) noexcept {
    if (!keeps_freed_blocks) return ::operator delete (p, std::align_val_t{alignof(T)});
    auto* s = static_cast<Slot*>(p);
    s->next = free_;
    free_ = s;
    if (--live_ > 0) return;
    for (size_t k = kept; k < chunks_.size(); ++k)
      ::operator delete (chunks_[k], std::align_val_t{line_bytes});
    if (chunks_.size() > kept) chunks_.resize(kept);
    free_ = nullptr;
    unused_ = at_ = 0;
  }
};

}  // namespace clew

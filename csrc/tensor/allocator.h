// The state of the caching allocator, which storage.cpp (blocks up to 4 KB) and long_blocks.cpp
// share.
// May include: base, tensor/storage.h.
// Invariant: only with the GIL; what is kept was live lately, and an eighth and a little more.
#pragma once
#include <array>
#include <cstdlib>

#include "base/kept_blocks.h"
#include "base/lines.h"
#include "tensor/storage.h"

namespace clew {

// Four classes to each power of two up to 4 KB, sixteen above: at most 25% and 6% go unused.
constexpr size_t short_most = 4096;
constexpr int short_classes = 4 * 6 + 1;
constexpr int first_paged_class = 4 * 4;  // blocks of a kilobyte and more lie apart from objects
constexpr int long_classes = 16 * 34;
constexpr size_t long_most = size_t{1} << 46;

constexpr auto class_sizes = [] {
  std::array<size_t, short_classes> sizes{};
  for (int c = 0; c < short_classes; ++c) {
    int log = c / 4 + 6;
    sizes[static_cast<size_t>(c)] =
        (size_t{1} << log) + static_cast<size_t>(c % 4) * (size_t{1} << (log - 2));
  }
  return sizes;
}();

// Bytes that may be cached without an ageing thread, and beyond the bound that follows from live
// bytes.
constexpr int64_t quiet_bytes = int64_t{16} << 20;

struct Allocator {
  // Freed storages, linked through `owner`: those that kept their block in lists by size class, the
  // rest in `bare`.
  Storage* with_block[short_classes] = {};
  Storage* with_clean_block[short_classes] = {};  // the block has no memory
  Storage* with_long_block[long_classes] = {};
  // Storages without a block, a stack: those that are taken soon are fetched before.
  Storage** bare = nullptr;
  size_t bare_count = 0, bare_room = 0;
  MemoryStats stats;  // cached_bytes: of short blocks
  // Requests beyond these limits take the slow path. With a watch the limits are set so that all
  // requests do; without one, watching costs nothing.
  int64_t live_limit = 0;
  int64_t cached_limit = quiet_bytes;
  StorageWatch watch = nullptr;
  // Allocations that would exceed these live bytes call make_room() first; it throws if there is no
  // room.
  int64_t room_limit = INT64_MAX;
  void (*make_room)(size_t nbytes) = nullptr;
  // Counts what all threads are to hear of; a thread that has not is told at its next allocation.
  uint32_t news = 0;
  void (*tell)() = nullptr;

  int64_t until_short_look = 0;  // bytes of new short blocks before the next look at what is held
  int64_t short_stuck = 0;       // what the last cleaning of short blocks left of cached_bytes
  int64_t long_live = 0;         // of stats.live_bytes
  int64_t long_kept = 0;         // in with_long_block
  int64_t spanless = 0;          // of long blocks that came from malloc
  // The peak of live bytes in this turn of the clock and in earlier turns, and the faded peak of
  // older ones.
  static constexpr int turns = 15;
  int64_t peak_now = 0;
  int64_t peaks[turns] = {};
  int turn = 0;
  int64_t faded_peak = 0;
  int64_t until_look = 0;  // bytes to be had from the system before the next look at what is left
};

// Ready before anything runs and never destroyed: tensors may die after main.
extern constinit Allocator the_allocator;
extern constinit thread_local uint32_t heard;  // of the_allocator.news
inline void hear_news() {
  if (heard != the_allocator.news) [[unlikely]]
    the_allocator.tell();
}

inline Storage* pop(Storage*& list) {
  Storage* s = list;
  Storage* next = list = static_cast<Storage*>(s->owner);
  s->owner = nullptr;
  // Prefetches what the next result needs while this one is computed.
  if (next) {
    if (next->owner) fetch_line(next->owner);
    if (next->data)
      for (size_t i = 0; i < 4; ++i) fetch_line(static_cast<char*>(next->data) + i * line_bytes);
  }
  return s;
}
inline void push(Storage*& list, Storage* s) {
  s->owner = list;
  list = s;
}
// False where there is no memory for it: the storage is lost then.
bool more_room_for_bare(Allocator& a);
// One without a block.
inline void drop(Allocator& a, Storage* s) {
  if (!keeps_freed_blocks) return std::free(s);
  if (a.bare_count < a.bare_room || more_room_for_bare(a)) a.bare[a.bare_count++] = s;
}
// Takes a storage with its block from the list, as good as new.
inline Storage* again(Storage*& list) {
  Storage* s = pop(list);
  s->refs = 1;
  s->version = 0;
  s->resizable = true;
  s->lent = 0;
  s->moved = 0;
  return s;
}
Storage* bare_storage(Allocator& a);

// A storage with a block of at least so many bytes, above short_most; null: no memory.
Storage* take_long_block(Allocator& a, size_t nbytes);
void keep_long_block(Allocator& a, Storage* s);
// Gives back what is held beyond what may be.
void keep_within_bounds(Allocator& a);
// Gives back the memory of unused neighbouring short blocks.
void clean_short_blocks(Allocator& a);
// Gives what lies in with_long_block back to the heap of spans.
void gather_long_blocks(Allocator& a);
// Bytes of all blocks that have memory, and of the unused ones among them.
int64_t held_bytes(const Allocator& a);
int64_t cached_bytes(const Allocator& a);

// A thread that calls age_cache every two seconds while there is something to give back.
void start_ageing();
bool is_ageing();
// Before the interpreter goes; it does not start again.
void stop_ageing();

}  // namespace clew

// Storages, and the caching allocator for short blocks: freed ones are kept by size class and
// handed out again.
// May include: base, tensor/storage.h.
// Invariant: a cached block is at least as large as its class says, and aligned to 64 bytes.
#include "tensor/storage.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "base/spans.h"
#include "tensor/allocator.h"

namespace clew {

constinit Allocator the_allocator;
constinit thread_local uint32_t heard = 0;

namespace {

Allocator& allocator() { return the_allocator; }

int size_class_of(size_t nbytes) {
  size_t n = nbytes < 64 ? 64 : nbytes;
  int log = 63 - __builtin_clzll(n);
  size_t quarter = size_t{1} << (log - 2);
  size_t part = (n - (size_t{1} << log) + quarter - 1) / quarter;
  return (log - 6) * 4 + static_cast<int>(part);
}
int64_t class_bytes(int c) { return static_cast<int64_t>(class_sizes[static_cast<size_t>(c)]); }

[[gnu::cold, gnu::noinline]] void beyond_live_limit(Allocator& a, const Storage& s) {
  a.stats.peak_bytes = std::max(a.stats.peak_bytes, a.stats.live_bytes);
  a.peak_now = std::max(a.peak_now, a.stats.live_bytes);
  if (a.watch)
    a.watch(s.data, static_cast<int64_t>(s.nbytes));
  else
    a.live_limit = std::min(a.stats.peak_bytes, a.peak_now);
}

[[gnu::cold, gnu::noinline]] void beyond_cached_limit(Allocator& a, const Storage& s) {
  if (a.watch) a.watch(s.data, -static_cast<int64_t>(s.nbytes));
  if (cached_bytes(a) > quiet_bytes) start_ageing();
  if (!a.watch && is_ageing()) a.cached_limit = INT64_MAX;
}

[[gnu::cold]] void fail_allocation(size_t nbytes) {
  fail(ErrorKind::OutOfMemory, "allocation: not enough memory, tried to allocate ", nbytes,
       " bytes; use smaller tensors, a smaller batch, or free others first");
}

void* allocate_short_block(int c, size_t nbytes) {
  if (!keeps_freed_blocks) return allocate_lines(nbytes);
  const auto bytes = (class_sizes[static_cast<size_t>(c)] + line_bytes - 1) / line_bytes;
  return c < first_paged_class ? allocate_lines(bytes * line_bytes)
                               : allocate_pages(bytes * line_bytes);
}

[[gnu::noinline]] Storage* allocate_rarely(Allocator& a, size_t nbytes, NewBytes what) {
  Storage* s;
  if (what.state != Bytes::ready || nbytes == 0) {
    s = bare_storage(a);
    s->device = what.device;
    s->state = what.state;
    s->nbytes = nbytes;
    return s;
  }
  s = take_long_block(a, nbytes);
  if (!s) fail_allocation(nbytes);
  return s;
}

[[gnu::cold, gnu::noinline]] Storage* new_short_block(Allocator& a, size_t nbytes, int c) {
  if ((a.until_short_look -= class_bytes(c)) < 0) {
    a.until_short_look = int64_t{1} << 20;
    keep_within_bounds(a);
  }
  if (a.with_clean_block[c]) return again(a.with_clean_block[c]);
  void* data = allocate_short_block(c, nbytes);
  if (!data) {
    empty_cache();
    data = allocate_short_block(c, nbytes);
  }
  if (!data) fail_allocation(nbytes);
  Storage* s = bare_storage(a);
  s->data = data;
  s->size_class = static_cast<uint16_t>(c);
  return s;
}

}  // namespace

Storage* bare_storage(Allocator& a) {
  if (a.bare_count == 0) {
    void* at = allocate_lines(sizeof(Storage));
    if (!at) fail(ErrorKind::OutOfMemory, "allocation: no memory for a tensor");
    return new (at) Storage();
  }
  constexpr size_t ahead = 6;
  Storage* s = a.bare[--a.bare_count];
  if (a.bare_count >= ahead) fetch_line(a.bare[a.bare_count - ahead]);
  *s = Storage();
  return s;
}
bool more_room_for_bare(Allocator& a) {
  const size_t room = std::max<size_t>(256, 2 * a.bare_room);
  void* more = std::realloc(a.bare, room * sizeof(Storage*));
  if (!more) return false;
  a.bare = static_cast<Storage**>(more);
  a.bare_room = room;
  return true;
}

void clean_short_blocks(Allocator& a) {
  constexpr uintptr_t page = 4096;
  std::vector<Storage*> all;
  try {
    for (int c = first_paged_class; c < short_classes; ++c)
      for (Storage* s = a.with_block[c]; s; s = static_cast<Storage*>(s->owner)) all.push_back(s);
  } catch (const std::bad_alloc&) {
    return;  // no memory for the list: the pages stay
  }
  std::sort(all.begin(), all.end(), [](auto* x, auto* y) { return x->data < y->data; });
  auto begin_of = [](const Storage* s) { return reinterpret_cast<uintptr_t>(s->data); };
  auto end_of = [&](const Storage* s) {
    return begin_of(s) + static_cast<uintptr_t>(class_bytes(s->size_class));
  };
  for (int c = first_paged_class; c < short_classes; ++c) a.with_block[c] = nullptr;
  for (size_t i = 0, next; i < all.size(); i = next) {
    for (next = i + 1; next < all.size() && begin_of(all[next]) == end_of(all[next - 1]);) ++next;
    const uintptr_t low = (begin_of(all[i]) + page - 1) / page * page,
                    high = end_of(all[next - 1]) / page * page;
    if (low < high) release_pages(reinterpret_cast<char*>(low), reinterpret_cast<char*>(high));
    for (size_t k = i; k < next; ++k) {
      const bool clean = begin_of(all[k]) >= low && end_of(all[k]) <= high;
      const int c = all[k]->size_class;
      push((clean ? a.with_clean_block : a.with_block)[c], all[k]);
      if (clean) a.stats.cached_bytes -= class_bytes(c);
    }
  }
}

Storage* Storage::allocate(size_t nbytes, NewBytes what) {
  Allocator& a = allocator();
  Storage* s;
  hear_news();
  if (a.stats.live_bytes + static_cast<int64_t>(nbytes) > a.room_limit &&
      what.state == Bytes::ready) [[unlikely]]
    a.make_room(nbytes);
  if (what.state != Bytes::ready || nbytes - 1 >= short_most) [[unlikely]] {  // 0 - 1 is large
    s = allocate_rarely(a, nbytes, what);
    if (!s->data) return s;
  } else {
    const int c = size_class_of(nbytes);
    if (a.with_block[c]) [[likely]] {
      s = again(a.with_block[c]);
      a.stats.cached_bytes -= class_bytes(c);
    } else {
      s = new_short_block(a, nbytes, c);
    }
  }
  s->nbytes = nbytes;
  a.stats.allocations++;
  a.stats.live_bytes += static_cast<int64_t>(nbytes);
  if (a.stats.live_bytes > a.live_limit) [[unlikely]]
    beyond_live_limit(a, *s);
  return s;
}

Storage* Storage::wrap(void* data, size_t nbytes, void* owner, void (*release)(Storage*)) {
  auto* s = new Storage();
  s->data = data;
  s->nbytes = nbytes;
  s->owner = owner;
  s->release = release;
  s->resizable = false;
  return s;
}

void (*release_origin)(Origin*) = nullptr;

void Storage::destroy(Storage* s) {
  Allocator& a = allocator();
  if (s->writer) release_origin(std::exchange(s->writer, nullptr));
  if (s->release) [[unlikely]] {
    s->release(s);
    if (!s->resizable) {
      delete s;
      return;
    }
  }
  if (!s->data) [[unlikely]]
    return drop(a, s);
  a.stats.live_bytes -= static_cast<int64_t>(s->nbytes);
  if (s->size_class < short_classes) [[likely]] {
    if (!keeps_freed_blocks) {
      if (a.watch) a.watch(s->data, -static_cast<int64_t>(s->nbytes));
      std::free(s->data);
      return drop(a, s);
    }
    a.stats.cached_bytes += class_bytes(s->size_class);
    if (a.stats.cached_bytes > a.cached_limit) [[unlikely]]
      beyond_cached_limit(a, *s);
    push(a.with_block[s->size_class], s);
    return;
  }
  if (a.watch) a.watch(s->data, -static_cast<int64_t>(s->nbytes));
  keep_long_block(a, s);
}

void Storage::resize(size_t new_nbytes) {
  if (!resizable)
    fail(
        "resize_: cannot resize storage that others hold too (NumPy, DLPack, or other processes); "
        "make a copy with clone()");
  Storage* fresh = allocate(new_nbytes, {device, state});
  if (data && fresh->data)
    std::memcpy(fresh->data, data, nbytes < new_nbytes ? nbytes : new_nbytes);
  std::swap(data, fresh->data);
  std::swap(nbytes, fresh->nbytes);
  std::swap(size_class, fresh->size_class);
  std::swap(span, fresh->span);
  fresh->decref();
}

void Storage::take_bytes() {
  Storage* fresh = allocate(nbytes);
  take_bytes_of(fresh);
  fresh->decref();
}
void Storage::take_bytes_of(Storage* other) {
  std::swap(data, other->data);
  std::swap(size_class, other->size_class);
  std::swap(span, other->span);
}

MemoryStats memory_stats() {
  MemoryStats stats = allocator().stats;
  stats.cached_bytes = cached_bytes(allocator());
  stats.fresh_bytes = span_bytes().fresh;
  return stats;
}
void reset_peak_memory_stats() {
  Allocator& a = allocator();
  a.stats.peak_bytes = a.stats.live_bytes;
  if (!a.watch) a.live_limit = std::min(a.stats.peak_bytes, a.peak_now);
}
void raise_peak_memory_stats(int64_t peak_bytes) {
  Allocator& a = allocator();
  a.stats.peak_bytes = std::max(a.stats.peak_bytes, peak_bytes);
  if (!a.watch) a.live_limit = std::min(a.stats.peak_bytes, a.peak_now);
}
void watch_storages(StorageWatch watch) {
  Allocator& a = allocator();
  a.watch = watch;
  a.live_limit = watch ? -1 : std::min(a.stats.peak_bytes, a.peak_now);
  a.cached_limit = watch ? -1 : is_ageing() ? INT64_MAX : quiet_bytes;
}

}  // namespace clew

// The caching allocator: freed blocks are kept by size class and handed out again.
// May include: base, tensor/storage.h.
// Invariant: a cached block is at least as large as its class says, and aligned to 64 bytes.
#include "tensor/storage.h"

#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "base/lines.h"

namespace clew {

namespace {

constexpr size_t alignment = 64;
// Four classes to each power of two: at most 25% of a block is unused.
constexpr int class_count = 4 * 44;
constexpr size_t cache_limit_block = size_t{1} << 30;
constexpr size_t cached_most = size_t{4} << 30;

struct Allocator {
  // Freed storages, linked through `owner`: by class those that kept their block, those whose
  // block has addresses but no memory (empty_cache), the rest apart.
  Storage* with_block[class_count] = {};
  Storage* with_addresses[class_count] = {};
  Storage* bare = nullptr;
  MemoryStats stats;
  // What goes beyond these takes the long way. With a watch everything does, so that without one
  // it costs nothing.
  int64_t live_limit = 0;  // the peak
  size_t cached_limit = cached_most;
  StorageWatch watch = nullptr;
};

// Ready before anything runs and never destroyed: tensors may die after main.
constinit Allocator the_allocator;
Allocator& allocator() { return the_allocator; }

int class_of(size_t nbytes) {
  size_t n = nbytes < 64 ? 64 : nbytes;
  int log = 63 - __builtin_clzll(n);
  size_t quarter = size_t{1} << (log - 2);
  size_t part = (n - (size_t{1} << log) + quarter - 1) / quarter;
  return (log - 6) * 4 + static_cast<int>(part);
}

constexpr auto class_sizes = [] {
  std::array<size_t, class_count> sizes{};
  for (int c = 0; c < class_count; ++c) {
    int log = c / 4 + 6;
    sizes[static_cast<size_t>(c)] =
        (size_t{1} << log) + static_cast<size_t>(c % 4) * (size_t{1} << (log - 2));
  }
  return sizes;
}();
size_t class_bytes(int c) { return class_sizes[static_cast<size_t>(c)]; }

Storage* pop(Storage*& list) {
  Storage* s = list;
  Storage* next = list = static_cast<Storage*>(s->owner);
  s->owner = nullptr;
  // What the next result will need is on its way while this one is computed.
  if (next) {
    fetch_line(next->owner);
    for (size_t i = 0; i < 4; ++i) fetch_line(static_cast<char*>(next->data) + i * line_bytes);
  }
  return s;
}
void push(Storage*& list, Storage* s) {
  s->owner = list;
  list = s;
}

// One that kept its block, as new.
Storage* again(Storage*& list) {
  Storage* s = pop(list);
  s->refs = 1;
  s->version = 0;
  s->resizable = true;
  return s;
}

Storage* bare_storage(Allocator& a) {
  if (!a.bare) {
    void* at = allocate_lines(sizeof(Storage));
    if (!at) fail(ErrorKind::OutOfMemory, "allocation: no memory for a tensor");
    return new (at) Storage();
  }
  Storage* s = pop(a.bare);
  *s = Storage();
  return s;
}

[[gnu::cold, gnu::noinline]] void beyond_live_limit(Allocator& a, const Storage& s) {
  if (a.stats.live_bytes > a.stats.peak_bytes) a.stats.peak_bytes = a.stats.live_bytes;
  if (a.watch)
    a.watch(s.data, static_cast<int64_t>(s.nbytes));
  else
    a.live_limit = a.stats.peak_bytes;
}

// Whether the block is kept nevertheless.
[[gnu::cold, gnu::noinline]] bool beyond_cached_limit(Allocator& a, const Storage& s,
                                                      size_t bytes) {
  if (a.watch) a.watch(s.data, -static_cast<int64_t>(s.nbytes));
  return bytes <= cache_limit_block &&
         static_cast<size_t>(a.stats.cached_bytes) + bytes <= cached_most;
}

void* allocate_block(int c) {
  size_t bytes = (class_bytes(c) + alignment - 1) / alignment * alignment;
  if (bytes <= carved_most) return allocate_lines(bytes);
  // Huge pages spare large results most of their page faults; and pieces of rows that started
  // within a pair of cache lines would have memory bring the other line, too.
  constexpr size_t huge_page = size_t{2} << 20;
  void* p = nullptr;
  if (posix_memalign(&p, huge_page, bytes) != 0) return nullptr;
  madvise(p, bytes / huge_page * huge_page, MADV_HUGEPAGE);
  return p;
}

}  // namespace

Storage* Storage::allocate(size_t nbytes, Device device) {
  Allocator& a = allocator();
  if (device == Device::Meta || nbytes == 0) [[unlikely]] {
    Storage* s = bare_storage(a);
    s->device = device;
    s->nbytes = nbytes;
    return s;
  }
  int c = nbytes > (size_t{1} << 46) ? class_count : class_of(nbytes);
  Storage* s = nullptr;
  if (c < class_count && a.with_block[c]) [[likely]] {
    s = again(a.with_block[c]);
    a.stats.cached_bytes -= static_cast<int64_t>(class_bytes(c));
  } else if (c < class_count && a.with_addresses[c]) {
    s = again(a.with_addresses[c]);
  } else {
    void* data = c < class_count ? allocate_block(c) : nullptr;
    if (!data && c < class_count && a.stats.cached_bytes > 0) {
      empty_cache();
      data = allocate_block(c);
    }
    if (!data)
      fail(ErrorKind::OutOfMemory, "allocation: not enough memory, tried to allocate ", nbytes,
           " bytes; use smaller tensors, a smaller batch, or free others first");
    s = bare_storage(a);
    s->data = data;
    s->size_class = static_cast<uint8_t>(c);
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
  if (s->release) {
    s->release(s);
    delete s;
    return;
  }
  if (s->data) [[likely]] {
    a.stats.live_bytes -= static_cast<int64_t>(s->nbytes);
    size_t bytes = class_bytes(s->size_class);
    if ((bytes <= cache_limit_block && a.stats.cached_bytes + bytes <= a.cached_limit) ||
        beyond_cached_limit(a, *s, bytes) || is_permanent(s->data)) {
      a.stats.cached_bytes += static_cast<int64_t>(bytes);
      push(a.with_block[s->size_class], s);
      return;
    }
    std::free(s->data);
  }
  push(a.bare, s);
}

void Storage::resize(size_t new_nbytes) {
  if (!resizable)
    fail(
        "resize_: cannot resize storage that others hold too (NumPy, DLPack, or other processes); "
        "make a copy with clone()");
  Storage* fresh = allocate(new_nbytes, device);
  if (data && fresh->data)
    std::memcpy(fresh->data, data, nbytes < new_nbytes ? nbytes : new_nbytes);
  std::swap(data, fresh->data);
  std::swap(nbytes, fresh->nbytes);
  std::swap(size_class, fresh->size_class);
  fresh->decref();
}

MemoryStats memory_stats() { return allocator().stats; }
void reset_peak_memory_stats() {
  Allocator& a = allocator();
  a.stats.peak_bytes = a.stats.live_bytes;
  if (!a.watch) a.live_limit = a.stats.peak_bytes;
}
void watch_storages(StorageWatch watch) {
  Allocator& a = allocator();
  a.watch = watch;
  a.live_limit = watch ? -1 : a.stats.peak_bytes;
  a.cached_limit = watch ? 0 : cached_most;
}
void empty_cache() {
  Allocator& a = allocator();
  a.stats.cached_bytes = 0;
  for (int c = 0; c < class_count; ++c) {
    Storage*& list = a.with_block[c];
    Storage* kept = nullptr;
    while (list) {
      Storage* s = pop(list);
      if (is_permanent(s->data)) {
        const bool released = release_pages(s->data, class_bytes(c));
        push(released ? a.with_addresses[c] : kept, s);
        if (!released) a.stats.cached_bytes += static_cast<int64_t>(class_bytes(c));
      } else {
        std::free(s->data);
        push(a.bare, s);
      }
    }
    list = kept;
  }
}

}  // namespace clew

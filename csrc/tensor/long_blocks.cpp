// Blocks above 4 KB: kept by size class where sizes recur, else cut from and joined in the heap of
// spans; and how much may be kept at all.
// May include: base, tensor/allocator.h.
// Invariant: no request to the system makes the held memory exceed most_held().
#include <algorithm>
#include <cstdlib>

#include "base/available.h"
#include "base/spans.h"
#include "tensor/allocator.h"

namespace clew {

namespace {

int class_of(size_t nbytes) {
  const int log = 63 - __builtin_clzll(nbytes);
  const size_t sixteenth = size_t{1} << (log - 4);
  const size_t part = (nbytes - (size_t{1} << log) + sixteenth - 1) / sixteenth;
  return (log - 12) * 16 + static_cast<int>(part) - 1;  // 4097 bytes: 0
}
// The bytes of a block of this class: two lines more than its size, so that blocks of one round
// size do not all map to one cache set.
size_t bytes_of(int c) {
  const int log = (c + 1) / 16 + 12;
  const size_t size =
      (size_t{1} << log) + static_cast<size_t>((c + 1) % 16) * (size_t{1} << (log - 4));
  return size + 2 * line_bytes;
}
int64_t bytes_of(const Storage& s) {
  return static_cast<int64_t>(s.span ? s.span->bytes : bytes_of(s.size_class - short_classes));
}

// The bound on memory behind all blocks when `more` bytes are added to the live bytes.
int64_t most_held(const Allocator& a, int64_t more) {
  int64_t peak = std::max({a.stats.live_bytes + more, a.peak_now, a.faded_peak});
  for (int64_t p : a.peaks) peak = std::max(peak, p);
  return peak + peak / 8 + quiet_bytes;
}

// Whether the system has this many bytes for us. If it runs short, the cache is emptied.
bool can_be_had(Allocator& a, int64_t bytes) {
  a.until_look -= bytes;
  if (a.until_look >= 0) return true;
  Available left = available_memory();
  if (left.bytes - bytes < left.total / 16 && cached_bytes(a) > 0) {
    empty_cache();
    left = available_memory();
  }
  if (bytes > left.granted) return false;
  a.until_look = std::max((left.bytes - bytes) / 8, quiet_bytes);
  return true;
}

// Gives memory of unused blocks back to the system, `over` bytes if possible. Scanning the short
// blocks takes a while, so it is done only if enough can be gained.
void give_back(Allocator& a, int64_t over) {
  if (over <= 0) return;
  const int64_t dirty = span_bytes().dirty;
  release_spans(static_cast<size_t>(over));
  over -= dirty - span_bytes().dirty;
  if (over > 0 && a.stats.cached_bytes > std::max(quiet_bytes, a.short_stuck + quiet_bytes)) {
    clean_short_blocks(a);
    a.short_stuck = a.stats.cached_bytes;
  }
}

bool use(Storage& s, Span* span) {
  if (!span) return false;
  s.span = span;
  s.data = span->begin;
  return true;
}
bool take_fresh(Storage& s, size_t bytes, size_t nbytes) {
  if (use(s, fresh_span(bytes))) return true;
  s.data = keeps_freed_blocks ? std::aligned_alloc(line_bytes, bytes) : allocate_lines(nbytes);
  return s.data != nullptr;
}

bool find_block(Allocator& a, Storage& s, size_t bytes, size_t nbytes) {
  if (use(s, reuse_span(bytes))) return true;
  const int64_t most = most_held(a, static_cast<int64_t>(nbytes));
  const auto more = static_cast<int64_t>(bytes);
  if (a.long_kept > 0 && held_bytes(a) + more > most) {
    gather_long_blocks(a);
    if (use(s, reuse_span(bytes))) return true;
  }
  give_back(a, held_bytes(a) + more - most);
  if (!can_be_had(a, more)) return false;
  if (take_fresh(s, bytes, nbytes)) return true;
  empty_cache();
  return take_fresh(s, bytes, nbytes);
}

}  // namespace

Storage* take_long_block(Allocator& a, size_t nbytes) {
  if (nbytes > long_most) return nullptr;
  const int c = class_of(nbytes);
  Storage* s;
  if (a.with_long_block[c]) {
    s = again(a.with_long_block[c]);
    a.long_kept -= bytes_of(*s);
  } else {
    s = bare_storage(a);
    s->size_class = static_cast<uint16_t>(c + short_classes);
    if (!find_block(a, *s, bytes_of(c), nbytes)) {
      drop(a, s);
      return nullptr;
    }
    if (!s->span) a.spanless += bytes_of(*s);
  }
  a.long_live += static_cast<int64_t>(nbytes);
  return s;
}

void keep_long_block(Allocator& a, Storage* s) {
  a.long_live -= static_cast<int64_t>(s->nbytes);
  if (!keeps_freed_blocks) {
    a.spanless -= bytes_of(*s);
    std::free(s->data);
    return drop(a, s);
  }
  a.long_kept += bytes_of(*s);
  push(a.with_long_block[s->size_class - short_classes], s);
  if (!is_ageing() && cached_bytes(a) > quiet_bytes) start_ageing();
}

void gather_long_blocks(Allocator& a) {
  for (Storage*& list : a.with_long_block)
    while (list) {
      Storage* s = pop(list);
      if (s->span) {
        free_span(s->span);
      } else {
        a.spanless -= bytes_of(*s);
        std::free(s->data);
      }
      drop(a, s);
    }
  a.long_kept = 0;
}

int64_t held_bytes(const Allocator& a) {
  const int64_t shorter = a.stats.live_bytes - a.long_live + a.stats.cached_bytes;
  return span_bytes().taken + span_bytes().dirty + a.spanless + shorter;
}
int64_t cached_bytes(const Allocator& a) {
  return a.long_kept + span_bytes().dirty + a.stats.cached_bytes;
}

void empty_cache() {
  gather_long_blocks(the_allocator);
  clean_short_blocks(the_allocator);
  release_spans(SIZE_MAX);
  unmap_spans();
}

void keep_within_bounds(Allocator& a) {
  if (held_bytes(a) <= most_held(a, 0)) return;
  gather_long_blocks(a);
  give_back(a, held_bytes(a) - most_held(a, 0));
}

bool age_cache(int turns) {
  Allocator& a = the_allocator;
  for (turns = std::min(turns, 1000); turns > 0; --turns) {
    int64_t& oldest = a.peaks[a.turn];
    a.faded_peak = std::max(a.faded_peak / 10 * 7, oldest);
    oldest = a.peak_now;
    a.turn = (a.turn + 1) % Allocator::turns;
    a.peak_now = a.stats.live_bytes;
  }
  if (!a.watch) a.live_limit = std::min(a.stats.peak_bytes, a.peak_now);
  a.short_stuck = std::min(a.short_stuck, a.stats.cached_bytes);
  keep_within_bounds(a);
  return cached_bytes(a) > quiet_bytes;
}

}  // namespace clew

// The heap of spans: best fit over free stretches, by state and length.
// May include: base.
// Invariant: clean spans begin and end with pages; the counts of bytes agree with the lists.
#include "base/spans.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "base/kept_blocks.h"
#include "base/lines.h"

namespace clew {

namespace {

constexpr size_t page = 4096;
// A remainder shorter than this stays with the block when a span is cut.
constexpr size_t crumb = 4096;

size_t up(size_t at, size_t to) { return (at + to - 1) / to * to; }
char* up(char* at, size_t to) {
  return reinterpret_cast<char*>(up(reinterpret_cast<uintptr_t>(at), to));
}
char* down(char* at, size_t to) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(at) / to * to);
}

// Free spans of one state, eight lists to each power of two.
class Bins {
  static constexpr int count = 8 * 42;
  Span* heads_[count] = {};
  uint64_t filled_[(count + 63) / 64] = {};

  static int of(size_t bytes) {  // the last whose shortest is no longer
    const int log = 63 - __builtin_clzll(bytes | 64);
    const auto part = static_cast<int>(bytes >> (log - 3) & 7);
    return std::min(count - 1, (log - 6) * 8 + part);
  }

 public:
  void insert(Span* s) {
    const int b = of(s->bytes);
    s->previous = nullptr;
    s->next = heads_[b];
    if (s->next) s->next->previous = s;
    heads_[b] = s;
    filled_[b / 64] |= uint64_t{1} << (b % 64);
  }
  void remove(Span* s) {
    if (s->next) s->next->previous = s->previous;
    if (s->previous) {
      s->previous->next = s->next;
      return;
    }
    const int b = of(s->bytes);
    heads_[b] = s->next;
    if (!s->next) filled_[b / 64] &= ~(uint64_t{1} << (b % 64));
  }
  // The first filled list from b on; null at the end.
  Span* from(int b) const {
    for (int word = b / 64; word < static_cast<int>(std::size(filled_)); ++word) {
      uint64_t bits = filled_[word];
      if (word == b / 64) bits &= ~uint64_t{0} << (b % 64);
      if (bits) return heads_[word * 64 + __builtin_ctzll(bits)];
    }
    return nullptr;
  }
  Span* fitting(size_t bytes) const {
    const int b = of(bytes);
    Span* best = nullptr;
    int looked_at = 0;
    for (Span* s = heads_[b]; s && looked_at < 16; s = s->next, ++looked_at)
      if (s->bytes >= bytes && (!best || s->bytes < best->bytes)) best = s;
    if (best || b + 1 >= count) return best;
    return from(b + 1);
  }
  // Calls visit(span) for all spans, longest first, until it returns false. visit() may remove its
  // span from the heap.
  template <class F> void longest_first(F visit) {
    for (int b = count - 1; b >= 0; --b)
      for (Span *s = heads_[b], *next; s; s = next) {
        next = s->next;
        if (!visit(s)) return;
      }
  }
};

constinit Bins dirty;
constinit Bins clean;
constinit Span* unused = nullptr;  // descriptors, linked through `next`
constinit SpanBytes counts;

Span* descriptor() {
  if (Span* s = unused) {
    unused = s->next;
    return new (s) Span();
  }
  void* at = allocate_lines(sizeof(Span));
  return at ? new (at) Span() : nullptr;
}
void drop(Span* s) {
  s->next = unused;
  unused = s;
}

void insert(Span* s, Span::State state) {
  s->state = state;
  if (state == Span::State::dirty) counts.dirty += static_cast<int64_t>(s->bytes);
  (state == Span::State::dirty ? dirty : clean).insert(s);
}
void remove(Span* s) {
  if (s->state == Span::State::dirty) counts.dirty -= static_cast<int64_t>(s->bytes);
  (s->state == Span::State::dirty ? dirty : clean).remove(s);
  s->state = Span::State::taken;
}

// Cuts `s`, which is in no list, and returns what lies from `bytes` on; null where it stays whole.
Span* cut(Span* s, size_t bytes) {
  if (s->bytes == bytes) return nullptr;
  Span* rest = descriptor();
  if (!rest) return nullptr;
  rest->begin = s->begin + bytes;
  rest->bytes = s->bytes - bytes;
  rest->below = s;
  rest->above = s->above;
  if (rest->above) rest->above->below = rest;
  s->above = rest;
  s->bytes = bytes;
  return rest;
}
// Takes its upper neighbour, which is in no list, into `s`.
void join(Span* s) {
  Span* gone = s->above;
  s->bytes += gone->bytes;
  s->above = gone->above;
  if (s->above) s->above->below = s;
  drop(gone);
}
bool is(const Span* s, Span::State state) { return s && s->state == state; }
// Puts a span that is in no list among those of the state.
void settle(Span* s, Span::State state) {
  if (is(s->above, state)) {
    remove(s->above);
    join(s);
  }
  if (is(s->below, state)) {
    s = s->below;
    remove(s);
    join(s);
  }
  insert(s, state);
}

Span* take(Span* s, size_t bytes) {
  if (s->bytes - bytes > std::min(crumb, bytes / 8))
    if (Span* rest = cut(s, bytes)) settle(rest, Span::State::dirty);
  counts.taken += static_cast<int64_t>(s->bytes);
  return s;
}

// The size of a region of address space for future blocks. A longer block gets a region of its own,
// mapped like any other memory. If the address space is limited, regions are shorter, because other
// code needs addresses as well.
size_t usual_region() {
  constexpr size_t usual = size_t{1} << 30;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return usual;
  return std::clamp<size_t>(up(limit.rlim_cur / 32, huge_page), huge_page, usual);
}

Span* map_region(size_t bytes, int flags) {
  void* got = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  auto* at = static_cast<char*>(got);
  char* begin = up(at, huge_page);
  if (begin > at) munmap(at, static_cast<size_t>(begin - at));
  if (size_t tail = static_cast<size_t>(at + huge_page - begin)) munmap(begin + bytes, tail);
  Span* s = descriptor();
  if (!s) {
    munmap(begin, bytes);
    return nullptr;
  }
  madvise(begin, bytes, MADV_HUGEPAGE);
  s->begin = begin;
  s->bytes = bytes;
  insert(s, Span::State::clean);
  return s;
}

Span* new_region(size_t bytes) {
  if (!keeps_freed_blocks) return nullptr;
  bytes = up(bytes, huge_page);
  const size_t usual = usual_region();
  if (bytes <= usual)
    if (Span* s = map_region(usual, MAP_NORESERVE)) return s;
  return map_region(bytes, 0);
}

// Gives the pages of a dirty span between two addresses back to the system. False if the system
// refuses.
bool release(Span* s, char* from, char* to) {
  if (madvise(from, static_cast<size_t>(to - from), MADV_DONTNEED) != 0) return false;
  remove(s);
  if (from > s->begin) {
    Span* rest = cut(s, static_cast<size_t>(from - s->begin));
    insert(s, Span::State::dirty);
    if (!rest) return false;
    s = rest;
  }
  if (Span* rest = cut(s, static_cast<size_t>(to - from)))
    insert(rest, Span::State::dirty);
  else if (s->begin + s->bytes != to) {
    insert(s, Span::State::dirty);
    return false;
  }
  settle(s, Span::State::clean);
  return true;
}

}  // namespace

Span* reuse_span(size_t bytes) {
  Span* s = dirty.fitting(bytes);
  if (!s) return nullptr;
  remove(s);
  return take(s, bytes);
}

Span* fresh_span(size_t bytes) {
  Span* s = clean.fitting(bytes);
  if (!s && !(s = new_region(bytes))) return nullptr;
  remove(s);
  // The system gives a huge page as a whole, so the rest of the last page counts as memory. The
  // next block starts in that rest.
  size_t before = 0;
  if (is(s->below, Span::State::dirty)) {
    before = std::min(s->below->bytes, bytes);
    if (before < s->below->bytes) before = 0;
  }
  char* end = up(s->begin + (bytes - before), huge_page);
  if (end < s->begin + s->bytes)
    if (Span* rest = cut(s, static_cast<size_t>(end - s->begin))) insert(rest, Span::State::clean);
  counts.fresh += static_cast<int64_t>(s->bytes);
  if (before) {
    s = s->below;
    remove(s);
    join(s);
  }
  return take(s, bytes);
}

void free_span(Span* s) {
  counts.taken -= static_cast<int64_t>(s->bytes);
  settle(s, Span::State::dirty);
}

// Whole huge pages first, because a broken huge page is slower to access.
void release_spans(size_t bytes) {
  int64_t least = counts.dirty - static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX));
  least = std::max<int64_t>(least, 0);
  for (const size_t unit : {huge_page, page})
    dirty.longest_first([&](Span* s) {
      if (counts.dirty <= least) return false;
      char* to = down(s->begin + s->bytes, unit);
      char* from = up(s->begin, unit);
      if (from >= to) return true;
      const auto over = static_cast<size_t>(counts.dirty - least);
      if (up(over, unit) < static_cast<size_t>(to - from)) from = to - up(over, unit);
      return release(s, from, to);
    });
}

void unmap_spans() {
  clean.longest_first([](Span* s) {
    if (!s->below && !s->above && munmap(s->begin, s->bytes) == 0) {
      remove(s);
      drop(s);
    }
    return true;
  });
}

const SpanBytes& span_bytes() { return counts; }

}  // namespace clew

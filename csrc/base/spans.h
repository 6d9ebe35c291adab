// Memory for long blocks: stretches of address space that are cut, joined again, and whose pages
// go back to the system while the addresses stay.
// May include: the standard library only.
// Invariant: the spans of a region tile it in order; two free neighbours of one state are joined.
#pragma once
#include <cstddef>
#include <cstdint>

namespace clew {

struct Span {
  // Dirty: free and backed by memory. Clean: free address space without memory.
  enum class State : uint8_t { taken, dirty, clean };
  char* begin = nullptr;
  size_t bytes = 0;
  Span* below = nullptr;  // the neighbours in the same region
  Span* above = nullptr;
  Span* previous = nullptr;  // in the list of spans of about this length
  Span* next = nullptr;
  State state = State::taken;
};

// All of these only with the GIL. `bytes` are multiples of two cache lines: the hardware fetches
// lines in such pairs, so a block that started within one would load a line of its neighbour.
//
// The shortest fitting stretch of memory that was used before; null where there is none.
Span* reuse_span(size_t bytes);
// One with memory of the system's; null where the system refuses.
Span* fresh_span(size_t bytes);
void free_span(Span* span);
// Gives at least so many bytes of free memory back, or all there are.
void release_spans(size_t bytes);
// Unmaps regions in which nothing is taken, addresses included.
void unmap_spans();

struct SpanBytes {
  int64_t taken = 0;
  int64_t dirty = 0;
  int64_t fresh = 0;  // ever had from the system
};
const SpanBytes& span_bytes();

}  // namespace clew

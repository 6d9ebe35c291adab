// Memory for long blocks: stretches of address space that are cut, joined again, and whose pages
// go back to the system while the addresses stay.
// May include: the standard library only.
// Invariant: the spans of a region tile it in order; two free neighbours of one state are joined.
#pragma once
#include <cstddef>
#include <cstdint>

namespace clew {

struct Span {
  // Dirty: free, with memory behind it. Clean: free, and nothing behind it but addresses.
  enum class State : uint8_t { taken, dirty, clean };
  char* begin = nullptr;
  size_t bytes = 0;
  Span* below = nullptr;  // the neighbours in the same region
  Span* above = nullptr;
  Span* previous = nullptr;  // of those of about one length
  Span* next = nullptr;
  State state = State::taken;
};

// All of these only with the GIL. `bytes` are multiples of two cache lines: a piece of a row that
// started within such a pair would have memory bring the other line, too.
//
// The shortest fitting stretch of memory that was used before; null where there is none.
Span* reuse_span(size_t bytes);
// One with memory of the system's; null where the system refuses.
Span* fresh_span(size_t bytes);
void free_span(Span* span);
// Gives at least so many bytes of free memory back, or all there are.
void release_spans(size_t bytes);
// Gives regions back, addresses included, in which nothing is taken.
void unmap_spans();

struct SpanBytes {
  int64_t taken = 0;
  int64_t dirty = 0;
  int64_t fresh = 0;  // ever had from the system
};
const SpanBytes& span_bytes();

}  // namespace clew

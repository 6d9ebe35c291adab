// Short blocks of whole cache lines, carved one behind the other from huge pages.
// May include: the standard library only.
// Invariant: a permanent block is never given back; who took it keeps it for use again.
#pragma once
#include <cstddef>

namespace clew {

constexpr size_t line_bytes = 64;

// Has the line at p on its way to the cache. The empty asm is an effect: a function that did
// nothing but this would be called by nobody.
inline void fetch_line(const void* p) {
  __builtin_prefetch(p, 1);
  asm volatile("");
}

// A block that starts with a line; null when there is no memory. What one operation takes lies
// together and on few pages: a graph that outgrew the caches is walked without a miss of the
// address tables for each block. Only with the GIL.
void* allocate_lines(size_t bytes);
// The same for blocks of which many fill pages by themselves: those that are free lie side by side,
// and memory need not stand behind them.
void* allocate_pages(size_t bytes);
// Takes the memory from behind the whole pages between two addresses, which are zero from then on.
void release_pages(char* begin, char* end);
// Whether it is permanent; others are given back with std::free().
bool is_permanent(const void* block);

}  // namespace clew

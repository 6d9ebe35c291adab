// Short blocks of whole cache lines, carved one behind the other from huge pages.
// May include: the standard library only.
// Invariant: a permanent block is never given back; its owner keeps it for reuse.
#pragma once
#include <cstddef>

namespace clew {

constexpr size_t huge_page = size_t{2} << 20;  // bytes

constexpr size_t line_bytes = 64;

// Prefetches the cache line at p, which must not be null: an address that is not mapped costs a
// walk through the page tables. The empty asm counts as a side effect; without it the compiler
// would drop calls of functions that only prefetch.
inline void fetch_line(const void* p) {
  __builtin_prefetch(p, 1);
  asm volatile("");
}

// A block that starts with a line; null when there is no memory. Blocks of one operation are
// neighbours on few pages, so walking a graph larger than the caches does not miss the TLB at each
// block. Only with the GIL.
void* allocate_lines(size_t bytes);
// The same for blocks that fill whole pages among themselves: free neighbours can give their pages
// back to the system.
void* allocate_pages(size_t bytes);
// Gives the memory of the whole pages between two addresses back to the system; they read as zero
// afterwards.
void release_pages(char* begin, char* end);
// Whether it is permanent; others are given back with std::free().
bool is_permanent(const void* block);

}  // namespace clew

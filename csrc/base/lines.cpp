// The regions that blocks are carved from: one for small blocks, one for others.
// May include: base.
// Invariant: a region is reserved once; its pages become memory when they are first written.
#include "base/lines.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace clew {

namespace {

constexpr size_t huge_page = size_t{2} << 20;
constexpr size_t page = 4096;

struct Region {
  size_t size;
  char* begin = nullptr;
  char* next = nullptr;
  char* end = nullptr;
  bool opened = false;

  void open() {
    opened = true;
#if !defined(__SANITIZE_ADDRESS__)  // there each block has red zones of its own
    void* got = mmap(nullptr, size + huge_page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return;
    const auto at = (reinterpret_cast<uintptr_t>(got) + huge_page - 1) / huge_page * huge_page;
    begin = next = reinterpret_cast<char*>(at);
    end = begin + size;
    madvise(begin, size, MADV_HUGEPAGE);
#endif
  }
  char* take(size_t bytes) {
    if (!opened) open();
    if (bytes > static_cast<size_t>(end - next)) return nullptr;
    char* block = next;
    next += bytes;
    return block;
  }
  bool holds(const char* at) const { return at >= begin && at < end; }
};
constexpr size_t small_most = 4096;
constinit Region small{size_t{256} << 20};
constinit Region large{size_t{2} << 30};

}  // namespace

void* allocate_lines(size_t bytes) {
  bytes = (bytes + line_bytes - 1) / line_bytes * line_bytes;
  char* block = nullptr;
  if (bytes <= small_most)
    block = small.take(bytes);
  else if (bytes <= carved_most)  // sizes are round: a line more, for neighbours' sets in the cache
    block = large.take(bytes + line_bytes);
  return block ? block : std::aligned_alloc(line_bytes, bytes);
}

bool is_permanent(const void* block) {
  const auto* at = static_cast<const char*>(block);
  return small.holds(at) || large.holds(at);
}

bool release_pages(void* block, size_t bytes) {
  const auto begin = (reinterpret_cast<uintptr_t>(block) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(block) + bytes) / page * page;
  return begin < end && madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED) == 0;
}

}  // namespace clew

// The region that small blocks are carved from.
// May include: base.
// Invariant: the region is reserved once; its pages become memory when they are first written.
#include "base/lines.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace clew {

namespace {

constexpr size_t huge_page = size_t{2} << 20;
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t region_bytes = 0;  // each block has its own red zones
#else
constexpr size_t region_bytes = size_t{256} << 20;
#endif

struct Region {
  char* begin = nullptr;
  char* next = nullptr;
  char* end = nullptr;
  bool opened = false;
  void open() {
    opened = true;
    if (region_bytes == 0) return;
    void* got = mmap(nullptr, region_bytes + huge_page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return;
    const auto at = (reinterpret_cast<uintptr_t>(got) + huge_page - 1) / huge_page * huge_page;
    begin = next = reinterpret_cast<char*>(at);
    end = begin + region_bytes;
    madvise(begin, region_bytes, MADV_HUGEPAGE);
  }
};
constinit Region region;

}  // namespace

void* allocate_lines(size_t bytes) {
  bytes = (bytes + line_bytes - 1) / line_bytes * line_bytes;
  if (bytes <= small_block_most) {
    if (!region.opened) region.open();
    if (bytes <= static_cast<size_t>(region.end - region.next)) {
      char* block = region.next;
      region.next += bytes;
      return block;
    }
  }
  return std::aligned_alloc(line_bytes, bytes);
}

bool is_permanent(const void* block) {
  const auto* at = static_cast<const char*>(block);
  return at >= region.begin && at < region.end;
}

}  // namespace clew

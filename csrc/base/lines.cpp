// The regions that short blocks are carved from.
// May include: base.
// Invariant: a region is reserved once; its pages become memory when they are first written.
#include "base/lines.h"
#include "base/kept_blocks.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace clew {

namespace {

struct Region {
  char* begin = nullptr;
  char* end = nullptr;
};
constexpr size_t region_bytes = size_t{256} << 20;
constexpr size_t regions_most = 1024;
constinit Region regions[regions_most];
constinit size_t regions_count = 0;
// The unused rest of the latest regions for objects and for pages.
constinit Region objects, pages;

bool open_region(Region& left) {
  if (regions_count == regions_most) return false;
  // Tries smaller regions if address space is limited.
  for (size_t bytes = region_bytes; bytes >= huge_page; bytes /= 8) {
    void* got = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) continue;
    const auto at = (reinterpret_cast<uintptr_t>(got) + huge_page - 1) / huge_page * huge_page;
    auto* begin = reinterpret_cast<char*>(at);
    left = regions[regions_count++] = {begin, begin + bytes};
    madvise(begin, bytes, MADV_HUGEPAGE);
    return true;
  }
  return false;
}

void* carve(Region& left, size_t bytes) {
  if (!keeps_freed_blocks) {
    void* block = nullptr;
    return posix_memalign(&block, line_bytes, bytes) == 0 ? block : nullptr;
  }
  bytes = (bytes + line_bytes - 1) / line_bytes * line_bytes;
  if (bytes > static_cast<size_t>(left.end - left.begin) &&
      (bytes > huge_page || !open_region(left)))
    return std::aligned_alloc(line_bytes, bytes);
  char* block = left.begin;
  left.begin += bytes;
  return block;
}

}  // namespace

void* allocate_lines(size_t bytes) { return carve(objects, bytes); }
void* allocate_pages(size_t bytes) { return carve(pages, bytes); }
void release_pages(char* begin, char* end) {
  madvise(begin, static_cast<size_t>(end - begin), MADV_DONTNEED);
}

bool is_permanent(const void* block) {
  const auto* at = static_cast<const char*>(block);
  for (size_t i = 0; i < regions_count; ++i)
    if (at >= regions[i].begin && at < regions[i].end) return true;
  return false;
}

}  // namespace clew

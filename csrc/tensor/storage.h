// Storage: the bytes that tensors view, with their version counter; and the caching allocator
// behind it.
// May include: base.
// Invariant: the reference count and the version are touched only with the GIL held.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace clew {

// Pending, which only a storage says: on the CPU, with calls that wait before the bytes are right
// (graph/deferral.h).
enum class Device : uint8_t { CPU, Meta, Pending };
constexpr const char* name(Device d) { return d == Device::Meta ? "meta" : "cpu"; }

struct Origin;  // graph/provenance.h
struct Span;    // base/spans.h

struct alignas(64) Storage {  // one line of the cache
  uint32_t refs = 1;
  uint32_t version = 0;  // counts in-place writes through any view
  Device device = Device::CPU;
  bool resizable = true;  // false if another owner has the bytes (NumPy, DLPack)
  uint16_t size_class = 0;
  uint32_t awaited : 31 = 0;  // operands of waiting calls that lie here
  uint32_t lent : 1 = 0;      // the bytes may be written unseen through NumPy, DLPack or an address
  void* data = nullptr;
  size_t nbytes = 0;
  // For foreign memory: releases `owner`. The owner of a pending storage is what computes its bytes
  // (program/waiting.h); that of a storage whose contents can be recomputed is their Content
  // (program/recipe.h).
  void (*release)(Storage*) = nullptr;
  void* owner = nullptr;
  Origin* writer = nullptr;  // owned: where the last counted write came from
  Span* span = nullptr;      // what a long block lies in

  // 64-byte aligned, uninitialised. Throws OutOfMemory when the bytes cannot be had.
  static Storage* allocate(size_t nbytes, Device device = Device::CPU);
  static Storage* wrap(void* data, size_t nbytes, void* owner, void (*release)(Storage*));
  void resize(size_t new_nbytes);
  // Bytes for a storage that was allocated as pending, without any.
  void take_bytes();
  // Takes the bytes of another storage of the same size, which then has none.
  void take_bytes_of(Storage* other);
  // Whether settle_before_write() must be called before the bytes are written.
  bool is_looked_after() const {
    return device == Device::Pending || awaited || (release && resizable);
  }
  // References that no waiting call holds.
  uint32_t seen_refs() const { return refs - awaited; }
  // Whether code outside the library may write the bytes unnoticed.
  bool is_exposed() const { return lent || !resizable; }
  char* at(int64_t offset) const { return static_cast<char*>(data) + offset; }
  void incref() { ++refs; }
  void decref() {
    if (--refs == 0) destroy(this);
  }

 private:
  static void destroy(Storage*);
};
static_assert(sizeof(Storage) == 64);

// Called for every block that is allocated (bytes > 0) or freed (bytes < 0). Null removes the
// watch.
using StorageWatch = void (*)(void* data, int64_t bytes);
void watch_storages(StorageWatch watch);
// Lets go of a storage's writer (set by graph/).
extern void (*release_origin)(Origin*);

struct MemoryStats {
  int64_t live_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t cached_bytes = 0;
  int64_t fresh_bytes = 0;  // ever had from the system, for blocks above 4 KB
  int64_t allocations = 0;
};
MemoryStats memory_stats();
void reset_peak_memory_stats();
// Raises the recorded peak to at least this value.
void raise_peak_memory_stats(int64_t peak_bytes);
void empty_cache();
// Ages the cache by `turns` turns of its clock: old peaks of live bytes are forgotten, and cached
// memory beyond the new bound is given back. Returns whether there may be more to give back.
bool age_cache(int turns = 1);

}  // namespace clew

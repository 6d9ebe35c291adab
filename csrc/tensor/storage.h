// Storage: the bytes that tensors view, with their version counter; and the caching allocator
// behind it.
// May include: base.
// Invariant: the reference count and the version are touched only with the GIL held.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace clew {

// Where bytes lie: a kind of device, and which one of its kind. The CPU and meta are one each.
enum class DeviceKind : uint8_t { CPU, Meta };
class Device {
  uint8_t code_;  // 3 bits of the kind, 5 of the index

 public:
  static constexpr int most = 32;  // of a kind
  constexpr Device(DeviceKind kind = DeviceKind::CPU, int index = 0)
      : code_(static_cast<uint8_t>(static_cast<int>(kind) + 8 * index)) {}
  constexpr DeviceKind kind() const { return static_cast<DeviceKind>(code_ % 8); }
  constexpr int index() const { return code_ / 8; }
  constexpr bool operator==(const Device&) const = default;
  static const Device CPU, Meta;
};
inline constexpr Device Device::CPU{DeviceKind::CPU}, Device::Meta{DeviceKind::Meta};
constexpr const char* name(Device d) { return d.kind() == DeviceKind::Meta ? "meta" : "cpu"; }

// Whether a storage's bytes can be used.
enum class Bytes : uint8_t {
  ready,
  pending,  // calls that wait must run before (graph/deferral.h)
  none,     // of meta: there are sizes only
};
// What a new storage is to be.
struct NewBytes {
  Device device;
  Bytes state;
  constexpr NewBytes(Device d)
      : device(d), state(d.kind() == DeviceKind::Meta ? Bytes::none : Bytes::ready) {}
  constexpr NewBytes(Device d, Bytes state) : device(d), state(state) {}
  static constexpr NewBytes pending(Device d = {}) { return {d, Bytes::pending}; }
};

struct Origin;  // graph/provenance.h
struct Span;    // base/spans.h

struct alignas(64) Storage {  // one line of the cache
  uint32_t refs = 1;
  uint32_t version = 0;  // counts in-place writes through any view
  Device device;
  Bytes state = Bytes::ready;
  uint16_t size_class = 0;
  uint32_t awaited : 25 = 0;   // operands of waiting calls that lie here
  uint32_t moved : 1 = 0;      // its tensors came from another storage, versions and all
  uint32_t arrays : 4 = 0;     // NumPy's and DLPack's over the bytes, while they live
  uint32_t lent : 1 = 0;       // for good: an address was asked for, or there were too many arrays
  uint32_t resizable : 1 = 1;  // 0 if another owner has the bytes (NumPy, DLPack)
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
  static Storage* allocate(size_t nbytes, NewBytes what = Device::CPU);
  static Storage* wrap(void* data, size_t nbytes, void* owner, void (*release)(Storage*));
  void resize(size_t new_nbytes);
  // Bytes for a storage that was allocated as pending, without any.
  void take_bytes();
  // Takes the bytes of another storage of the same size, which then has none.
  void take_bytes_of(Storage* other);
  // Whether settle_before_write() must be called before the bytes are written.
  bool is_looked_after() const { return is_pending() || awaited || (release && resizable); }
  bool is_ready() const { return state == Bytes::ready; }
  bool is_pending() const { return state == Bytes::pending; }
  bool is_meta() const { return state == Bytes::none; }
  // References that no waiting call holds.
  uint32_t seen_refs() const { return refs - awaited; }
  // Whether code outside the library may write the bytes unnoticed.
  bool is_exposed() const { return lent || !resizable; }
  // Another library's array over the bytes begins: until the last one goes they are exposed.
  // Whether end_array() must be called; not so for memory that is foreign anyway.
  bool begin_array() {
    if (!resizable && !arrays) return false;
    resizable = 0;
    if (arrays == most_arrays) lent = 1;
    if (lent) return false;
    ++arrays;
    return true;
  }
  void end_array() {
    if (--arrays == 0 && !lent) resizable = 1;
  }
  char* at(int64_t offset) const { return static_cast<char*>(data) + offset; }
  void incref() { ++refs; }
  void decref() {
    if (--refs == 0) destroy(this);
  }

 private:
  static constexpr uint32_t most_arrays = 15;
  static void destroy(Storage*);
};
static_assert(sizeof(Storage) == 64);

// That an array of another library lies over a storage, until this goes.
class ArrayOver {
  Storage* storage_ = nullptr;  // counted: the tensor may get another one

 public:
  ArrayOver() = default;
  explicit ArrayOver(Storage* s) : storage_(s->begin_array() ? s : nullptr) {
    if (storage_) storage_->incref();
  }
  ArrayOver(ArrayOver&& from) noexcept : storage_(from.storage_) { from.storage_ = nullptr; }
  ArrayOver& operator=(ArrayOver&& from) noexcept {
    Storage* mine = storage_;
    storage_ = from.storage_;
    from.storage_ = mine;
    return *this;
  }
  ~ArrayOver() {
    if (!storage_) return;
    storage_->end_array();
    storage_->decref();
  }
  ArrayOver(const ArrayOver&) = delete;
};

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

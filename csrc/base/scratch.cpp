// Growing and giving back what a thread keeps.
// May include: base.
// Invariant: no block is held when growing fails.
#include "base/scratch.h"

#include <cstdlib>
#include <new>
#include <utility>

namespace clew {

void Scratch::grow(size_t need) {
  std::free(std::exchange(data_, nullptr));
  bytes_ = 0;
  data_ = std::aligned_alloc(64, (need + 63) / 64 * 64);
  if (!data_) throw std::bad_alloc();
  bytes_ = need;
}

void Scratch::trim(size_t megabytes) {
  if (bytes_ <= megabytes << 20) return;
  std::free(std::exchange(data_, nullptr));
  bytes_ = 0;
}

Scratch::~Scratch() { std::free(data_); }

namespace {

constinit int scratch_count = 0;
// A thread's scratch of all rooms, from its first use to the end of the thread.
struct Rooms {
  Scratch* all = nullptr;
  ~Rooms() { delete[] std::exchange(all, nullptr); }
};
constinit thread_local Rooms rooms;

}  // namespace

ScratchAside::ScratchAside() : before_(std::exchange(rooms.all, nullptr)) {}
ScratchAside::~ScratchAside() {
  delete[] rooms.all;
  rooms.all = before_;
}

LocalScratch::LocalScratch() : index_(scratch_count++) {}

Scratch& LocalScratch::here() const {
  if (!rooms.all) rooms.all = new Scratch[static_cast<size_t>(scratch_count)];
  return rooms.all[index_];
}

}  // namespace clew

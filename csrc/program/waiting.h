// Waiting: what holds calls that have not run yet, and is asked to run them.
// May include: base, program/report.h.
// Invariant: the owner of a pending storage is a Waiting.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/report.h"
#include "tensor/storage.h"

namespace clew::program {

class Waiting {
  uint32_t refs_ = 1;

 public:
  Waiting() = default;
  Waiting(const Waiting&) = delete;

  // Runs what waits; returns at once when nothing does. Throws what a call throws.
  virtual void run(Ending why) = 0;
  virtual size_t waiting() const = 0;

  // Counted: by the storages that wait for it, and by whoever records or runs it.
  void incref() { ++refs_; }
  void decref() {
    if (--refs_ == 0) delete this;
  }

 protected:
  virtual ~Waiting() = default;
  // The storage waits for this from now on, and until leave().
  void await(Storage* s);
};

// The storage of a result dies, or its last call has run: it does not wait any more.
void leave(Storage* s);

// All that hold calls, of all threads.
std::vector<Waiting*>& unfinished();
void strike(Waiting* w);

}  // namespace clew::program

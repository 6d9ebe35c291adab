// Waiting: an object that holds calls which have not run yet, and runs them on request.
// May include: base, graph/modes.h, program/report.h.
// Invariant: the owner of a pending storage is a Waiting.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/modes.h"
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

  // Counted by the storages that wait for it and by the code that records or runs it.
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

// All objects with waiting calls, of all threads.
std::vector<Waiting*>& unfinished();
void strike(Waiting* w);

// Clears the modes of the thread that triggers the run, so that waiting calls run without them.
class PlainModes {
  Modes before_;

 public:
  PlainModes() : before_(modes) {
    modes.grad = modes.inference = modes.vmap = modes.deferred = false;
    modes.intercept = 0;
    modes.saved_hooks = 0;
    modes.disposable = nullptr;
    modes.running = nullptr;
  }
  ~PlainModes() { modes = before_; }
  PlainModes(const PlainModes&) = delete;
};

}  // namespace clew::program

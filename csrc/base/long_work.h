// Long work on raw memory: other Python threads run meanwhile, and Ctrl-C ends it.
// May include: the standard library only.
// Invariant: while a LongWork that released the GIL lives, its thread touches no Python object and
// no count; what it reads and writes is held by a Held scope (tensor/kernel_frame.h).
#pragma once
#include <atomic>
#include <cstdint>

namespace clew {

// Elements of simple work below which the switch costs more than it gives.
constexpr int64_t long_work_elements = int64_t{1} << 18;

// What the interpreter does, filled in by graph/gil.cpp.
struct Interpreter {
  void* (*leave)() = nullptr;         // lets other threads run
  void (*enter)(void*) = nullptr;     // waits for its turn again
  bool (*can_interrupt)() = nullptr;  // this thread runs signal handlers
  bool (*interrupted)() = nullptr;    // runs them; true when one of them raised
  void (*raise)() = nullptr;          // throws what stands for the exception that is set
};
extern Interpreter interpreter;

// all_work_ends is set once, when the process ends, and ends all long work. at_long_work is the
// number of threads in long work.
extern std::atomic<bool> all_work_ends;
extern std::atomic<int> at_long_work;

// Asks the threads that share a piece of work to end it.
class Stop {
  std::atomic<bool> requested_{false};
  int64_t next_look_ = 0;  // nanoseconds; of the thread that began the work

 public:
  bool interruptible = false;  // the thread that began the work runs signal handlers
  bool requested() const { return requested_.load(std::memory_order_relaxed); }
  // Now and then lets the interpreter run its signal handlers.
  bool look(void*& left);
};

// What the current thread is doing.
struct Stretch {
  int held = 0;           // open Held scopes: the GIL may be released
  void* left = nullptr;   // the thread state of the LongWork that released the GIL
  Stop* stop = nullptr;   // of the work in progress
  bool began = false;     // this thread began that work
  bool look_due = false;  // long work has ended here since signals were looked for
  int whole = 0;          // open Whole scopes: work is not interrupted
};
extern constinit thread_local Stretch stretch;

// Whether the work in progress should end: asked between blocks of 10 us or more.
inline bool stopped() {
  Stretch& s = stretch;
  if (!s.stop) return false;
  return s.began ? s.stop->look(s.left) : s.stop->requested();
}
// Ends the calling thread's work when stopped() said so; after all pieces have ended.
inline void end_if_stopped() {
  const Stretch& s = stretch;
  if (s.stop && s.began && s.stop->requested()) [[unlikely]]
    interpreter.raise();
}

// The same on any thread of the work, whose pieces pass exceptions on.
inline void stop_point() {
  if (stopped()) [[unlikely]]
    interpreter.raise();
}

// After long work, between operations: runs signal handlers, and throws when one of them raised.
inline void look_for_signals() {
  if (stretch.look_due) [[unlikely]] {
    stretch.look_due = false;
    if (interpreter.interrupted()) interpreter.raise();
  }
}

// A long stretch of work; the outermost one counts. Kernels that work in several passes, or on one
// thread, begin with one; parallel_for() does by itself.
class LongWork {
  bool active_ = false;
  Stop stop_;
  void begin();
  void end();

 public:
  explicit LongWork(int64_t elements) {
    if (elements >= long_work_elements && stretch.held > 0 && !stretch.left && !stretch.stop)
      begin();
  }
  ~LongWork() {
    if (active_) end();
  }
  LongWork(const LongWork&) = delete;
};

// A worker's share in the work of another thread.
class SharedStretch {
  Stretch before_;

 public:
  explicit SharedStretch(Stop* stop) : before_(stretch) {
    if (stretch.stop != stop) stretch = {.stop = stop};
  }
  ~SharedStretch() { stretch = before_; }
  SharedStretch(const SharedStretch&) = delete;
};

// While one lives, long work may release the GIL, because the caller holds the bytes and sizes.
class WithPauses {
 public:
  WithPauses() { ++stretch.held; }
  ~WithPauses() { --stretch.held; }
  WithPauses(const WithPauses&) = delete;
};

// While one lives, signals do not end long work, because half-written results could not be redone.
class Whole {
 public:
  Whole() { ++stretch.whole; }
  ~Whole() { --stretch.whole; }
  Whole(const Whole&) = delete;
};

// While one lives, the GIL is not released, so no other thread sees what is being written.
class WithoutPause {
  int before_;

 public:
  WithoutPause() : before_(stretch.held) { stretch.held = 0; }
  ~WithoutPause() { stretch.held = before_; }
  WithoutPause(const WithoutPause&) = delete;
};

}  // namespace clew

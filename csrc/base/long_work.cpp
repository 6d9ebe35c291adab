// Letting go of the interpreter for long work, and looking for signals while it lasts.
// May include: base.
// Invariant: a signal handler that runs in the midst of work finds the thread as if it did none.
#include "base/long_work.h"

#include <utility>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/scratch.h"

namespace clew {

Interpreter interpreter;
constinit thread_local Stretch stretch;
std::atomic<bool> all_work_ends{false};
std::atomic<int> at_long_work{0};

namespace {
constexpr int64_t look_every = 50'000'000;  // nanoseconds
}  // namespace

void LongWork::begin() {
  if (!interpreter.leave) return;
  active_ = true;
  stretch.left = interpreter.leave();
  stop_.interruptible = stretch.whole == 0 && interpreter.can_interrupt();
  stretch.stop = &stop_;
  stretch.began = true;
  at_long_work.fetch_add(1);
}

void LongWork::end() {
  at_long_work.fetch_sub(1);
  stretch.look_due = stop_.interruptible;
  stretch.stop = nullptr;
  stretch.began = false;
  interpreter.enter(std::exchange(stretch.left, nullptr));
}

bool Stop::look(void*& left) {
  if (requested()) return true;
  if (all_work_ends.load(std::memory_order_relaxed)) {
    requested_.store(true, std::memory_order_relaxed);
    return true;
  }
  if (!interruptible) return false;
  const int64_t at = nanoseconds_now();
  if (next_look_ == 0) next_look_ = at + look_every;
  if (at < next_look_) return false;
  // A handler may use tensors: it gets scratch of its own, since ours is in use.
  const Stretch before = std::exchange(stretch, Stretch());
  interpreter.enter(before.left);
  {
    const ScratchAside aside;
    if (interpreter.interrupted()) requested_.store(true, std::memory_order_relaxed);
  }
  stretch = before;
  left = interpreter.leave();
  next_look_ = nanoseconds_now() + look_every;
  return requested();
}

}  // namespace clew

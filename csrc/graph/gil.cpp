// The interpreter's side of long work: its lock, its signals, its end.
// May include: graph/node.h for PythonError.
// Invariant: a thread that comes back after the interpreter has begun to end never runs on.
#include "graph/gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/long_work.h"
#include "graph/node.h"

namespace clew {

namespace {

// Threads that wait for the GIL after long work. While the interpreter ends, such a thread would be
// unwound through frames that free objects.
std::atomic<int> coming_back{0};

// Whether this is the main thread, where Python runs signal handlers.
bool is_main_thread() { return getpid() == gettid(); }

void* leave() { return PyEval_SaveThread(); }

void enter(void* state) {
  coming_back.fetch_add(1);
  if (all_work_ends.load() && !is_main_thread()) {
    coming_back.fetch_sub(1);
    for (;;) pause();  // the process ends without it
  }
  PyEval_RestoreThread(static_cast<PyThreadState*>(state));
  coming_back.fetch_sub(1);
}

// A signal handler must not inherit this thread's accumulating mode or its waiting calls.
bool interrupted() {
  const WithoutPause own;
  const bool accumulating = std::exchange(modes.accumulating, false);
  const bool raised = PyErr_CheckSignals() != 0;
  modes.accumulating = accumulating;
  return raised;
}

[[noreturn]] void raise() { throw PythonError(); }

}  // namespace

void init_interpreter() {
  interpreter = {.leave = leave,
                 .enter = enter,
                 .can_interrupt = is_main_thread,
                 .interrupted = interrupted,
                 .raise = raise};
}

void interpreter_ends() {
  all_work_ends.store(true);
  // Let threads already waiting for the GIL take it; wait at most 2 s for long kernels.
  PyThreadState* state = PyEval_SaveThread();
  constexpr int patience = 20'000;
  for (int k = 0; coming_back.load() > 0 || (at_long_work.load() > 0 && k < patience); ++k)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  PyEval_RestoreThread(state);
}

}  // namespace clew

// The thread that gives cached memory back to the system while the process is idle.
// May include: tensor/allocator.h; Python.h for the GIL.
// Invariant: it runs only while something is cached, and never while the interpreter goes.
#include <Python.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "tensor/allocator.h"

namespace clew {

namespace {

struct Clock {
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
  int threads = 0;  // that may still ask for the GIL
};

bool running = false;  // with the GIL
bool refused = false;  // there is no thread to be had, or the interpreter goes
Clock* the_clock = nullptr;

void* age(void* own) {
  auto* clock = static_cast<Clock*>(own);
  std::unique_lock lock(clock->mutex);
  for (bool more = true; more;) {
    if (clock->changed.wait_for(lock, std::chrono::seconds(2), [&] { return clock->stopped; }))
      break;
    lock.unlock();
    const PyGILState_STATE state = PyGILState_Ensure();
    more = age_cache();
    if (!more) {
      running = false;
      watch_storages(the_allocator.watch);  // the next one to go beyond the limit starts it again
    }
    PyGILState_Release(state);
    lock.lock();
  }
  --clock->threads;
  clock->changed.notify_all();
  return nullptr;
}

// A forked process has one thread. What the other had locked stays locked.
void after_fork() {
  the_clock = nullptr;
  if (!running) return;
  running = false;
  watch_storages(the_allocator.watch);
}
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, after_fork);

}  // namespace

bool is_ageing() { return running || refused; }

void start_ageing() {
  if (is_ageing()) return;
  if (!the_clock) the_clock = new Clock();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, size_t{256} << 10);
  // Signals are for the threads that wait for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_t thread;
  {
    const std::lock_guard lock(the_clock->mutex);
    running = pthread_create(&thread, &attributes, age, the_clock) == 0;
    the_clock->threads += running;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  refused = !running;
}

void stop_ageing() {
  refused = true;
  Clock* clock = the_clock;
  if (!clock) return;
  Py_BEGIN_ALLOW_THREADS;
  std::unique_lock lock(clock->mutex);
  clock->stopped = true;
  clock->changed.notify_all();
  clock->changed.wait(lock, [&] { return clock->threads == 0; });
  Py_END_ALLOW_THREADS;
}

}  // namespace clew

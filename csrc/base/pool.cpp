// The pool's threads: how jobs are published, pieces taken, and how threads wait.
// May include: base.
// Invariant: nothing here is ever destroyed: a thread that sleeps or works when the process ends
// finds everything in its place. A forked child starts with no threads and no jobs.
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/futex.h"
#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace clew::pool {

Nanoseconds now() { return nanoseconds_now(); }

namespace {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

// How numbers round and whether denormal ones are kept: a piece computes alike in every thread.
uint32_t arithmetic() {
#ifdef __SSE__
  return _mm_getcsr() & ~uint32_t{_MM_EXCEPT_MASK};
#else
  return 0;
#endif
}
void set_arithmetic([[maybe_unused]] uint32_t mode) {
#ifdef __SSE__
  if (mode != arithmetic()) _mm_setcsr(mode);
#endif
}

void pause() {
#ifdef __SSE__
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A job that a thread has published. The word holds the number of the job (of this slot) above the
// number of the next piece to be taken. The other fields are written only while no piece of the
// previous job is left. So a thread that reads them and then finds the word unchanged has read the
// fields of that job.
struct alignas(64) Slot {
  std::atomic<uint64_t> word{0};
  std::atomic<int64_t> count{0};
  std::atomic<Run> run{nullptr};
  std::atomic<void*> what{nullptr};
  std::atomic<uint32_t> arithmetic{0};
  std::atomic<bool> used{false};
  // Pieces that are done; the upper bit says that the owner sleeps until all are.
  alignas(64) std::atomic<uint32_t> done{0};
};
constexpr int piece_bits = 21;
constexpr uint64_t piece_mask = (uint64_t{1} << piece_bits) - 1;
constexpr uint32_t owner_sleeps = uint32_t{1} << 31;
static_assert(pieces_most < static_cast<int64_t>(piece_mask));

// The number of threads that can publish jobs at once; any further thread runs its job alone.
constexpr int slot_count = 16;
constinit Slot slots[slot_count];

// Bit k: slot k may have pieces left.
alignas(64) constinit std::atomic<uint32_t> open{0};
// Rises with every job: what threads without work watch.
constinit std::atomic<uint32_t> epoch{0};
alignas(64) constinit std::atomic<int32_t> sleeping{0};
constinit std::atomic<int32_t> watching{0};
// Until then the processors have too much to do for threads to watch for work in a loop.
constinit std::atomic<Nanoseconds> crowded_until{0};

constinit std::atomic<int32_t> started{0};
constinit std::atomic<bool> starting{false};
constinit std::atomic<Nanoseconds> start_again{0};

constinit thread_local int own_number = 0;

// Takes pieces of a slot's job, as long as there are any, and runs them.
bool work_at(Slot& s) {
  bool any = false;
  uint64_t word = s.word.load(memory_order_acquire);
  for (;;) {
    const int64_t count = s.count.load(memory_order_acquire);
    const Run run = s.run.load(memory_order_relaxed);
    void* what = s.what.load(memory_order_relaxed);
    const uint32_t mode = s.arithmetic.load(memory_order_relaxed);
    const auto number = static_cast<int64_t>(word & piece_mask);
    if (number >= count) return any;
    if (!s.word.compare_exchange_weak(word, word + 1, memory_order_acq_rel, memory_order_acquire))
      continue;
    any = true;
    set_arithmetic(mode);
    run(what, number);
    const uint32_t done = s.done.fetch_add(1, memory_order_acq_rel) + 1;
    if (done == (owner_sleeps | static_cast<uint32_t>(count))) wake(s.done, 1);
    word = s.word.load(memory_order_acquire);
  }
}

// Looks for work in all slots, each thread from its own on: jobs get helpers alike.
bool work() {
  bool any = false;
  for (uint32_t left = open.load(memory_order_acquire); left != 0;) {
    const uint32_t before = left & ((uint32_t{1} << own_number % slot_count) - 1);
    const uint32_t from = left ^ before;
    const int k = __builtin_ctz(from ? from : before);
    any |= work_at(slots[k]);
    left &= ~(uint32_t{1} << k);
  }
  return any;
}

// Calls until(), in a loop, for so long; whether it came true. A hole in the time says that the
// processor was taken from this thread: then waiting in loops is at the cost of others.
constexpr Nanoseconds crowded_hole = 100'000, crowded_pause = 20'000'000;
template <class F> bool watch(Nanoseconds most, F until) {
  if (until()) return true;
  const Nanoseconds start = now();
  if (start < crowded_until.load(memory_order_relaxed)) return false;
  for (Nanoseconds before = start;;) {
    for (int k = 0; k < 16; ++k) {
      if (until()) return true;
      pause();
    }
    const Nanoseconds time = now();
    if (time - before > crowded_hole)
      crowded_until.store(time + crowded_pause, memory_order_relaxed);
    if (time - start > most || time - before > crowded_hole) return until();
    before = time;
  }
}

constexpr Nanoseconds helper_watches = 200'000, owner_watches = 100'000;

void* live(void* number) {
  own_number = static_cast<int>(reinterpret_cast<intptr_t>(number));
  for (bool useful = true;;) {
    const uint32_t seen = epoch.load(std::memory_order_seq_cst);
    if (work()) {
      useful = true;
      continue;
    }
    auto more = [seen] { return epoch.load(memory_order_acquire) != seen; };
    if (useful) {
      watching.fetch_add(1, memory_order_relaxed);
      const bool found = watch(helper_watches, more);
      watching.fetch_sub(1, memory_order_relaxed);
      if (found) continue;
    }
    sleeping.fetch_add(1, std::memory_order_seq_cst);
    sleep_while(epoch, seen);
    sleeping.fetch_sub(1, memory_order_relaxed);
    useful = false;
  }
}

// The most threads that are started, whatever count was requested.
int64_t helpers_most() {
  static const int64_t most = std::max<int64_t>(31, 2 * std::thread::hardware_concurrency());
  return most;
}

void start(int64_t wanted) {
  if (starting.exchange(true, memory_order_acquire)) return;
  if (now() >= start_again.load(memory_order_relaxed)) {
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started.load(memory_order_relaxed) < wanted) {
      pthread_t thread;
      const intptr_t number = started.load(memory_order_relaxed) + 1;
      if (pthread_create(&thread, nullptr, live, reinterpret_cast<void*>(number)) != 0) {
        start_again.store(now() + 1'000'000'000, memory_order_relaxed);
        break;
      }
      pthread_detach(thread);
      started.fetch_add(1, memory_order_relaxed);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  starting.store(false, memory_order_release);
}

Slot* take_slot() {
  for (Slot& s : slots) {
    if (!s.used.load(memory_order_relaxed) && !s.used.exchange(true, memory_order_acquire))
      return &s;
  }
  return nullptr;
}

// Fork leaves the child the thread that called it.
void after_fork() {
  own_number = 0;
  for (Slot& s : slots) {
    s.word.fetch_or(piece_mask, memory_order_relaxed);
    s.used.store(false, memory_order_relaxed);
  }
  open.store(0, memory_order_relaxed);
  sleeping.store(0, memory_order_relaxed);
  watching.store(0, memory_order_relaxed);
  started.store(0, memory_order_relaxed);
  starting.store(false, memory_order_relaxed);
  start_again.store(0, memory_order_relaxed);
}
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, after_fork);

}  // namespace

int worker() { return own_number; }

Nanoseconds run(int64_t first, int64_t count, int64_t helpers, Run run, void* what) {
  helpers = std::min({helpers, count - first - 1, helpers_most()});
  if (helpers > 0 && started.load(memory_order_relaxed) < helpers) start(helpers);
  Slot* s = helpers > 0 && count < pieces_most ? take_slot() : nullptr;
  if (!s) {
    for (int64_t number = first; number < count; ++number) run(what, number);
    return 0;
  }
  // Closed first: a thread that sees the new count of pieces must not find the old word.
  const uint64_t job = (s->word.load(memory_order_relaxed) >> piece_bits) + 1;
  s->word.fetch_or(piece_mask, memory_order_relaxed);
  s->count.store(count, memory_order_release);
  s->run.store(run, memory_order_relaxed);
  s->what.store(what, memory_order_relaxed);
  s->arithmetic.store(arithmetic(), memory_order_relaxed);
  s->done.store(static_cast<uint32_t>(first), memory_order_relaxed);
  s->word.store(job << piece_bits | static_cast<uint64_t>(first), memory_order_release);
  const uint32_t bit = uint32_t{1} << (s - slots);
  open.fetch_or(bit, memory_order_release);
  epoch.fetch_add(1, std::memory_order_seq_cst);
  const int64_t asleep = sleeping.load(std::memory_order_seq_cst);
  const int64_t missing = helpers - watching.load(memory_order_relaxed);
  if (asleep > 0 && missing > 0) wake(epoch, static_cast<int>(std::min(asleep, missing)));
  work_at(*s);
  open.fetch_and(~bit, memory_order_relaxed);
  const auto all = static_cast<uint32_t>(count);
  Nanoseconds waited = 0;
  if (s->done.load(memory_order_acquire) != all) {
    const Nanoseconds start = now();
    if (!watch(owner_watches, [&] { return s->done.load(memory_order_acquire) == all; })) {
      uint32_t done = s->done.fetch_or(owner_sleeps, memory_order_acq_rel) | owner_sleeps;
      while (done != (owner_sleeps | all)) {
        sleep_while(s->done, done);
        done = s->done.load(memory_order_acquire);
      }
    }
    waited = now() - start;
  }
  s->used.store(false, memory_order_release);
  return waited;
}

}  // namespace clew::pool

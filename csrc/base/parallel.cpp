// The process-wide thread count, and regions of its threads.
// May include: base.
// Invariant: the count is always at least 1; a range is cut alike whichever threads run its pieces.
#include "base/parallel.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <exception>

#include "base/signals.h"

namespace clew {

static int thread_count = 0;
static thread_local bool alone = false;
static thread_local bool at_pieces = false;

// A forked process has one thread, but OpenMP believes that its team is still there and waits for
// it for ever: the child computes on its one thread.
static void after_fork() { set_num_threads(1); }
[[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, after_fork);

int num_threads() {
  if (thread_count == 0) thread_count = std::max(1, omp_get_max_threads());
  return alone ? 1 : thread_count;
}

void set_num_threads(int n) {
  thread_count = std::max(1, n);
  omp_set_num_threads(thread_count);
}

bool in_parallel() { return at_pieces || omp_in_parallel(); }

// OpenMP's own count is a thread's, too; oneDNN asks for it.
Alone::Alone() : before_(alone) {
  num_threads();
  alone = true;
  omp_set_num_threads(1);
}
Alone::~Alone() {
  alone = before_;
  if (!alone) omp_set_num_threads(thread_count);
}

namespace {

using Nanoseconds = int64_t;
Nanoseconds now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Where other processes have the processors, a thread comes a millisecond late to work of
// microseconds, again and again; for a while, then, the calling thread does all pieces itself.
class Lateness {
 public:
  static bool stays_away() {
    const Nanoseconds until = away_until.load(std::memory_order_relaxed);
    return until != 0 && now() < until;
  }

  Lateness() : called_(now()) {}
  void arrived() {
    const Nanoseconds delay = now() - called_;
    if (delay > tolerable) delay_.store(delay, std::memory_order_relaxed);
  }
  // What waiting cost is set off against what the threads that came in time saved, which is about
  // as long as a region takes. Once may be the first start of the threads: it is not enough.
  void judge() const {
    const Nanoseconds delay = delay_.load(std::memory_order_relaxed);
    const Nanoseconds before = lost.load(std::memory_order_relaxed);
    if (delay <= tolerable && before == 0) return;
    const Nanoseconds end = now(), took = end - called_;
    if (delay <= tolerable || delay < took / 4) {
      lost.store(std::max<Nanoseconds>(0, before - took), std::memory_order_relaxed);
    } else if (before == 0) {
      lost.store(delay < once ? delay : once, std::memory_order_relaxed);
    } else {
      lost.store(once, std::memory_order_relaxed);
      away_until.store(end + pause, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr Nanoseconds tolerable = 250'000, once = 1'000'000, pause = 20'000'000;
  static inline std::atomic<Nanoseconds> away_until{0};
  static inline std::atomic<Nanoseconds> lost{0};

  const Nanoseconds called_;
  std::atomic<Nanoseconds> delay_{0};
};

// Grains that are worth waiting for threads that come late.
constexpr int64_t long_work = 128;

void run_here(const Split& s, Piece piece, void* f) {
  struct AtPieces {
    AtPieces() { at_pieces = true; }
    ~AtPieces() { at_pieces = false; }
  } marked;
  for (int64_t begin = 0; begin < s.n; begin += s.step)
    piece(f, begin, std::min(s.n, begin + s.step));
}

}  // namespace

void run_pieces(const Split& s, Piece piece, void* f) {
  if (s.who == Pieces::by_any_thread && s.n / s.grain < long_work && Lateness::stays_away())
    return run_here(s, piece, f);
  std::exception_ptr failure;
  // Signals are for the program's threads, not for those that the team is made of.
  static thread_local int team = 1;
  if (team < s.pieces) {
    const WithoutSignals during;
#pragma omp parallel num_threads(s.pieces)
    { team = omp_get_num_threads(); }
  }
  Lateness lateness;
#pragma omp parallel num_threads(s.pieces)
  {
    if (omp_get_thread_num() != 0) lateness.arrived();
    try {
      for (int k = omp_get_thread_num(); k < s.pieces; k += omp_get_num_threads()) {
        const int64_t begin = k * s.step, end = std::min(s.n, begin + s.step);
        if (begin < end) piece(f, begin, end);
      }
    } catch (...) {
#pragma omp critical(clew_parallel_failure)
      failure = std::current_exception();
    }
  }
  lateness.judge();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace clew

// The process-wide thread count, and regions of its threads.
// May include: base.
// Invariant: the count is always at least 1; a range is cut alike whichever threads run its pieces.
#include "base/parallel.h"

#include <atomic>
#include <exception>

#include "base/guided.h"
#include "base/pool.h"
#include "base/processors.h"

namespace clew {

namespace {

std::atomic<int> thread_count{0};
// Counts beyond any machine's do not cut work finer.
constexpr int threads_most = 512;

constinit thread_local bool alone = false;
constinit thread_local bool at_pieces = false;

}  // namespace

int threads_set() {
  int count = thread_count.load(std::memory_order_relaxed);
  if (count == 0) {
    count = initial_threads();
    thread_count.store(count, std::memory_order_relaxed);
  }
  return count;
}
void set_num_threads(int n) { thread_count.store(std::max(1, n), std::memory_order_relaxed); }

int num_threads() { return alone || at_pieces ? 1 : std::min(threads_set(), threads_most); }

bool in_parallel() { return at_pieces; }

int64_t thread_turn(int64_t of) { return pool::worker() % of; }

Alone::Alone() : before_(alone) { alone = true; }
Alone::~Alone() { alone = before_; }

namespace {

using pool::Nanoseconds;

// When other processes are busy, a thread may lose its processor for milliseconds within a piece.
// If that happens repeatedly, the calling thread does small work alone for a while, which doubles
// as long as retries fail.
class Lateness {
 public:
  static bool stays_away(Nanoseconds time) {
    return time < away_until.load(std::memory_order_relaxed);
  }
  // Balances the time lost by waiting against the time that helping threads saved, which is about
  // the length of a region. One late thread may be chance and is not enough.
  static void judge(Nanoseconds began, Nanoseconds waited) {
    const Nanoseconds before = lost.load(std::memory_order_relaxed);
    if (waited <= tolerable && before == 0) return;
    const Nanoseconds end = pool::now(), took = end - began;
    if (waited <= tolerable || waited < took / 4) {
      lost.store(std::max<Nanoseconds>(0, before - took), std::memory_order_relaxed);
      if (before <= took) pause.store(pause_first, std::memory_order_relaxed);
    } else if (before == 0) {
      lost.store(std::min(waited, once), std::memory_order_relaxed);
    } else {
      const Nanoseconds away = pause.load(std::memory_order_relaxed);
      lost.store(once, std::memory_order_relaxed);
      away_until.store(end + away, std::memory_order_relaxed);
      pause.store(std::min(2 * away, pause_most), std::memory_order_relaxed);
    }
  }

 private:
  static constexpr Nanoseconds tolerable = 250'000, once = 1'000'000;
  static constexpr Nanoseconds pause_first = 20'000'000, pause_most = 320'000'000;
  static inline std::atomic<Nanoseconds> away_until{0};
  static inline std::atomic<Nanoseconds> lost{0};
  static inline std::atomic<Nanoseconds> pause{pause_first};
};

// From how many grains a region uses other threads even if they come late, and how long the calling
// thread works alone before it uses them anyway.
constexpr int64_t long_work = 128;
constexpr Nanoseconds long_time = 1'000'000;

// What threads share of a region, and where its pieces lie.
class ChunkedRegion {
 public:
  ChunkedRegion(int64_t n, int64_t step, Piece piece, void* f)
      : n_(n), step_(step), pieces_((n - 1) / step + 1), piece_(piece), f_(f) {}
  // Shrinking ones, of `step` at least.
  ChunkedRegion(int64_t n, int64_t step, int threads, Piece piece, void* f)
      : n_(n), step_(step), threads_(threads), piece_(piece), f_(f) {
    while ((n_ >> (rounds_ + 1)) / threads_ >= step_) ++rounds_;
    pieces_ = rounds_ * threads_ + ((n_ >> rounds_) - 1) / step_ + 1;
  }

  // Runs the region on this thread and up to `helpers` others. A `brief` region runs on this thread
  // alone if others come late.
  void run(int helpers, bool brief) {
    const Nanoseconds began = pool::now();
    int64_t next = 0;
    if (brief && Lateness::stays_away(began)) {
      do {
        run_piece(next++);
      } while (next < pieces_ && pool::now() - began < long_time);
    }
    if (next < pieces_) {
      auto piece = [](void* what, int64_t k) { static_cast<ChunkedRegion*>(what)->run_piece(k); };
      Lateness::judge(began, pool::run(next, pieces_, helpers, piece, this));
    }
    if (failed_.load(std::memory_order_relaxed)) std::rethrow_exception(failure_);
  }

 private:
  const int64_t n_, step_;
  int64_t threads_ = 1, pieces_ = 0;
  int64_t rounds_ = 0;  // of shrinking pieces: each round has one a thread and half of the rest
  const Piece piece_;
  void* const f_;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;

  void run_piece(int64_t number) {
    if (failed_.load(std::memory_order_relaxed)) return;
    at_pieces = true;
    try {
      piece_(f_, start(number), start(number + 1));
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
    at_pieces = false;
  }
  int64_t start(int64_t number) const {
    const int64_t round = std::min(number / threads_, rounds_);
    const int64_t begin = n_ - (n_ >> round);
    if (round == rounds_) return std::min(n_, begin + (number - rounds_ * threads_) * step_);
    const int64_t end = n_ - (n_ >> (round + 1));
    return begin + (end - begin) * (number % threads_) / threads_;
  }
};

// A function whose pieces threads share, the work they are of, and how often that may be ended.
struct Shared {
  Piece piece;
  void* f;
  int64_t block;
  Stop* stop = stretch.stop;

  void blocks(int64_t begin, int64_t end) const {
    for (; end - begin > block; begin += block) {
      if (stopped()) return;
      piece(f, begin, begin + block);
    }
    piece(f, begin, end);
  }
  // A piece of a region, on any of its threads.
  static void run(void* at, int64_t begin, int64_t end) {
    const auto& shared = *static_cast<const Shared*>(at);
    const SharedStretch of_work(shared.stop);
    shared.blocks(begin, end);
  }
};

void split(int64_t n, int64_t grain, Shared shared) {
  const int64_t pieces = std::min<int64_t>(num_threads(), (n + grain - 1) / grain);
  if (pieces <= 1 || in_parallel()) return shared.blocks(0, n);
  ChunkedRegion(n, (n + pieces - 1) / pieces, Shared::run, &shared)
      .run(static_cast<int>(pieces) - 1, n / grain < long_work);
}

}  // namespace

void run_split(int64_t n, int64_t grain, Piece piece, void* f) { split(n, grain, {piece, f, n}); }

void run_parallel(int64_t n, int64_t grain, Piece piece, void* f) {
  grain = std::max<int64_t>(grain, 1);
  const bool inside = in_parallel();
  const bool lasts = grain == 1 || n >= 8 * grain;
  const LongWork work(lasts && !inside ? long_work_elements : 0);
  split(n, grain, {piece, f, stretch.stop && !inside ? 16 * grain : n});
  end_if_stopped();
}

void run_shrinking(int64_t n, int64_t grain, int threads, Piece piece, void* f) {
  Shared shared{piece, f, n};
  ChunkedRegion(n, grain, threads, Shared::run, &shared).run(threads - 1, n / grain < long_work);
}

}  // namespace clew

// Splitting a range over the threads, and the thread count the user set.
// May include: base.
// Invariant: the split depends on n, grain and thread count only, so equal settings give equal
// bits, whichever threads run the pieces.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/long_work.h"

namespace clew {

int num_threads();
void set_num_threads(int n);

// Whether the calling thread is at a piece of a range.
bool in_parallel();

// While one lives, its thread computes alone: for work in the midst of small operations, whose
// other threads sleep, and which is done before they wake.
class Alone {
 public:
  Alone();
  ~Alone();
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  bool before_;
};

constexpr int64_t grain_default = 32768;

// A range to be split: its pieces have `step` elements, the last one fewer.
struct Split {
  int64_t n, step, grain;
  int pieces;
};
using Piece = void (*)(void* f, int64_t begin, int64_t end);
void run_pieces(const Split& split, Piece piece, void* f);

// A function whose pieces threads share, and the work they are of.
template <class F> struct Shared {
  F& f;
  Stop* stop;
  static void run(void* at, int64_t begin, int64_t end) {
    const auto& shared = *static_cast<Shared*>(at);
    const SharedStretch stretch(shared.stop);
    shared.f(begin, end);
  }
};

// parallel_for() without its care for others.
template <class F> void split_for(int64_t n, int64_t grain, F& f) {
  const int64_t pieces = std::min<int64_t>(num_threads(), (n + grain - 1) / grain);
  if (pieces <= 1 || in_parallel()) {
    f(int64_t{0}, n);
    return;
  }
  Shared<F> shared{f, stretch.stop};
  run_pieces({n, (n + pieces - 1) / pieces, grain, static_cast<int>(pieces)}, shared.run, &shared);
}

// Calls f(begin, end) over disjoint pieces of [0, n); serial when n is small or when already inside
// a parallel region. What lasts 8 grains lets other Python threads run, and so does what has a
// grain of 1: an item is worth a thread then, and may be a row of any length. Between blocks of 16
// grains, which leave vectors and groups whole, Ctrl-C ends it.
template <class F> void parallel_for(int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const bool lasts = grain == 1 || n >= 8 * grain;
  const bool inside = in_parallel();
  const LongWork work(lasts && !inside ? long_work_elements : 0);
  const int64_t block = stretch.stop && !inside ? 16 * grain : n;
  auto blocks = [&f, block](int64_t begin, int64_t end) {
    for (; end - begin > block; begin += block) {
      if (stopped()) return;
      f(begin, begin + block);
    }
    f(begin, end);
  };
  split_for(n, grain, blocks);
  end_if_stopped();
}

}  // namespace clew

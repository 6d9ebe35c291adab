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

// A type-erased function of a piece of a range: the code that cuts ranges is compiled once.
using Piece = void (*)(void* f, int64_t begin, int64_t end);
template <class F> void call_piece(void* f, int64_t begin, int64_t end) {
  (*static_cast<F*>(f))(begin, end);
}
// split_for() and parallel_for() of what is not a single piece.
void run_split(int64_t n, int64_t grain, Piece piece, void* f);
void run_parallel(int64_t n, int64_t grain, Piece piece, void* f);

// parallel_for() without its care for others.
template <class F> void split_for(int64_t n, int64_t grain, F& f) {
  run_split(n, grain, call_piece<F>, &f);
}

// Calls f(begin, end) over disjoint pieces of [0, n); serial when n is small or when already inside
// a parallel region. What lasts 8 grains lets other Python threads run, and so does what has a
// grain of 1: an item is worth a thread then, and may be a row of any length. Between blocks of 16
// grains, which leave vectors and groups whole, Ctrl-C ends it.
template <class F> void parallel_for(int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  if (n <= grain && grain > 1) {
    f(int64_t{0}, n);
    end_if_stopped();
  } else {
    run_parallel(n, grain, call_piece<std::remove_reference_t<F>>, &f);
  }
}

}  // namespace clew

// Loops whose pieces shrink towards the end, and where threads begin.
// May include: base.
// Invariant: the cut depends on n, grain and thread count only; which thread runs what differs from
// call to call.
#pragma once
#include "base/parallel.h"

namespace clew {

// Runs pieces of at least `grain`, cut for so many threads: each round of one a thread shares half
// of what is left.
void run_shrinking(int64_t n, int64_t grain, int threads, Piece piece, void* f);

// Calls f(begin, end) over disjoint pieces of [0, n), large ones first: a thread whose core is
// slower, or busy with something else, does less of them.
template <class F> void parallel_guided(int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int threads = num_threads();
  if (threads <= 1 || n <= grain || in_parallel()) return f(int64_t{0}, n);
  const LongWork work(n >= 8 * grain ? long_work_elements : 0);
  run_shrinking(n, grain, threads, call_piece<std::remove_reference_t<F>>, &f);
  end_if_stopped();
}

// A number below `of` for the calling thread, by which threads begin in different places.
int64_t thread_turn(int64_t of);

}  // namespace clew

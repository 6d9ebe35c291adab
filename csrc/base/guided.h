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
  if (threads <= 1 || n <= grain) return f(int64_t{0}, n);
  using Function = std::remove_reference_t<F>;
  run_shrinking(
      n, grain, threads,
      [](void* at, int64_t begin, int64_t end) { (*static_cast<Function*>(at))(begin, end); },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

// The turn of the calling thread among so many, for threads that begin in different places.
int64_t thread_turn(int64_t of);

}  // namespace clew

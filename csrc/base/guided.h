// Loops whose pieces the threads take as they come free.
// May include: base.
// Invariant: which thread runs what, and how the range is cut, differ from call to call: only for
// work whose results depend on neither.
#pragma once
#include <atomic>

#include "base/parallel.h"

namespace clew {

// Calls f(begin, end) over disjoint pieces of [0, n) of at least `grain`, large ones first: a
// thread whose core is slower, or busy with something else, does less of them.
template <class F> void parallel_guided(int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  const int64_t threads = std::min<int64_t>(num_threads(), (n + grain - 1) / grain);
  if (threads <= 1 || in_parallel()) return f(int64_t{0}, n);
  const LongWork work(n >= 8 * grain ? long_work_elements : 0);
  std::atomic<int64_t> next{0};
  parallel_for(threads, 1, [&](int64_t, int64_t) {
    for (int64_t begin = next.load(std::memory_order_relaxed); begin < n && !stopped();) {
      const int64_t end = std::min(n, begin + std::max(grain, (n - begin) / (2 * threads)));
      if (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
      f(begin, end);
      begin = next.load(std::memory_order_relaxed);
    }
  });
  end_if_stopped();
}

}  // namespace clew

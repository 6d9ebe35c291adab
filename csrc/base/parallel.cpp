// The process-wide thread count.
// May include: base.
// Invariant: always at least 1.
#include "base/parallel.h"

#include <pthread.h>

namespace clew {

static int thread_count = 0;
static thread_local bool alone = false;

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

}  // namespace clew

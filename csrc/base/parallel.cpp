// The process-wide thread count.
// May include: base.
// Invariant: always at least 1.
#include "base/parallel.h"

namespace clew {

static int thread_count = 0;

int num_threads() {
  if (thread_count == 0) thread_count = std::max(1, omp_get_max_threads());
  return thread_count;
}

void set_num_threads(int n) {
  thread_count = std::max(1, n);
  omp_set_num_threads(thread_count);
}

}  // namespace clew

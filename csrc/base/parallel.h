// Splitting a range over the OpenMP threads, and the thread count the user set.
// May include: base; <omp.h>.
// Invariant: the split depends on n, grain and thread count only, so equal settings give equal
// bits.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace clew {

int num_threads();
void set_num_threads(int n);

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

// Calls f(begin, end) over disjoint pieces of [0, n); serial when n is small or when already inside
// a parallel region.
template <class F> void parallel_for(int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  int64_t pieces = std::min<int64_t>(num_threads(), (n + grain - 1) / std::max<int64_t>(grain, 1));
  if (pieces <= 1 || omp_in_parallel()) {
    f(int64_t{0}, n);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel num_threads(static_cast <int>(pieces))
  {
    int64_t k = omp_get_thread_num();
    int64_t count = omp_get_num_threads();
    int64_t step = (n + count - 1) / count;
    int64_t begin = k * step;
    int64_t end = std::min(n, begin + step);
    if (begin < end) {
      try {
        f(begin, end);
      } catch (...) {
#pragma omp critical(clew_parallel_failure)
        failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace clew

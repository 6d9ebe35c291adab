// Parallel regions without Python, for ThreadSanitizer: `make tsan` builds and runs it.
// May include: base.
// Invariant: it ends with 0 only where every piece ran once and every result was right.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/guided.h"
#include "base/processors.h"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::exit(1);
}

// Every element once, whatever the pieces are.
void covers(int64_t n, int64_t grain, bool guided) {
  std::vector<int> seen(static_cast<size_t>(n), 0);
  auto mark = [&](int64_t begin, int64_t end) {
    require(begin < end, "a piece is empty");
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  };
  if (guided)
    clew::parallel_guided(n, grain, mark);
  else
    clew::parallel_for(n, grain, mark);
  for (int times : seen) require(times == 1, "an element was met more or less than once");
}

void nested() {
  std::vector<int64_t> sums(64);
  clew::parallel_for(64, 1, [&](int64_t begin, int64_t end) {
    require(clew::num_threads() == 1, "a piece has one thread");
    for (int64_t i = begin; i < end; ++i) {
      int64_t sum = 0;
      clew::parallel_for(100, 1, [&](int64_t b, int64_t e) { sum += e - b; });
      sums[static_cast<size_t>(i)] = sum;
    }
  });
  require(std::accumulate(sums.begin(), sums.end(), int64_t{0}) == 6400, "a nested sum");
}

void throws(bool guided) {
  int caught = 0;
  try {
    auto f = [](int64_t begin, int64_t end) {
      if (begin <= 77 && 77 < end) throw std::runtime_error("at 77");
    };
    if (guided)
      clew::parallel_guided(100, 1, f);
    else
      clew::parallel_for(100, 1, f);
  } catch (const std::runtime_error&) {
    ++caught;
  }
  require(caught == 1, "an exception arrived");
}

void everything(int rounds) {
  for (int k = 0; k < rounds; ++k) {
    for (int64_t n : {1, 2, 3, 7, 64, 1000}) {
      for (int64_t grain : {1, 3, 2000}) {
        covers(n, grain, false);
        covers(n, grain, true);
      }
    }
    nested();
    throws(k % 2 == 0);
  }
}

}  // namespace

int main() {
  for (int threads : {1, 2, 3, 8, 100000}) {
    clew::set_num_threads(threads);
    require(clew::threads_set() == threads, "the count is kept");
    everything(20);
  }
  // More callers than there is room for jobs.
  clew::set_num_threads(4);
  std::vector<std::thread> callers;
  for (int k = 0; k < 24; ++k) callers.emplace_back([] { everything(4); });
  for (auto& caller : callers) caller.join();
#ifndef __SANITIZE_THREAD__  // which does not follow threads that a forked child starts
  const pid_t child = fork();
  if (child == 0) {
    everything(4);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  require(status == 0, "a forked child computes");
#endif
  require(clew::usable_processors("/nowhere") >= 1, "there is a processor");
  // Threads go on computing while the process ends.
  for (int k = 0; k < 3; ++k) {
    std::thread([] {
      for (;;) everything(1);
    }).detach();
  }
  std::puts("ok");
}

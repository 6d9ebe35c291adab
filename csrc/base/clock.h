// The monotonic clock, and a counter of the processor's that is read in less time.
// May include: the standard library and the system's headers only.
// Invariant: ticks of all threads count from one instant at one rate.
#pragma once
#include <cstdint>
#include <ctime>
#if defined(__x86_64__)
#include <cpuid.h>  // and not x86intrin.h, which every file would take half a second to read
#endif

namespace clew {

inline int64_t nanoseconds_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

#if defined(__x86_64__)
inline bool counts_steadily() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
}
inline const bool has_counter = counts_steadily();
inline int64_t ticks_now() {
  return has_counter ? static_cast<int64_t>(__builtin_ia32_rdtsc()) : nanoseconds_now();
}
#elif defined(__aarch64__)
inline int64_t ticks_now() {
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return static_cast<int64_t>(ticks);
}
#else
inline int64_t ticks_now() { return nanoseconds_now(); }
#endif

// One instant by both.
struct Instant {
  int64_t ticks = 0, nanoseconds = 0;

  // The best of a few readings of both clocks: the one that took the least time.
  static Instant now() {
    Instant best;
    int64_t least = INT64_MAX;
    for (int i = 0; i < 3; ++i) {
      const int64_t before = ticks_now(), nanoseconds = nanoseconds_now(), after = ticks_now();
      if (after - before >= least) continue;
      least = after - before;
      best = {before + least / 2, nanoseconds};
    }
    return best;
  }
  // Nanoseconds a tick, until a later instant; 0 where no tick lies between.
  double rate(const Instant& later) const {
    if (later.ticks <= ticks) return 0;
    return static_cast<double>(later.nanoseconds - nanoseconds) /
           static_cast<double>(later.ticks - ticks);
  }
};

}  // namespace clew

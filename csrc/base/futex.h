// Sleeping until another thread changes a word.
// May include: the standard library and the system's headers only.
// Invariant: a sleeper that wakes looks at the word again: it may wake for no reason.
#pragma once
#include <atomic>
#include <cstdint>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#else
#include <chrono>
#include <thread>
#endif

namespace clew {

#ifdef __linux__

// Sleeps while the word is `seen`, at most so many nanoseconds; for ever where they are negative.
inline void sleep_while(std::atomic<uint32_t>& word, uint32_t seen, int64_t nanoseconds = -1) {
  const timespec limit{static_cast<time_t>(nanoseconds / 1'000'000'000),
                       static_cast<long>(nanoseconds % 1'000'000'000)};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen,
          nanoseconds < 0 ? nullptr : &limit, nullptr, 0);
}
inline void wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr,
          nullptr, 0);
}

#else

inline void sleep_while(std::atomic<uint32_t>& word, uint32_t seen, int64_t = -1) {
  if (word.load() == seen) std::this_thread::sleep_for(std::chrono::microseconds(100));
}
inline void wake(std::atomic<uint32_t>&, int) {}

#endif

}  // namespace clew

// What the random fills share: how a generator is held while numbers are drawn, and how many words
// are drawn by one thread and turned into numbers by all.
// May include: base, kernels.
// Invariant: words are drawn in the order of the elements, whatever the thread count.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numbers>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/generator.h"
#include "kernels/core/visit.h"
#include "kernels/random/random_loops.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace clew::kernels {

// Holds a generator's mutex while n numbers are drawn. Other Python threads may run meanwhile, so
// the mutex is released before the GIL is asked for, and the GIL is not held while this waits for
// the mutex. Signal handlers may draw as well; they run only in the pauses of rest().
class Drawing {
  LongWork work_;
  std::mutex& mutex_;
  std::unique_lock<std::mutex> lock_;
  WithoutPause whole_;
  bool began_ = std::exchange(stretch.began, false);
  static constinit thread_local Drawing* current;  // the outermost of the thread
  Drawing* outer_ = std::exchange(current, this);

  static std::unique_lock<std::mutex> locked(std::mutex& mutex) {
    std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    while (!lock) {
      {
        const LongWork wait(long_work_elements);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
      static_cast<void>(lock.try_lock());  // the loop asks
    }
    return lock;
  }

 public:
  Drawing(Generator& g, int64_t n) : work_(n), mutex_(g.mutex), lock_(locked(mutex_)) {}
  ~Drawing() {
    stretch.began = began_;
    current = outer_;
  }
  Drawing(const Drawing&) = delete;

  // After each million draws, release the generator briefly. `count` is the number of draws since
  // the last call.
  static void rest(int64_t& drawn, int64_t count) {
    drawn += count;
    if (drawn < 1 << 20) return;
    drawn = 0;
    Drawing* d = current;
    if (!d || !d->began_) return;
    d->lock_.unlock();
    stretch.began = true;
    stop_point();
    stretch.began = false;
    d->lock_ = locked(d->mutex_);
  }
};

inline double next_double(Generator& g) { return Generator::to_double(g.next64()); }
template <class C> C next_unit(Generator& g) {
  if constexpr (std::is_same_v<C, double>)
    return next_double(g);
  else
    return Generator::to_float(g.next32());
}

// One standard normal; the second of the pair waits in the generator.
inline double next_normal(Generator& g) {
  if (g.has_pending) {
    g.has_pending = 0;
    return g.pending_normal;
  }
  double angle = 2 * std::numbers::pi * next_double(g);
  double radius = std::sqrt(-2 * std::log1p(-next_double(g)));
  g.pending_normal = radius * std::sin(angle);
  g.has_pending = 1;
  return radius * std::cos(angle);
}

// The mutex is held for some microseconds at a time, so a waiting thread spins before it sleeps.
inline void lock_soon(std::mutex& m) {
  for (int look = 0; look < 2000; ++look) {
    if (m.try_lock()) return;
#ifdef __SSE2__
    _mm_pause();
#endif
  }
  m.lock();
}

constexpr int64_t piece_words = 16384;

// Calls use(first item, words, items) for pieces of n items that take `per` words each, on all
// threads: the words are drawn in order, by one thread at a time, and the rest is done beside it.
template <class F> void for_words(Generator& g, int64_t n, int64_t per, F&& use) {
  const int64_t piece = piece_words / per;
  const RandomLoops& loops = random_loops();
  std::mutex order;
  int64_t next = 0;
  parallel_for(std::min<int64_t>((n + piece - 1) / piece, num_threads()), 1, [&](int64_t, int64_t) {
    uint32_t room[piece_words + 2 * Generator::words];
    for (int64_t drawn = 0;;) {
      lock_soon(order);
      std::unique_lock<std::mutex> turn(order, std::adopt_lock);
      Drawing::rest(drawn, piece);
      const int64_t first = next, take = std::min(piece, n - first), begin = g.position;
      if (take <= 0 || stopped()) return;
      next += take;
      const int64_t blocks = std::max<int64_t>(0, (begin + take * per - 1) / Generator::words);
      constexpr int64_t size = Generator::words;
      std::copy_n(g.state, size, room);
      loops.extend(room, blocks);
      std::copy_n(room + blocks * size, size, g.state);
      g.position = static_cast<uint32_t>(begin + take * per - blocks * size);
      turn.unlock();
      loops.temper(room + begin, take * per);
      use(first, room + begin, take);
    }
  });
}
template <class C> constexpr int64_t words_of = sizeof(C) / sizeof(uint32_t);

inline uint64_t pair_of(const uint32_t* words) {
  return static_cast<uint64_t>(words[0]) << 32 | words[1];
}
template <class C> inline C unit_of(const uint32_t* words) {
  if constexpr (std::is_same_v<C, double>)
    return Generator::to_double(pair_of(words));
  else
    return Generator::to_float(*words);
}
// put(i, u) for n uniforms u.
template <class C, class F> void for_units(Generator& g, int64_t n, F&& put) {
  for_words(g, n, words_of<C>, [&](int64_t first, const uint32_t* words, int64_t count) {
    for (int64_t i = 0; i < count; ++i) put(first + i, unit_of<C>(words + words_of<C> * i));
  });
}

template <class F> void dispatch_float(const char* op, DType d, F&& f) {
  if (!dispatch(d, FloatTypes{}, f)) fail(op, ": needs a floating point tensor; got ", d);
}

// Calls next() for each element and stores the number: one loop for all element types.
template <class V, class F> void fill_each(const NdView& dst, F&& next) {
  void (*put)(char*, V) = nullptr;
  dispatch(dst.dtype, AllTypes{}, [&]<class T>() {
    put = [](char* at, V v) { *reinterpret_cast<T*>(at) = convert<T>(v); };
  });
  int64_t drawn = 0;
  visit_bytes(dst, [&](char* at) {
    put(at, next());
    Drawing::rest(drawn, 1);
  });
}

// u * 2^-53 < p  exactly where  u < ceil(p * 2^53).
inline uint64_t limit_of(double p) {
  return static_cast<uint64_t>(std::ceil(std::clamp(p, 0.0, 1.0) * 0x1p53));
}

}  // namespace clew::kernels

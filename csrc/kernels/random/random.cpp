// Random fills: the distributions that need one number after another.
// May include: base, kernels.
// Invariant: every function holds the generator's mutex while it draws.
#include "kernels/random/random.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <numbers>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/core/instruction_set.h"
#include "kernels/core/loop_tables.h"
#include "kernels/core/stream.h"
#include "kernels/core/visit.h"
#include "kernels/random/random_loops.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const RandomLoops random_table;)

const RandomLoops& random_loops() { return CLEW_CHOSEN(random_table); }

namespace {

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
constinit thread_local Drawing* Drawing::current = nullptr;

double next_double(Generator& g) { return Generator::to_double(g.next64()); }
template <class C> C next_unit(Generator& g) {
  if constexpr (std::is_same_v<C, double>)
    return next_double(g);
  else
    return Generator::to_float(g.next32());
}

// One standard normal; the second of the pair waits in the generator.
double next_normal(Generator& g) {
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

constexpr int block = 16;

// Turns 16 uniforms into 16 normals: the first half gives the radii, the second the angles.
inline void normal_block(double* x, double mean, double std) {
  for (int j = 0; j < block / 2; ++j) {
    double radius = std::sqrt(-2 * std::log(1 - x[j]));
    double angle = 2 * std::numbers::pi * x[j + block / 2];
    x[j] = radius * std::cos(angle) * std + mean;
    x[j + block / 2] = radius * std::sin(angle) * std + mean;
  }
}

inline void normal_run(double* x, int64_t blocks, double mean, double std) {
  for (int64_t k = 0; k < blocks; ++k) normal_block(x + k * block, mean, std);
}
inline void normal_run(float* x, int64_t blocks, float mean, float std) {
  random_loops().normals(x, blocks, mean, std);
}

// The mutex is held for some microseconds at a time, so a waiting thread spins before it sleeps.
void lock_soon(std::mutex& m) {
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
// The same for pairs, use(first item, upper words, lower words, items), which are not tempered:
// upper and lower words are stored separately, so that a caller which needs only the upper words
// reads neighbours. `soon` has one number per item that use() will read; it is prefetched.
template <class F> void for_pairs(Generator& g, int64_t n, const float* soon, F&& use) {
  constexpr int64_t half = Generator::words / 2, piece = piece_words / 2;
  const RandomLoops& loops = random_loops();
  std::mutex order;
  int64_t next = 0;
  uint32_t last_even[half], last_odd[half];
  for (int64_t i = 0; i < half; ++i)
    last_even[i] = g.state[2 * i], last_odd[i] = g.state[2 * i + 1];
  parallel_for(std::min<int64_t>((n + piece - 1) / piece, num_threads()), 1, [&](int64_t, int64_t) {
    alignas(64) uint32_t even[piece + 2 * half], odd[piece + 2 * half];
    for (;;) {
      lock_soon(order);
      const int64_t first = next, take = std::min(piece, n - first), begin = g.position;
      if (take <= 0) return order.unlock();
      next += take;
      const int64_t blocks = std::max<int64_t>(0, (begin + take * 2 - 1) / Generator::words);
      std::copy_n(last_even, half, even);
      std::copy_n(last_odd, half, odd);
      loops.extend_apart(even, odd, blocks, soon + first);
      std::copy_n(even + blocks * half, half, last_even);
      std::copy_n(odd + blocks * half, half, last_odd);
      g.position = static_cast<uint32_t>(begin + take * 2 - blocks * Generator::words);
      order.unlock();
      if (begin % 2 == 0)
        use(first, even + begin / 2, odd + begin / 2, take);
      else
        use(first, odd + begin / 2, even + begin / 2 + 1, take);
    }
  });
  for (int64_t i = 0; i < half; ++i)
    g.state[2 * i] = last_even[i], g.state[2 * i + 1] = last_odd[i];
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

// At least 16 normals into contiguous x: uniforms, turned block by block; the rest by drawing the
// last 16 anew. The 16-bit types draw nothing for the elements after the last whole block, which
// the tail replaces anyway.
template <class T, class C> void normal_blocks(T* x, int64_t n, C mean, C std, Generator& g) {
  constexpr bool same = std::is_same_v<T, C>;
  auto turned = [=](T* to, const uint32_t* words, int64_t count) {
    C room[block * 16];
    for (int64_t at = 0; at < count; at += block * 16) {
      const int64_t take = std::min<int64_t>(block * 16, count - at);
      for (int64_t i = 0; i < take; ++i) room[i] = unit_of<C>(words + words_of<C> * (at + i));
      normal_run(room, take / block, mean, std);
      for (int64_t i = 0; i < take; ++i) to[at + i] = static_cast<T>(room[i]);
    }
  };
  for_words(g, same ? n : n / block * block, words_of<C>,
            [&](int64_t first, const uint32_t* words, int64_t count) {
              turned(x + first, words, count);
            });
  if (n % block == 0) return;
  for_words(g, block, words_of<C>, [&](int64_t, const uint32_t* words, int64_t count) {
    turned(x + n - block, words, count);
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
// Stores f(u) for one uniform u an element; the numbers are drawn in order, f runs on all threads.
template <class F> void fill_mapped(const NdView& dst, Generator& g, F&& f) {
  int64_t n = dst.numel();
  if (!dst.contiguous() || n < 256) {
    fill_each<double>(dst, [&] { return f(next_double(g)); });
    return;
  }
  dispatch(dst.dtype, RealTypes{}, [&]<class T>() {
    T* out = dst.ptr<T>();
    for_units<double>(g, n, [=](int64_t i, double u) { out[i] = convert<T>(f(u)); });
  });
}
void need_float(const char* op, const NdView& v) {
  if (!is_floating(v.dtype)) fail(op, ": needs a floating point tensor; got ", v.dtype);
}
void need_real(const char* op, const NdView& v) {
  if (is_complex(v.dtype)) fail(op, ": needs a real tensor; got ", v.dtype);
}

}  // namespace

void random_uniform(const NdView& dst, double from, double to, Generator& g) {
  const Drawing drawing(g, dst.numel());
  auto run = [&]<class T>(const NdView& d) {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    C low = static_cast<C>(from), span = static_cast<C>(to) - low;
    // Product and sum are rounded once, as PyTorch's fused instruction does; for floats they are
    // exact in double precision. The upper end is excluded: a value that rounds up to it becomes
    // the lower end.
    T end = static_cast<T>(static_cast<C>(to)), begin = static_cast<T>(low);
    auto scaled = [=](C u) {
      T x;
      if constexpr (std::is_same_v<C, float>)
        x = static_cast<T>(static_cast<float>(static_cast<double>(u) * static_cast<double>(span) +
                                              static_cast<double>(low)));
      else
        x = static_cast<T>(std::fma(u, span, low));
      return static_cast<C>(x) == static_cast<C>(end) ? begin : x;
    };
    if (d.contiguous()) {
      T* out = d.ptr<T>();
      for_units<C>(g, d.numel(), [=](int64_t i, C u) { out[i] = scaled(u); });
      return;
    }
    visit<T>(d, [&](T& x) { x = scaled(next_unit<C>(g)); });
  };
  if (is_complex(dst.dtype)) {
    ComplexParts parts(dst);
    if (dst.dtype == DType::Complex64)
      run.template operator()<float>(parts.view);
    else if (dst.dtype == DType::Complex32)
      run.template operator()<f16>(parts.view);
    else
      run.template operator()<double>(parts.view);
    return;
  }
  dispatch_float("uniform", dst.dtype, [&]<class T>() { run.template operator()<T>(dst); });
}

void random_normal(const NdView& dst, double mean, double std, Generator& g) {
  const Drawing drawing(g, dst.numel());
  auto run = [&]<class T>(const NdView& d, double m, double s) {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    int64_t n = d.numel();
    if (n < block || !d.contiguous()) {
      visit<T>(d, [&](T& x) { x = static_cast<T>(static_cast<C>(next_normal(g) * s + m)); });
      return;
    }
    normal_blocks<T, C>(d.ptr<T>(), n, static_cast<C>(m), static_cast<C>(s), g);
  };
  if (is_complex(dst.dtype)) {
    // The two parts share the variance; the mean applies to both.
    ComplexParts parts(dst);
    double s = std / std::numbers::sqrt2;
    if (dst.dtype == DType::Complex64)
      run.template operator()<float>(parts.view, mean, s);
    else if (dst.dtype == DType::Complex32)
      run.template operator()<f16>(parts.view, mean, s);
    else
      run.template operator()<double>(parts.view, mean, s);
    return;
  }
  dispatch_float("normal", dst.dtype,
                 [&]<class T>() { run.template operator()<T>(dst, mean, std); });
}

void random_normal(const NdView& dst, const NdView& mean, const NdView& std, Generator& g) {
  random_normal(dst, 0, 1, g);
  dispatch_float("normal", dst.dtype, [&]<class T>() {
    using C = compute_t<T>;
    visit<T, T>(dst, std, [&](T& x, const T& s) {
      C c = static_cast<C>(s);
      if (!(c >= 0)) fail("normal: every std must be 0 or above; got ", c);
      x = static_cast<T>(static_cast<C>(x) * c);
    });
    visit<T, T>(dst, mean, [&](T& x, const T& m) {
      x = static_cast<T>(static_cast<C>(x) + static_cast<C>(m));
    });
  });
}

void random_integers(const NdView& dst, int64_t low, uint64_t range, bool wide, Generator& g) {
  const Drawing drawing(g, dst.numel());
  need_real("random", dst);
  uint64_t base = static_cast<uint64_t>(low);
  const bool narrow = !wide && range != 0 && range <= UINT32_MAX;
  // word % range without a division (Lemire, Kaser, Kurz, "Faster remainder by direct computation",
  // 2019): the product's low half is the fraction, which range times makes the remainder.
  const uint64_t inverse = narrow ? UINT64_MAX / range + 1 : 0;
  auto remainder = [=](uint32_t word) {
    const uint64_t fraction = inverse * word;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(fraction) * range) >> 64);
  };
  auto quick = [&]<class T>() {
    T* out = dst.ptr<T>();
    for_words(g, dst.numel(), narrow ? 1 : 2,
              [=](int64_t first, const uint32_t* words, int64_t count) {
                for (int64_t i = 0; i < count; ++i) {
                  uint64_t r = 0;
                  if (narrow)
                    r = remainder(words[i]);
                  else
                    r = range ? pair_of(words + 2 * i) % range : pair_of(words + 2 * i);
                  out[first + i] = convert<T>(static_cast<int64_t>(base + r));
                }
              });
  };
  if (dst.contiguous() && dispatch(dst.dtype, TypeList<int64_t, int32_t, float>{}, quick)) return;
  if (narrow) {
    uint32_t small = static_cast<uint32_t>(range);
    fill_each<int64_t>(dst, [&] { return static_cast<int64_t>(base + g.next32() % small); });
  } else {
    fill_each<int64_t>(dst, [&] {
      uint64_t r = g.next64();
      return static_cast<int64_t>(base + (range ? r % range : r));
    });
  }
}

// u * 2^-53 < p  exactly where  u < ceil(p * 2^53).
static uint64_t limit_of(double p) {
  return static_cast<uint64_t>(std::ceil(std::clamp(p, 0.0, 1.0) * 0x1p53));
}

void random_bernoulli(const NdView& dst, double p, Generator& g) {
  const Drawing drawing(g, dst.numel());
  const uint64_t limit = limit_of(p);
  auto quick = [&]<class T>() {
    T* out = dst.ptr<T>();
    for_words(g, dst.numel(), 2, [&](int64_t first, const uint32_t* words, int64_t count) {
      if constexpr (std::is_same_v<T, bool>) {
        random_loops().below(reinterpret_cast<uint8_t*>(out + first), words, count, limit);
      } else {
        uint8_t below[256];
        for (int64_t i = 0; i < count; i += 256) {
          const int64_t take = std::min<int64_t>(256, count - i);
          random_loops().below(below, words + 2 * i, take, limit);
          for (int64_t k = 0; k < take; ++k) out[first + i + k] = static_cast<T>(below[k]);
        }
      }
    });
  };
  if (dst.contiguous() &&
      dispatch(dst.dtype, TypeList<bool, uint8_t, int64_t, float, double, f16, bf16>{}, quick))
    return;
  fill_each<int64_t>(dst, [&] { return int64_t{next_double(g) < p}; });
}

void random_bernoulli(const NdView& dst, const NdView& p, Generator& g) {
  const Drawing drawing(g, dst.numel());
  dispatch_float("bernoulli", p.dtype, [&]<class T>() {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    visit<const T>(p, [](const T& chance) {
      const C c = static_cast<C>(chance);
      if (!(c >= 0 && c <= 1)) fail("bernoulli: every probability must be in [0, 1]; got ", c);
    });
    if (dst.contiguous() && p.contiguous()) {
      T* out = dst.ptr<T>();
      const T* chances = p.ptr<const T>();
      constexpr int64_t batch = 256;
      for_words(
          g, dst.numel(), words_of<C>, [=](int64_t first, const uint32_t* words, int64_t count) {
            uint8_t below[batch];  // as bytes, which are no choice between two numbers
            for (int64_t i = 0; i < count; i += batch) {
              const int64_t take = std::min(batch, count - i);
              const T* chance = chances + first + i;
              for (int64_t k = 0; k < take; ++k)
                below[k] = unit_of<C>(words + words_of<C> * (i + k)) < static_cast<C>(chance[k]);
              for (int64_t k = 0; k < take; ++k) out[first + i + k] = static_cast<T>(below[k]);
            }
          });
      return;
    }
    visit<T, T>(dst, p, [&](T& x, const T& chance) {
      x = static_cast<T>(static_cast<float>(next_unit<C>(g) < static_cast<C>(chance)));
    });
  });
}

void random_exponential(const NdView& dst, double rate, Generator& g) {
  const Drawing drawing(g, dst.numel());
  need_float("exponential_", dst);
  fill_mapped(dst, g, [rate](double u) { return -std::log1p(-u) / rate; });
}

void random_geometric(const NdView& dst, double p, Generator& g) {
  const Drawing drawing(g, dst.numel());
  need_real("geometric_", dst);
  double scale = std::log1p(-p);
  fill_mapped(dst, g, [scale](double u) {
    return std::max(1.0, std::ceil(std::log(std::max(u, 0x1p-54)) / scale));
  });
}

void random_cauchy(const NdView& dst, double median, double sigma, Generator& g) {
  const Drawing drawing(g, dst.numel());
  need_float("cauchy_", dst);
  fill_mapped(dst, g, [median, sigma](double u) {
    return median + sigma * std::tan(std::numbers::pi * (u - 0.5));
  });
}

void random_log_normal(const NdView& dst, double mean, double std, Generator& g) {
  const Drawing drawing(g, dst.numel());
  need_float("log_normal_", dst);
  fill_each<double>(dst, [&] { return std::exp(next_normal(g) * std + mean); });
}

// Small means: products of uniforms. Large ones: Hoermann's transformed rejection (PTRS, 1993).
static double next_poisson(double mean, Generator& g) {
  if (mean == 0) return 0;
  if (mean < 10) {
    double limit = std::exp(-mean), product = 1;
    for (int64_t k = 0;; ++k) {
      product *= next_double(g);
      if (product <= limit) return static_cast<double>(k);
    }
  }
  double root = std::sqrt(mean), log_mean = std::log(mean);
  double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = next_double(g) - 0.5, v = next_double(g), us = 0.5 - std::fabs(u);
    double k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -mean + k * log_mean - std::lgamma(k + 1)) {
      return k;
    }
  }
}

void random_poisson(const NdView& dst, const NdView& rate, Generator& g) {
  const Drawing drawing(g, dst.numel());
  int64_t drawn = 0;
  dispatch_float("poisson", dst.dtype, [&]<class T>() {
    visit<T, T>(dst, rate, [&](T& x, const T& r) {
      double mean = static_cast<double>(static_cast<compute_t<T>>(r));
      if (!(mean >= 0) || std::isinf(mean)) {
        fail("poisson: every rate must be finite and not negative; got ", mean);
      }
      x = convert<T>(next_poisson(mean, g));
      Drawing::rest(drawn, 1);
    });
  });
}

// Marsaglia and Tsang, A simple method for generating gamma variables (2000). Its logarithm does
// not underflow where the concentration is small: x of a + 1, times u^(1 / a), is a number of a.
static double next_log_gamma(double a, Generator& g) {
  if (a == 0) return -std::numeric_limits<double>::infinity();
  if (!(a > 0) || std::isinf(a)) return a > 0 ? a : std::numeric_limits<double>::quiet_NaN();
  double shift = 0;
  if (a < 1) {
    shift = std::log1p(-next_double(g)) / a;
    a += 1;
  }
  // A third in single precision, as PyTorch takes it, so that equal seeds give equal numbers.
  double d = a - static_cast<double>(1.0f / 3.0f), c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = next_normal(g), root = 1 + c * x;
    if (root <= 0) continue;
    double v = root * root * root, u = 1 - next_double(g), square = x * x;
    double log_v = std::log(v);
    if (u < 1 - 0.0331 * square * square || std::log(u) < 0.5 * square + d * (1 - v + log_v)) {
      return shift + std::log(d) + log_v;
    }
  }
}

void random_log_gamma(const NdView& dst, const NdView& concentration, Generator& g) {
  const Drawing drawing(g, dst.numel());
  int64_t drawn = 0;
  visit<double, double>(dst, concentration, [&](double& x, const double& a) {
    x = next_log_gamma(a, g);
    Drawing::rest(drawn, 4);
  });
}

// log k! less Stirling's sqrt(2 pi) k^(k + 1/2) e^-k, as a series in 1 / (k + 1).
static double stirling_rest(double k) {
  if (k < 10) {
    return std::lgamma(k + 1) -
           ((k + 0.5) * std::log(k + 1) - (k + 1) + 0.5 * std::log(2 * std::numbers::pi));
  }
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// For p up to one half. Few successes: gaps between them. Many: Hoermann's BTRS, The generation of
// binomial random variates (1993).
static double next_binomial(double n, double p, Generator& g) {
  if (n * p < 10) {
    double log_q = std::log1p(-p), trials = 0;
    for (double k = 0;; ++k) {
      trials += std::ceil(std::log(next_double(g)) / log_q);
      if (trials > n) return k;
    }
  }
  double spread = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * spread;
  double a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, v_r = 0.92 - 4.2 / b;
  double odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * spread, m = std::floor((n + 1) * p);
  for (;;) {
    double u = next_double(g) - 0.5, v = next_double(g), us = 0.5 - std::fabs(u);
    double k = std::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > n) continue;
    if (us >= 0.07 && v <= v_r) return k;
    double bound = (m + 0.5) * std::log((m + 1) / (odds * (n - m + 1))) +
                   (n + 1) * std::log((n - m + 1) / (n - k + 1)) +
                   (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) + stirling_rest(m) +
                   stirling_rest(n - m) - stirling_rest(k) - stirling_rest(n - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
}

void random_binomial(const NdView& dst, const NdView& count, const NdView& p, Generator& g) {
  const Drawing drawing(g, dst.numel());
  int64_t drawn = 0;
  visit<double, double, double>(dst, count, p, [&](double& x, const double& n, const double& q) {
    if (!std::isfinite(n) || std::isnan(q))
      x = std::numeric_limits<double>::quiet_NaN();  // no end otherwise
    else if (n <= 0 || q <= 0)
      x = 0;
    else if (q >= 1)
      x = n;
    else
      x = q <= 0.5 ? next_binomial(n, q, g) : n - next_binomial(n, 1 - q, g);
    Drawing::rest(drawn, 8);
  });
}

void random_permutation(const NdView& dst, Generator& g) {
  const Drawing drawing(g, dst.numel());
  int64_t n = dst.numel(), drawn = 0;
  dispatch(dst.dtype, RealTypes{}, [&]<class T>() {
    T* x = dst.ptr<T>();
    for (int64_t i = 0; i < n; ++i) x[i] = convert<T>(i);
    bool small = n < static_cast<int64_t>(UINT32_MAX) / 20;
    for (int64_t i = 0; i + 1 < n; ++i) {
      uint64_t left = static_cast<uint64_t>(n - i);
      uint64_t j = small ? g.next32() % left : g.next64() % left;
      std::swap(x[i], x[i + static_cast<int64_t>(j)]);
      Drawing::rest(drawn, 1);
    }
  });
}

// An exponential draw, by which weights are divided when drawing without replacement.
static double next_wait(Generator& g) { return std::max(-std::log1p(-next_double(g)), 1e-300); }

void random_multinomial(const NdView& dst, const NdView& weights, bool replacement, bool by_columns,
                        Generator& g) {
  const Drawing drawing(g, weights.numel());
  int64_t rows = dst.sizes[0], samples = dst.sizes[1], categories = weights.sizes[1];
  int64_t drawn = 0;
  int64_t* out = dst.ptr<int64_t>();
  dispatch_float("multinomial", weights.dtype, [&]<class T>() {
    const T* w = weights.ptr<T>();
    std::vector<double> sums(static_cast<size_t>(categories));
    std::vector<std::pair<double, int64_t>> keys(static_cast<size_t>(categories));
    std::vector<double> waits;  // of all rows, where they are drawn by columns
    if (by_columns && (!replacement || samples == 1)) {
      waits.resize(static_cast<size_t>(rows * categories));
      for (int64_t c = 0; c < categories; ++c) {
        for (int64_t r = 0; r < rows; ++r) {
          waits[static_cast<size_t>(r * categories + c)] = next_wait(g);
          Drawing::rest(drawn, 1);
        }
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      double total = 0;
      int64_t possible = 0;
      for (int64_t c = 0; c < categories; ++c) {
        double x = static_cast<double>(static_cast<compute_t<T>>(w[r * categories + c]));
        if (!(x >= 0) || std::isinf(x)) {
          fail("multinomial: input must hold neither inf, nan nor an element below 0");
        }
        possible += x > 0;
        sums[static_cast<size_t>(c)] = total += x;
      }
      require(total > 0, "multinomial: the weights of each row must have a sum above 0");
      if (replacement && samples > 1) {  // one draw is the same either way, and cheaper below
        for (int64_t s = 0; s < samples; ++s) {
          double u = next_double(g) * total;
          auto at = std::upper_bound(sums.begin(), sums.end(), u) - sums.begin();
          int64_t k = std::min<int64_t>(at, categories - 1);
          // Rounding may land on the far side of the last possible category.
          while (k > 0 && sums[static_cast<size_t>(k)] == sums[static_cast<size_t>(k - 1)]) --k;
          out[r * samples + s] = k;
          Drawing::rest(drawn, 16);  // a search takes long
        }
        continue;
      }
      require(samples <= possible, "multinomial: cannot draw ", samples,
              " samples without replacement from ", possible, " categories with a weight above 0");
      // The largest of weight / exponential are a sample without replacement.
      for (int64_t c = 0; c < categories; ++c) {
        double x = static_cast<double>(static_cast<compute_t<T>>(w[r * categories + c]));
        double wait = waits.empty() ? next_wait(g) : waits[static_cast<size_t>(r * categories + c)];
        keys[static_cast<size_t>(c)] = {x >= 0 ? x / wait : 0.0, c};  // another thread may write
        Drawing::rest(drawn, 1);
      }
      // For many samples, selects the largest first: a heap would access memory all over.
      auto before = [](const auto& a, const auto& b) {
        return a.first > b.first || (a.first == b.first && a.second < b.second);
      };
      const auto last = keys.begin() + samples;
      if (samples > 1024 && last != keys.end()) {
        std::nth_element(keys.begin(), last, keys.end(), before);
        std::sort(keys.begin(), last, before);
      } else {
        std::partial_sort(keys.begin(), last, keys.end(), before);
      }
      for (int64_t s = 0; s < samples; ++s)
        out[r * samples + s] = keys[static_cast<size_t>(s)].second;
    }
  });
}

// The summand for "add nothing": -0, because -0 + -0 stays -0.
static double keeping_sign(double added) { return added == 0 ? -0.0 : added; }

void random_masked_affine(const NdView& out, const NdView& mask, const NdView& in, double keep,
                          double scale, double shift, double dropped, Generator& g) {
  const bool kept = mask.numel() == out.numel();
  if (out.dtype != DType::Float32 || !out.contiguous() || !in.contiguous() || !mask.contiguous() ||
      (!kept && mask.numel() > 0)) {
    random_bernoulli(mask, keep, g);
    masked_affine(out, in, mask, scale, shift, dropped);
    return;
  }
  const Drawing drawing(g, out.numel());
  const auto a = static_cast<float>(scale), b = static_cast<float>(keeping_sign(shift)),
             d = static_cast<float>(keeping_sign(dropped));
  const uint64_t limit = limit_of(keep);
  auto* to = out.ptr<float>();
  auto* from = in.ptr<const float>();
  const bool streamed = to != from && starts_line(to) &&
                        out.numel() * int64_t{sizeof(float)} >= stream_in_order_bytes;
  for_pairs(g, out.numel(), from,
            [&](int64_t first, const uint32_t* upper, const uint32_t* lower, int64_t count) {
              uint8_t forgotten[piece_words / 2];
              random_loops().drop(to + first, kept ? mask.ptr<uint8_t>() + first : forgotten,
                                  from + first, upper, lower, count, limit, a, b, d, streamed);
            });
}

// Neighbouring elements of a row of masked_affine(), through registers of float.
static void affine_piece(float* out, const float* x, const uint8_t* mask, bool one, int64_t n,
                         float scale, float shift, float dropped) {
  if (!one) return random_loops().masked(out, x, mask, n, scale, shift, dropped);
  const float a = *mask ? scale : 0.0f, b = *mask ? shift : dropped;
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * a + b;
}
// A row of masked_affine(); one mask element may be broadcast over the row.
template <class T>
static void affine_row(char* const* p, const int64_t* s, int64_t n, const Scalar* c) {
  using C = compute_t<T>;
  const C scale = c[0].to<C>(), shift = c[1].to<C>(), dropped = c[2].to<C>();
  auto* o = reinterpret_cast<T*>(p[0]);
  auto* x = reinterpret_cast<const T*>(p[1]);
  auto* m = reinterpret_cast<const uint8_t*>(p[2]);
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  const int64_t so = s[0] / item, sx = s[1] / item;
  if constexpr (std::is_same_v<C, float>) {
    if (so == 1 && sx == 1 && s[2] <= 1) {
      const bool one = s[2] == 0;
      if constexpr (std::is_same_v<T, float>) {
        affine_piece(o, x, m, one, n, scale, shift, dropped);
      } else {
        constexpr int64_t piece = 512;
        alignas(64) float wide[piece], made[piece];
        static const Loop widen = cast_loop_of(dtype_of<T>(), DType::Float32),
                          narrow = cast_loop_of(DType::Float32, dtype_of<T>());
        constexpr int64_t to_wide[] = {4, item}, to_narrow[] = {item, 4};
        for (int64_t i = 0; i < n; i += piece) {
          const int64_t count = std::min(piece, n - i);
          char* const in[] = {reinterpret_cast<char*>(wide),
                              reinterpret_cast<char*>(const_cast<T*>(x + i))};
          char* const out[] = {reinterpret_cast<char*>(o + i), reinterpret_cast<char*>(made)};
          widen(in, to_wide, count, nullptr);
          affine_piece(made, wide, one ? m : m + i, one, count, scale, shift, dropped);
          narrow(out, to_narrow, count, nullptr);
        }
      }
      return;
    }
  }
  // By bits: a branch would go the wrong way at every other element.
  using Bits = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;
  const Bits of_scale = std::bit_cast<Bits>(scale), of_shift = std::bit_cast<Bits>(shift),
             of_dropped = std::bit_cast<Bits>(dropped);
  for (int64_t i = 0; i < n; ++i) {
    const Bits kept = m[i * s[2]] ? ~Bits(0) : Bits(0);
    const C added = std::bit_cast<C>((of_shift & kept) | (of_dropped & ~kept));
    o[i * so] =
        static_cast<T>(static_cast<C>(x[i * sx]) * std::bit_cast<C>(of_scale & kept) + added);
  }
}

void masked_affine(const NdView& out, const NdView& in, const NdView& mask, double scale,
                   double shift, double dropped) {
  shift = keeping_sign(shift);
  dropped = keeping_sign(dropped);
  if (out.dtype == DType::Float32 && out.contiguous() && in.contiguous() && mask.contiguous()) {
    parallel_for(out.numel(), grain_default, [&](int64_t begin, int64_t end) {
      random_loops().masked(out.ptr<float>() + begin, in.ptr<const float>() + begin,
                            mask.ptr<uint8_t>() + begin, end - begin, static_cast<float>(scale),
                            static_cast<float>(shift), static_cast<float>(dropped));
    });
    return;
  }
  dispatch_float("dropout", out.dtype, [&]<class T>() {
    const Scalar factors[] = {Scalar(scale), Scalar(shift), Scalar(dropped)};
    char* const data[] = {out.data, in.data, mask.data};
    const int64_t* const strides[] = {out.strides, in.strides, mask.strides};
    const size_t items[] = {sizeof(T), sizeof(T), 1};
    run_loop(affine_row<T>, 3, data, strides, items, out.sizes, out.ndim, factors);
  });
}

}  // namespace clew::kernels

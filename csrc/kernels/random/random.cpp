// Random fills: uniform and normal numbers, integers, and what one uniform an element is mapped to.
// May include: base, kernels.
// Invariant: every function holds the generator's mutex while it draws.
#include "kernels/random/random.h"

#include <cmath>
#include <numbers>

#include "kernels/core/instruction_set.h"
#include "kernels/random/drawing.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const RandomLoops random_table;)

const RandomLoops& random_loops() { return CLEW_CHOSEN(random_table); }

constinit thread_local Drawing* Drawing::current = nullptr;

namespace {

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

}  // namespace clew::kernels

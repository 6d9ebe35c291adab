// Weighted sums of elements at given places, and the two forms that are their gradients.
// May include: base, kernels.
// Invariant: threads share no sum: a task owns points, or a channel of a sample.
#include "kernels/resample/sampling.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/read_once.h"

namespace clew::kernels {

namespace {

constexpr int64_t block = 128;  // points whose places and sums stay in the first-level cache
constexpr int64_t most = 16;    // places of a point that are looked at together

// Calls run(sample, first place, places, first point, points) for all blocks.
template <class F> void for_blocks(const SamplingShape& sh, F&& run) {
  const int64_t blocks = (sh.p + block - 1) / block;
  const int64_t work = 1 + block * sh.c * sh.k;
  parallel_for(sh.n * blocks, 1 + grain_default / work, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t p0 = task % blocks * block, count = std::min(block, sh.p - p0);
      for (int64_t k0 = 0; k0 < sh.k; k0 += most)
        run(task / blocks, k0, std::min(most, sh.k - k0), p0, count);
    }
  });
}

}  // namespace

template <class T>
void gather_weighted(T* out, const T* x, const int64_t* index, const T* weight,
                     const SamplingShape& sh) {
  if (sh.k == 0) std::fill_n(out, sh.n * sh.c * sh.p, T(0));
  for_blocks(sh, [&](int64_t n, int64_t k0, int64_t places, int64_t p0, int64_t count) {
    const int64_t* from = index + (n * sh.k + k0) * sh.p + p0;
    const T* w = weight + (n * sh.k + k0) * sh.p + p0;
    // Copied: every channel reads them.
    int64_t own[most * block];
    bool all = true;
    for (int64_t k = 0; k < places; ++k)
      for (int64_t j = 0; j < count; ++j) {
        const int64_t at = read_once(from[k * sh.p + j]);
        own[k * block + j] = at;
        all &= within(at, sh.s);
      }
    auto term = [&](const T* row, int64_t k, int64_t j) {
      return w[k * sh.p + j] * row[own[k * block + j]];
    };
    for (int64_t c = 0; c < sh.c; ++c) {
      const T* row = x + (n * sh.c + c) * sh.s;
      T* to = out + (n * sh.c + c) * sh.p + p0;
      if (k0 == 0) std::fill_n(to, count, T(0));
      int64_t k = 0;
      for (; all && k + 4 <= places; k += 4) {
        for (int64_t j = 0; j < count; ++j)
          to[j] +=
              (term(row, k, j) + term(row, k + 1, j)) + (term(row, k + 2, j) + term(row, k + 3, j));
      }
      for (; k < places; ++k) {
        for (int64_t j = 0; j < count; ++j)
          if (all || within(own[k * block + j], sh.s)) to[j] += term(row, k, j);
      }
    }
  });
}

template <class T>
void scatter_weighted(T* out, const T* points, const int64_t* index, const T* weight,
                      const SamplingShape& sh) {
  parallel_for(sh.n * sh.c, 1 + grain_default / (1 + sh.p * sh.k + sh.s),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   T* to = out + row * sh.s;
                   const T* from = points + row * sh.p;
                   std::fill_n(to, sh.s, T(0));
                   for (int64_t k = 0; k < sh.k; ++k) {
                     const int64_t first = (row / sh.c * sh.k + k) * sh.p;
                     for (int64_t j = 0; j < sh.p; ++j) {
                       const int64_t at = read_once(index[first + j]);
                       if (within(at, sh.s)) to[at] += weight[first + j] * from[j];
                     }
                   }
                 }
               });
}

template <class T>
void gather_dots(T* out, const T* x, const int64_t* index, const T* points,
                 const SamplingShape& sh) {
  for_blocks(sh, [&](int64_t n, int64_t k0, int64_t places, int64_t p0, int64_t count) {
    for (int64_t k = 0; k < places; ++k) {
      const int64_t first = (n * sh.k + k0 + k) * sh.p + p0;
      T sums[block] = {};
      for (int64_t c = 0; c < sh.c; ++c) {
        const T *row = x + (n * sh.c + c) * sh.s, *g = points + (n * sh.c + c) * sh.p + p0;
        for (int64_t j = 0; j < count; ++j) {
          const int64_t at = read_once(index[first + j]);
          if (within(at, sh.s)) sums[j] += row[at] * g[j];
        }
      }
      std::copy_n(sums, count, out + first);
    }
  });
}

template void gather_weighted(float*, const float*, const int64_t*, const float*,
                              const SamplingShape&);
template void gather_weighted(double*, const double*, const int64_t*, const double*,
                              const SamplingShape&);
template void scatter_weighted(float*, const float*, const int64_t*, const float*,
                               const SamplingShape&);
template void scatter_weighted(double*, const double*, const int64_t*, const double*,
                               const SamplingShape&);
template void gather_dots(float*, const float*, const int64_t*, const float*, const SamplingShape&);
template void gather_dots(double*, const double*, const int64_t*, const double*,
                          const SamplingShape&);

}  // namespace clew::kernels

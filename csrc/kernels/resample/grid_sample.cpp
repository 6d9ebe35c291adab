// Grid sampling: which block of places, and which channels, are whose thread's.
// May include: base, kernels.
// Invariant: every element of a result is summed by one thread, in the order of the places.
#include "kernels/resample/grid_sample.h"

#include <algorithm>
#include <type_traits>

#include "base/parallel.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const GridLoops<float> grid_sample_float;
                 extern const GridLoops<double> grid_sample_double;)

namespace {

template <class T> const GridLoops<T>& loops() {
  return of_type<T>(CLEW_CHOSEN(grid_sample_float), CLEW_CHOSEN(grid_sample_double));
}

// Calls run(sample, first place, places) for all blocks.
template <class F> void for_blocks(const GridShape& sh, F&& run) {
  const int64_t blocks = (sh.p + grid_block - 1) / grid_block;
  const int64_t work = grid_block * (16 + 4 * sh.c);
  parallel_for(sh.n * blocks, 1 + grain_default / work, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t p0 = task % blocks * grid_block;
      run(task / blocks, p0, std::min(grid_block, sh.p - p0));
    }
  });
}

}  // namespace

template <class T> void grid_sample(T* out, const T* x, const T* grid, const GridShape& sh) {
  for_blocks(sh, [&, run = loops<T>().sample](int64_t n, int64_t p0, int64_t count) {
    run(out + n * sh.c * sh.p + p0, x + n * sh.c * sh.s, grid + (n * sh.p + p0) * sh.dims, sh,
        count);
  });
}

template <class T>
void grid_sample_image_slopes(T* dx, const T* grad, const T* grid, const GridShape& sh) {
  if (sh.n * sh.c == 0) return;
  // Several threads share a sample's channels where there are fewer samples than threads.
  const int64_t groups = std::min<int64_t>(sh.c, (num_threads() + sh.n - 1) / sh.n);
  const int64_t work = sh.c / groups * (4 * sh.p + sh.s);
  parallel_for(sh.n * groups, 1 + grain_default / (1 + work),
               [&, run = loops<T>().image_slopes](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t n = task / groups, part = task % groups;
                   const int64_t c0 = part * sh.c / groups, c1 = (part + 1) * sh.c / groups;
                   T* to = dx + (n * sh.c + c0) * sh.s;
                   std::fill_n(to, (c1 - c0) * sh.s, T(0));
                   for (int64_t p0 = 0; p0 < sh.p; p0 += grid_block)
                     run(to, grad + (n * sh.c + c0) * sh.p + p0, grid + (n * sh.p + p0) * sh.dims,
                         sh, c1 - c0, std::min(grid_block, sh.p - p0));
                 }
               });
}

template <class T>
void grid_sample_grid_slopes(T* dgrid, const T* x, const T* grad, const T* grid,
                             const GridShape& sh) {
  for_blocks(sh, [&, run = loops<T>().grid_slopes](int64_t n, int64_t p0, int64_t count) {
    const int64_t at = (n * sh.p + p0) * sh.dims;
    run(dgrid + at, x + n * sh.c * sh.s, grad + n * sh.c * sh.p + p0, grid + at, sh, count);
  });
}

template void grid_sample(float*, const float*, const float*, const GridShape&);
template void grid_sample(double*, const double*, const double*, const GridShape&);
template void grid_sample_image_slopes(float*, const float*, const float*, const GridShape&);
template void grid_sample_image_slopes(double*, const double*, const double*, const GridShape&);
template void grid_sample_grid_slopes(float*, const float*, const float*, const float*,
                                      const GridShape&);
template void grid_sample_grid_slopes(double*, const double*, const double*, const double*,
                                      const GridShape&);

}  // namespace clew::kernels

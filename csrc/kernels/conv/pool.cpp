// Pooling: planes whose windows are irregular or large, and what is routed by indices.
// May include: base, kernels/conv/pool.h.
// Invariant: every output is computed alone, and what spreads over a plane belongs to one thread,
// so results do not depend on the number of threads.
#include "kernels/conv/pool.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "base/read_once.h"
#include "base/scratch.h"
#include "kernels/conv/pool_loops.h"
#include "kernels/conv/pool_runs.h"
#include "kernels/core/instruction_set.h"
#include "kernels/core/loop_tables.h"
#include "kernels/reduce/reduce_loops.h"

namespace clew::kernels {

namespace {

int64_t work_of(const PoolShape& s) { return std::max(s.taps(), s.in_points() + s.out_points()); }

// Outputs of a row that are computed together: their sums and places stay in the nearest cache.
constexpr int64_t row_piece = 1024;

// Calls f(a, b, begin, end) for the outputs [begin, end) of rows (a, b) of a plane.
template <class F> void each_row(const PoolShape& s, F&& f) {
  const int64_t n = s.dim[2].out;
  for (int64_t a = 0; a < s.dim[0].out; ++a) {
    for (int64_t b = 0; b < s.dim[1].out; ++b) {
      for (int64_t o = 0; o < n; o += row_piece) {
        if (stopped()) return;
        f(a, b, o, std::min(n, o + row_piece));
      }
    }
  }
}
// Calls f(plane, a, b, begin, end) for all rows of all planes, in parallel.
template <class F> void each_row_of_all(const PoolShape& s, F&& f) {
  const int64_t n = s.dim[2].out, rows = s.dim[1].out, images = s.dim[0].out;
  const int64_t pieces = (n + row_piece - 1) / row_piece, units = images * rows * pieces;
  const int64_t work = std::max<int64_t>(1, work_of(s) / units);
  parallel_for(s.planes * units, std::max<int64_t>(1, grain_default / work),
               [&](int64_t begin, int64_t end) {
                 int64_t o = begin % pieces, b = begin / pieces % rows,
                         a = begin / (pieces * rows) % images, p = begin / units;
                 for (int64_t unit = begin; unit < end; ++unit) {
                   f(p, a, b, o * row_piece, std::min(n, (o + 1) * row_piece));
                   if (++o < pieces) continue;
                   o = 0;
                   if (++b < rows) continue;
                   b = 0;
                   if (++a < images) continue;
                   a = 0, ++p;
                 }
               });
}
template <class F> void each_plane(const PoolShape& s, F&& f) {
  parallel_for(s.planes, std::max<int64_t>(1, grain_default / work_of(s)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t p = begin; p < end; ++p) f(p);
               });
}

// Calls f(output row, input line) for every line of the image that an output row's windows touch.
template <class F> void each_line(const PoolShape& s, int64_t a, int64_t b, F&& f) {
  const PoolDim &d0 = s.dim[0], &d1 = s.dim[1];
  const int64_t first = d1.start(b), end = d1.end(b);
  for (int64_t i = d0.start(a); i < d0.end(a); i += d0.step) {
    for (int64_t j = first; j < end; j += d1.step) f((i * d1.in + j) * s.dim[2].in);
  }
}

template <class T> bool is_nan(T v) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return v != v;
}
// Outputs [begin, end) of row (a, b) of a plane, window by window.
template <class T>
void max_windows(const PoolShape& s, int64_t a, int64_t b, int64_t begin, int64_t end, const T* x,
                 T* values, int64_t* indices) {
  using A = compute_t<T>;
  const PoolDim& w = s.dim[2];
  const int64_t row = (a * s.dim[1].out + b) * w.out;
  for (int64_t o = begin; o < end; ++o) {
    A top = lowest<A>();
    int64_t at = s.corner(a, b, o);
    const int64_t first = w.start(o), last = w.end(o);
    each_line(s, a, b, [&](int64_t line) {
      for (int64_t i = first; i < last; i += w.step) {
        const A v = static_cast<A>(x[line + i]);
        if (v > top || is_nan(v)) {
          top = v;
          at = line + i;
        }
      }
    });
    values[row + o] = static_cast<T>(top);
    indices[row + o] = at;
  }
}

// The divisors of a row of outputs.
class Divisors {
  const PoolShape& s_;
  int64_t rows_;

 public:
  Divisors(const PoolShape& s, int64_t a, int64_t b)
      : s_(s), rows_(s.divisor != 0 ? s.divisor : s.dim[0].count(a) * s.dim[1].count(b)) {}
  double of(int64_t o) const {
    return static_cast<double>(s_.divisor != 0 ? rows_ : rows_ * s_.dim[2].count(o));
  }
};
// The sum of x[begin], x[begin + step] ... below end; eight partial sums, so that long runs
// vectorise.
template <class A, class T> A run_sum(const T* x, int64_t begin, int64_t end, int64_t step) {
  A total(0);
  int64_t i = begin;
  if (step == 1 && end - begin >= 16) {
    A part[8] = {};
    for (; i + 8 <= end; i += 8) {
      for (int q = 0; q < 8; ++q) part[q] += static_cast<A>(x[i + q]);
    }
    total =
        ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
  }
  for (; i < end; i += step) total += static_cast<A>(x[i]);
  return total;
}

// The sums of a plane, which one thread keeps between calls.
const LocalScratch sums_scratch;
constexpr size_t kept_megabytes = 64;

// One window that is the whole plane: the mean of a run.
bool whole_plane(const PoolShape& s) {
  for (const PoolDim& d : s.dim) {
    if (d.out != 1 || d.step != 1 || d.start(0) != 0 || d.end(0) != d.in) return false;
  }
  return true;
}

// A line of 16-bit floats, whose sums are of float32, as such; others as they are.
const LocalScratch line_scratch;
template <class T> const accumulate_t<T>* wide_line(const T* x, int64_t n) {
  using A = accumulate_t<T>;
  if constexpr (sizeof(A) == sizeof(T)) {
    return reinterpret_cast<const A*>(x);
  } else {
    A* room = line_scratch.of<A>(n);
    char* const rows[] = {reinterpret_cast<char*>(room),
                          reinterpret_cast<char*>(const_cast<T*>(x))};
    const int64_t steps[] = {sizeof(A), sizeof(T)};
    cast_loop_of(dtype_of<T>(), dtype_of<A>())(rows, steps, n, nullptr);
    return room;
  }
}

template <class T>
void mean_row(const PoolShape& s, int64_t a, int64_t b, int64_t begin, int64_t end, const T* x,
              T* y) {
  using A = accumulate_t<T>;
  using R = divisor_t<A>;
  const PoolDim& w = s.dim[2];
  const Divisors divisor(s, a, b);
  T* to = y + (a * s.dim[1].out + b) * w.out;
  A sum[row_piece];
  std::fill_n(sum, end - begin, A(0));
  each_line(s, a, b, [&](int64_t at) {
    const A* line = wide_line(x + at, w.in);
    for (int64_t o = begin; o < end; ++o)
      sum[o - begin] += run_sum<A>(line, w.start(o), w.end(o), w.step);
  });
  for (int64_t o = begin; o < end; ++o) sum[o - begin] /= static_cast<R>(divisor.of(o));
  if constexpr (sizeof(A) == sizeof(T)) {
    for (int64_t o = begin; o < end; ++o) to[o] = static_cast<T>(sum[o - begin]);
  } else {
    char* const places[] = {reinterpret_cast<char*>(to + begin), reinterpret_cast<char*>(sum)};
    const int64_t steps[] = {sizeof(T), sizeof(A)};
    cast_loop_of(dtype_of<A>(), dtype_of<T>())(places, steps, end - begin, nullptr);
    line_scratch.trim(kept_megabytes);
  }
}

template <class T> void mean_plane_backward(const PoolShape& s, const T* gy, T* gx) {
  using A = accumulate_t<T>;
  using R = divisor_t<A>;
  const PoolDim& w = s.dim[2];
  // 16-bit floats are summed in float32.
  A* to;
  if constexpr (sizeof(A) == sizeof(T))
    to = reinterpret_cast<A*>(gx);
  else
    to = sums_scratch.of<A>(s.in_points());
  std::fill_n(to, s.in_points(), A(0));
  each_row(s, [&](int64_t a, int64_t b, int64_t begin, int64_t end) {
    const T* from = gy + (a * s.dim[1].out + b) * w.out;
    const Divisors divisor(s, a, b);
    A part[row_piece];
    for (int64_t o = begin; o < end; ++o)
      part[o - begin] = static_cast<A>(from[o]) / static_cast<R>(divisor.of(o));
    each_line(s, a, b, [&](int64_t line) {
      for (int64_t o = begin; o < end; ++o) {
        const int64_t last = w.end(o);
        for (int64_t i = w.start(o); i < last; i += w.step) to[line + i] += part[o - begin];
      }
    });
  });
  if constexpr (sizeof(A) != sizeof(T)) {
    for (int64_t i = 0; i < s.in_points(); ++i) gx[i] = static_cast<T>(to[i]);
    sums_scratch.trim(kept_megabytes);
  }
}

}  // namespace

void max_pool(const PoolShape& s, const void* x, void* values, int64_t* indices) {
  if (s.channels != 0) return max_pool_last(s, x, values, indices);
  if (max_pool_runs(s, x, values, indices)) return;
  const int64_t in = s.in_points(), out = s.out_points();
  dispatch(s.dtype, PoolTypes{}, [&]<class T> {
    each_row_of_all(s, [&](int64_t p, int64_t a, int64_t b, int64_t begin, int64_t end) {
      const T* from = static_cast<const T*>(x) + p * in;
      T* to = static_cast<T*>(values) + p * out;
      max_windows<T>(s, a, b, begin, end, from, to, indices + p * out);
    });
  });
}

void mean_pool(const PoolShape& s, const void* x, void* y) {
  if (s.channels != 0) return mean_pool_last(s, x, y);
  const bool whole = whole_plane(s);
  if (!whole && mean_pool_runs(s, x, y)) return;
  const int64_t in = s.in_points(), out = s.out_points();
  dispatch(s.dtype, MeanPoolTypes{}, [&]<class T> {
    using A = accumulate_t<T>;
    const auto count = static_cast<divisor_t<A>>(whole ? Divisors(s, 0, 0).of(0) : 1);
    each_row_of_all(s, [&](int64_t p, int64_t a, int64_t b, int64_t begin, int64_t end) {
      const T* from = static_cast<const T*>(x) + p * in;
      if (!whole) return mean_row<T>(s, a, b, begin, end, from, static_cast<T*>(y) + p * out);
      T& mean = static_cast<T*>(y)[p];
      if constexpr (std::is_same_v<T, float>) {
        double sum = 0;
        reduce_table().sum_float.row(from, in, sum);
        mean = static_cast<float>(sum / static_cast<double>(count));
      } else {
        mean = static_cast<T>(run_sum<A>(from, 0, in, 1) / count);
      }
    });
  });
}

void mean_pool_backward(const PoolShape& s, const void* gy, void* gx) {
  if (s.channels != 0) return mean_pool_backward_last(s, gy, gx);
  const bool whole = whole_plane(s);
  if (!whole && mean_pool_backward_runs(s, gy, gx)) return;
  const int64_t in = s.in_points(), out = s.out_points();
  dispatch(s.dtype, InexactTypes{}, [&]<class T> {
    using A = accumulate_t<T>;
    const auto count = static_cast<divisor_t<A>>(whole ? Divisors(s, 0, 0).of(0) : 1);
    each_plane(s, [&](int64_t p) {
      if (whole) {
        const A part = A(0) + static_cast<A>(static_cast<const T*>(gy)[p]) / count;
        std::fill_n(static_cast<T*>(gx) + p * in, in, static_cast<T>(part));
        return;
      }
      mean_plane_backward<T>(s, static_cast<const T*>(gy) + p * out, static_cast<T*>(gx) + p * in);
    });
  });
}

bool pool_scatter(DType dtype, const PoolPlanes& routed, const void* gy, const int64_t* indices,
                  void* gx) {
  if (routed.channels != 0) return pool_scatter_last(dtype, routed, gy, indices, gx);
  const auto [planes, in_points, out_points, none] = routed;
  std::atomic<bool> valid = true;
  dispatch(as_signed(dtype), PlainNumericTypes{}, [&]<class T> {
    using A = compute_t<T>;
    parallel_for(
        planes, std::max<int64_t>(1, grain_default / std::max<int64_t>(1, in_points + out_points)),
        [&](int64_t begin, int64_t end) {
          for (int64_t p = begin; p < end; ++p) {
            T* to = static_cast<T*>(gx) + p * in_points;
            const T* from = static_cast<const T*>(gy) + p * out_points;
            const int64_t* at = indices + p * out_points;
            std::fill_n(to, in_points, T{});
            for (int64_t i = 0; i < out_points; ++i) {
              if (i % (1 << 18) == 0 && stopped()) return;
              const int64_t place = read_once(at[i]);
              if (place < 0 || place >= in_points) {
                valid = false;
                continue;
              }
              to[place] = static_cast<T>(static_cast<A>(to[place]) + static_cast<A>(from[i]));
            }
          }
        });
  });
  return valid;
}

bool pool_gather(DType dtype, const PoolPlanes& routed, const void* x, const int64_t* indices,
                 void* y) {
  if (routed.channels != 0) return pool_gather_last(dtype, routed, x, indices, y);
  const auto [planes, in_points, out_points, none] = routed;
  std::atomic<bool> valid = true;
  dispatch(as_signed(dtype), PlainNumericTypes{}, [&]<class T> {
    parallel_for(planes, std::max<int64_t>(1, grain_default / std::max<int64_t>(1, out_points)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; ++p) {
                     const T* from = static_cast<const T*>(x) + p * in_points;
                     const int64_t* at = indices + p * out_points;
                     T* to = static_cast<T*>(y) + p * out_points;
                     for (int64_t i = 0; i < out_points; ++i) {
                       const int64_t place = read_once(at[i]);
                       const bool ok = place >= 0 && place < in_points;
                       if (!ok) valid = false;
                       to[i] = ok ? from[place] : T{};
                     }
                   }
                 });
  });
  return valid;
}

}  // namespace clew::kernels

// Pooling: a pass along output rows for regular windows, inside each window for others.
// May include: base, kernels/conv/pool.h.
// Invariant: planes are independent, so results do not depend on the number of threads.
#include "kernels/conv/pool.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "base/read_once.h"
#include "base/scratch.h"
#include "kernels/reduce/reduce_loops.h"

namespace clew::kernels {

namespace {

template <class F> void each_plane(const PoolShape& s, F&& f) {
  const int64_t work = std::max<int64_t>(1, s.in_points() + s.out_points());
  parallel_for(s.planes, std::max<int64_t>(1, grain_default / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t p = begin; p < end; ++p) f(p);
               });
}

// Rows pay off when a row of outputs is longer than a window and the windows are regular.
bool by_rows(const PoolShape& s) {
  return s.dim[2].stride > 0 && s.dim[2].out > 2 * s.dim[2].kernel;
}

// Outputs [begin, end) of a row whose k-th window element lies inside the image.
struct Span {
  int64_t begin, end, offset;
};
Span inside(const PoolDim& d, int64_t k) {
  const int64_t offset = k * d.step - d.pad;
  const int64_t begin = offset >= 0 ? 0 : (-offset + d.stride - 1) / d.stride;
  const int64_t end = offset >= d.in ? 0 : (d.in - 1 - offset) / d.stride + 1;
  return {std::min(begin, d.out), std::min(end, d.out), offset};
}

// Calls f(output row, input line) for every line of the image that an output row's windows touch.
template <class F> void each_line(const PoolShape& s, int64_t a, int64_t b, F&& f) {
  const PoolDim &d0 = s.dim[0], &d1 = s.dim[1];
  for (int64_t i = d0.start[a]; i < d0.end[a]; i += d0.step) {
    for (int64_t j = d1.start[b]; j < d1.end[b]; j += d1.step) f((i * d1.in + j) * s.dim[2].in);
  }
}

template <class T> bool is_nan(T v) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return v != v;
}
template <class T> T lowest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::lowest();
  else
    return -std::numeric_limits<T>::infinity();
}

// Buffers of one output row: the greatest values so far and, in an integer as wide as they are,
// their places.
template <class A> struct MaxRow {
  using Place = std::conditional_t<sizeof(A) == 4, int32_t, int64_t>;
  A* value;
  Place* place;
  MaxRow(const LocalScratch& room, int64_t n) {
    const auto count = static_cast<size_t>(n);
    place = static_cast<Place*>(room.get(count * (sizeof(Place) + sizeof(A))));
    value = reinterpret_cast<A*>(place + n);
  }
};
const LocalScratch max_room;

// One line of the image against a row of windows: `first` is the input of output 0 at this window
// element.
template <int fixed_stride, class T, class A, class P>
void max_line(const T* x, int64_t first, int64_t stride, int64_t begin, int64_t end, A* value,
              P* place) {
  if (fixed_stride) stride = fixed_stride;
  for (int64_t o = begin; o < end; ++o) {
    const A v = static_cast<A>(x[first + o * stride]);
    const bool take = (v > value[o]) | is_nan(v);
    value[o] = take ? v : value[o];
    place[o] = take ? static_cast<P>(first + o * stride) : place[o];
  }
}

template <class T, class A>
void max_rows(const PoolShape& s, const T* x, T* values, int64_t* indices) {
  using P = typename MaxRow<A>::Place;
  const PoolDim& w = s.dim[2];
  const MaxRow<A> row(max_room, w.out);
  A* value = row.value;
  P* place = row.place;
  for (int64_t a = 0; a < s.dim[0].out; ++a) {
    for (int64_t b = 0; b < s.dim[1].out; ++b) {
      const int64_t corner = (s.dim[0].start[a] * s.dim[1].in + s.dim[1].start[b]) * w.in;
      for (int64_t o = 0; o < w.out; ++o) {
        value[o] = lowest<A>();
        place[o] = static_cast<P>(corner + w.start[o]);
      }
      each_line(s, a, b, [&](int64_t line) {
        for (int64_t k = 0; k < w.kernel; ++k) {
          const Span span = inside(w, k);
          const int64_t first = line + span.offset;
          if (w.stride == 1)
            max_line<1>(x, first, 1, span.begin, span.end, value, place);
          else if (w.stride == 2)
            max_line<2>(x, first, 2, span.begin, span.end, value, place);
          else
            max_line<0>(x, first, w.stride, span.begin, span.end, value, place);
        }
      });
      const int64_t row_start = (a * s.dim[1].out + b) * w.out;
      for (int64_t o = 0; o < w.out; ++o) {
        values[row_start + o] = static_cast<T>(value[o]);
        indices[row_start + o] = place[o];
      }
    }
  }
}

template <class T> void max_windows(const PoolShape& s, const T* x, T* values, int64_t* indices) {
  using A = compute_t<T>;
  const PoolDim& w = s.dim[2];
  for (int64_t a = 0; a < s.dim[0].out; ++a) {
    for (int64_t b = 0; b < s.dim[1].out; ++b) {
      const int64_t row = (a * s.dim[1].out + b) * w.out;
      for (int64_t o = 0; o < w.out; ++o) {
        A top = lowest<A>();
        int64_t at = (s.dim[0].start[a] * s.dim[1].in + s.dim[1].start[b]) * w.in + w.start[o];
        each_line(s, a, b, [&](int64_t line) {
          for (int64_t i = w.start[o]; i < w.end[o]; i += w.step) {
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
  }
}

// The divisor of output (a, b, o).
double divisor(const PoolShape& s, int64_t a, int64_t b, int64_t o) {
  if (s.divisor != 0) return static_cast<double>(s.divisor);
  return static_cast<double>(s.dim[0].count[a] * s.dim[1].count[b] * s.dim[2].count[o]);
}
template <class A> auto real_part_type() {
  if constexpr (is_complex_v<A>)
    return typename A::value_type{};
  else
    return A{};
}

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

// One window that is the whole plane: the mean of a run.
bool whole_plane(const PoolShape& s) {
  for (const PoolDim& d : s.dim) {
    if (d.out != 1 || d.step != 1 || d.start[0] != 0 || d.end[0] != d.in) return false;
  }
  return true;
}

template <class T> void mean_plane(const PoolShape& s, bool rows, const T* x, T* y) {
  using A = accumulate_t<T>;
  using R = decltype(real_part_type<A>());
  const PoolDim& w = s.dim[2];
  std::vector<A> total(rows ? static_cast<size_t>(w.out) : 0);
  for (int64_t a = 0; a < s.dim[0].out; ++a) {
    for (int64_t b = 0; b < s.dim[1].out; ++b) {
      T* to = y + (a * s.dim[1].out + b) * w.out;
      if (rows) {
        std::fill(total.begin(), total.end(), A(0));
        A* sum = total.data();
        each_line(s, a, b, [&](int64_t line) {
          for (int64_t k = 0; k < w.kernel; ++k) {
            const Span span = inside(w, k);
            const T* from = x + line + span.offset;
            for (int64_t o = span.begin; o < span.end; ++o)
              sum[o] += static_cast<A>(from[o * w.stride]);
          }
        });
        for (int64_t o = 0; o < w.out; ++o)
          to[o] = static_cast<T>(sum[o] / static_cast<R>(divisor(s, a, b, o)));
        continue;
      }
      for (int64_t o = 0; o < w.out; ++o) {
        A sum(0);
        each_line(s, a, b,
                  [&](int64_t line) { sum += run_sum<A>(x + line, w.start[o], w.end[o], w.step); });
        to[o] = static_cast<T>(sum / static_cast<R>(divisor(s, a, b, o)));
      }
    }
  }
}

template <class T> void mean_plane_backward(const PoolShape& s, bool rows, const T* gy, T* gx) {
  using A = accumulate_t<T>;
  using R = decltype(real_part_type<A>());
  const PoolDim& w = s.dim[2];
  // 16-bit floats are summed in float32.
  std::vector<A> wide(sizeof(A) == sizeof(T) ? 0 : static_cast<size_t>(s.in_points()));
  std::vector<A> share(rows ? static_cast<size_t>(w.out) : 0);
  A* to = sizeof(A) == sizeof(T) ? reinterpret_cast<A*>(gx) : wide.data();
  std::fill_n(to, s.in_points(), A(0));
  for (int64_t a = 0; a < s.dim[0].out; ++a) {
    for (int64_t b = 0; b < s.dim[1].out; ++b) {
      const T* from = gy + (a * s.dim[1].out + b) * w.out;
      if (rows) {
        A* part = share.data();
        for (int64_t o = 0; o < w.out; ++o)
          part[o] = static_cast<A>(from[o]) / static_cast<R>(divisor(s, a, b, o));
        each_line(s, a, b, [&](int64_t line) {
          for (int64_t k = 0; k < w.kernel; ++k) {
            const Span span = inside(w, k);
            A* at = to + line + span.offset;
            for (int64_t o = span.begin; o < span.end; ++o) at[o * w.stride] += part[o];
          }
        });
        continue;
      }
      for (int64_t o = 0; o < w.out; ++o) {
        const A part = static_cast<A>(from[o]) / static_cast<R>(divisor(s, a, b, o));
        each_line(s, a, b, [&](int64_t line) {
          for (int64_t i = w.start[o]; i < w.end[o]; i += w.step) to[line + i] += part;
        });
      }
    }
  }
  if constexpr (sizeof(A) != sizeof(T)) {
    for (int64_t i = 0; i < s.in_points(); ++i) gx[i] = static_cast<T>(to[i]);
  }
}

}  // namespace

using PoolTypes = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, f16, bf16, float, double>;

void max_pool(const PoolShape& s, const void* x, void* values, int64_t* indices) {
  const int64_t in = s.in_points(), out = s.out_points();
  const bool rows = by_rows(s) && in < INT32_MAX;
  dispatch(s.dtype, PoolTypes{}, [&]<class T> {
    each_plane(s, [&](int64_t p) {
      const T* from = static_cast<const T*>(x) + p * in;
      T* to = static_cast<T*>(values) + p * out;
      if (rows) {
        max_rows<T, compute_t<T>>(s, from, to, indices + p * out);
      } else {
        max_windows(s, from, to, indices + p * out);
      }
    });
  });
}

void mean_pool(const PoolShape& s, const void* x, void* y) {
  const bool rows = by_rows(s), whole = whole_plane(s);
  const int64_t in = s.in_points(), out = s.out_points();
  dispatch(s.dtype, TypeList<int64_t, f16, bf16, float, double, c64, c128>{}, [&]<class T> {
    using A = accumulate_t<T>;
    const auto count = static_cast<decltype(real_part_type<A>())>(whole ? divisor(s, 0, 0, 0) : 1);
    each_plane(s, [&](int64_t p) {
      if (whole) {
        const T* from = static_cast<const T*>(x) + p * in;
        T& mean = static_cast<T*>(y)[p];
        if constexpr (std::is_same_v<T, float>) {
          double sum = 0;
          reduce_table().sum_float.row(from, in, sum);
          mean = static_cast<float>(sum / static_cast<double>(count));
        } else {
          mean = static_cast<T>(run_sum<A>(from, 0, in, 1) / count);
        }
        return;
      }
      mean_plane<T>(s, rows, static_cast<const T*>(x) + p * in, static_cast<T*>(y) + p * out);
    });
  });
}

void mean_pool_backward(const PoolShape& s, const void* gy, void* gx) {
  const bool rows = by_rows(s);
  const int64_t in = s.in_points(), out = s.out_points();
  dispatch(s.dtype, InexactTypes{}, [&]<class T> {
    each_plane(s, [&](int64_t p) {
      mean_plane_backward<T>(s, rows, static_cast<const T*>(gy) + p * out,
                             static_cast<T*>(gx) + p * in);
    });
  });
}

bool pool_scatter(DType dtype, int64_t planes, int64_t in_points, int64_t out_points,
                  const void* gy, const int64_t* indices, void* gx) {
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

bool pool_gather(DType dtype, int64_t planes, int64_t in_points, int64_t out_points, const void* x,
                 const int64_t* indices, void* y) {
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

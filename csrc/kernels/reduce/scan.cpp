// Running sums, products and extrema along one axis.
// May include: base, kernels.
// Invariant: float sums run in double, integer ones wrap as two's complement does.
#include "kernels/reduce/scan.h"

#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/long_work.h"
#include "kernels/core/instruction_set.h"
#include "kernels/core/stream.h"
#include "kernels/reduce/reduce_lines.h"
#include "kernels/reduce/scan_loops.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const ScanLoops scan_table;)

const ScanLoops& scan_loops() { return CLEW_CHOSEN(scan_table); }

namespace {

// Lines side by side: enough that each row of them is a long run of memory.
constexpr int64_t columns = 1024;

// Whether the elements of a line lie nearer to each other than those of neighbouring lines, or too
// few lines lie side by side to be taken together.
template <int K> bool run_along(const Lines<K>& lines) {
  if (lines.axes.empty()) return true;
  if (lines.length[0] == 1) return false;
  const bool few = lines.axes.back().size < 8 && lines.length[0] > lines.axes.back().size;
  return few || lines.step[1 % K] <= lines.spacing(1 % K);
}

// Calls body(line offsets, lines side by side) over all lines; neighbouring lines go together where
// that walks memory in order.
template <int K, class Body> void scan_lines(const Lines<K>& lines, Body&& body) {
  int64_t n = lines.length[0];
  if (n == 0 || lines.count == 0) return;
  int64_t width = run_along(lines) ? 1 : columns;
  parallel_for(lines.count, std::max<int64_t>(1, grain_default / n),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end;) {
                   if (width > 1) {
                     const int64_t w = lines.run(i, std::min(width, end - i));
                     body(lines.place(i), w);
                     i += w;
                     continue;
                   }
                   // To divide for the place of each would take longer than a short line.
                   std::array<int64_t, K> at = lines.place(i);
                   for (int64_t left = lines.run(i, end - i); left > 0; --left, ++i) {
                     body(at, 1);
                     for (int k = 0; k < K; ++k) at[static_cast<size_t>(k)] += lines.spacing(k);
                   }
                 }
               });
}

template <class T, class Acc, class F>
void scan(const NdView& dst, const NdView& src, int dim, bool reverse, Acc start, F&& f) {
  Lines<2> lines({dst, src}, dim);
  T* out = dst.ptr<T>();
  const T* in = src.ptr<const T>();
  int64_t n = lines.length[0];
  if (n == 0 || lines.count == 0) return;
  if (run_along(lines)) {
    const int64_t sign = reverse ? -1 : 1, from = sign * lines.step[1], to = sign * lines.step[0];
    const int64_t in0 = reverse ? (n - 1) * lines.step[1] : 0,
                  out0 = reverse ? (n - 1) * lines.step[0] : 0;
    auto one = [&](int64_t i) {
      const auto off = lines.place(i);
      const T* p = in + off[1] + in0;
      T* q = out + off[0] + out0;
      Acc a = start;
      for (int64_t r = 0; r < n; ++r) {
        a = f(a, p[r * from]);
        q[r * to] = convert<T>(a);
      }
    };
    // Four lines at a time, because each sum waits for the one before it. All reads come first: a
    // read would wait for a write to an address a power of two away.
    auto four = [&](int64_t i) {
      const auto o0 = lines.place(i), o1 = lines.place(i + 1), o2 = lines.place(i + 2),
                 o3 = lines.place(i + 3);
      const T *p0 = in + o0[1] + in0, *p1 = in + o1[1] + in0, *p2 = in + o2[1] + in0,
              *p3 = in + o3[1] + in0;
      T *q0 = out + o0[0] + out0, *q1 = out + o1[0] + out0, *q2 = out + o2[0] + out0,
        *q3 = out + o3[0] + out0;
      Acc a0 = start, a1 = start, a2 = start, a3 = start;
      for (int64_t r = 0; r < n; ++r) {
        const T v0 = p0[r * from], v1 = p1[r * from], v2 = p2[r * from], v3 = p3[r * from];
        a0 = f(a0, v0), a1 = f(a1, v1), a2 = f(a2, v2), a3 = f(a3, v3);
        q0[r * to] = convert<T>(a0);
        q1[r * to] = convert<T>(a1);
        q2[r * to] = convert<T>(a2);
        q3[r * to] = convert<T>(a3);
      }
    };
    parallel_for(lines.count, std::max<int64_t>(1, grain_default / n),
                 [&](int64_t begin, int64_t end) {
                   int64_t i = begin;
                   for (; i + 4 <= end; i += 4) four(i);
                   for (; i < end; ++i) one(i);
                 });
    return;
  }
  scan_lines(lines, [&](std::array<int64_t, 2> off, int64_t w) {
    std::array<Acc, columns> acc;
    for (int64_t j = 0; j < w; ++j) acc[static_cast<size_t>(j)] = start;
    int64_t to = lines.spacing(0), from = lines.spacing(1);
    const bool in_order = to == 1 && from == 1;
    const int64_t bytes = w * static_cast<int64_t>(sizeof(T));
    const bool stream = in_order && n * bytes >= stream_bytes && starts_line(out + off[0]) &&
                        bytes % line_bytes == 0 &&
                        lines.step[0] * static_cast<int64_t>(sizeof(T)) % line_bytes == 0;
    std::array<T, columns> row;
    for (int64_t r = 0; r < n; ++r) {
      int64_t at = reverse ? n - 1 - r : r;
      const T* p = in + off[1] + at * lines.step[1];
      T* q = out + off[0] + at * lines.step[0];
      if (in_order) {  // apart, as this one is made vectors of
        T* to_row = stream ? row.data() : q;
        // The hardware prefetcher stops at the end of a row, so the next row is prefetched here.
        const T* next = p + (r + 1 < n ? (reverse ? -lines.step[1] : lines.step[1]) : 0);
        constexpr int64_t line = line_bytes / int64_t{sizeof(T)};
        for (int64_t j0 = 0; j0 < w; j0 += line) {
          __builtin_prefetch(next + j0);
          const int64_t end = std::min(w, j0 + line);
          for (int64_t j = j0; j < end; ++j) {
            Acc& a = acc[static_cast<size_t>(j)];
            a = f(a, p[j]);
            to_row[j] = convert<T>(a);
          }
        }
        if (stream)
          stream_lines(reinterpret_cast<char*>(q), reinterpret_cast<const char*>(row.data()),
                       bytes);
        continue;
      }
      for (int64_t j = 0; j < w; ++j) {
        Acc& a = acc[static_cast<size_t>(j)];
        a = f(a, p[j * from]);
        q[j * to] = convert<T>(a);
      }
    }
    if (stream) stream_end();
  });
}

// What a scan reads: `src`, or a copy of it in `dst` where that is dense along the lines and each
// element of `src` lies in a cache line of its own: both are then gone through in order.
NdView read_in_order(const NdView& dst, const NdView& src, int dim) {
  if (dst.ndim < 2 || dst.strides[dim] != 1 || !dst.contiguous() ||
      src.strides[dim] * static_cast<int64_t>(itemsize(src.dtype)) < line_bytes)
    return src;
  copy(dst, src);
  return dst;
}

// Sums dense lines of numbers that are summed as what they are in vectors.
template <class T>
bool sum_lines(const NdView& dst, const NdView& src, int dim, bool reverse,
               void (*sum)(T*, const T*, int64_t, bool)) {
  Lines<2> lines({dst, src}, dim);
  const int64_t n = lines.length[0];
  if (!sum || n < 32 || lines.step[0] != 1 || lines.step[1] != 1) return false;
  auto* out = dst.ptr<T>();
  auto* in = src.ptr<const T>();
  parallel_for(lines.count, std::max<int64_t>(1, grain_default / n),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const auto off = lines.place(i);
                   sum(out + off[0], in + off[1], n, reverse);
                 }
               });
  return true;
}

// Sums dense lines of floats in vectors. False, with nothing done, if that is not faster.
bool sum_dense_lines(const NdView& dst, const NdView& src, int dim, bool reverse) {
  const ScanLoops& loops = scan_loops();
  if (dst.dtype == DType::Float64)
    return sum_lines<double>(dst, src, dim, reverse, loops.sum_double);
  if (dst.dtype == DType::Int64 || dst.dtype == DType::UInt64)
    return sum_lines<uint64_t>(dst, src, dim, reverse, loops.sum_int64);
  Lines<2> lines({dst, src}, dim);
  const int64_t n = lines.length[0];
  if (!loops.sum || dst.dtype != DType::Float32 || n < 32 || lines.step[0] != 1 ||
      lines.step[1] != 1)
    return false;
  auto* out = dst.ptr<float>();
  auto* in = src.ptr<const float>();
  constexpr int64_t line = line_bytes / int64_t{sizeof(float)};
  const bool large = out != in && lines.count * n * int64_t{sizeof(float)} >= stream_in_order_bytes;
  auto run = [&](std::array<int64_t, 2> off, int64_t begin, int64_t end, double start) {
    float* to = out + off[0] + begin;
    const bool streamed = large && starts_line(reverse ? out + off[0] + end : to);
    loops.sum(to, in + off[1] + begin, end - begin, start, reverse, streamed);
  };
  const int64_t threads = num_threads();
  if (lines.count >= threads || n < 16 * grain_default) {
    parallel_for(lines.count, std::max<int64_t>(1, grain_default / n),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) run(lines.place(i), 0, n, 0);
                 });
    return true;
  }
  // Few long lines: a piece for each thread, which starts with the sum of the pieces before it.
  const int64_t piece = (n / threads + line - 1) / line * line, pieces = (n + piece - 1) / piece;
  std::vector<double> sums(static_cast<size_t>(pieces));
  for (int64_t i = 0; i < lines.count; ++i) {
    const auto off = lines.place(i);
    auto each = [&](auto&& body) {
      parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) body(k, k * piece, std::min(n, (k + 1) * piece));
      });
    };
    each([&](int64_t k, int64_t begin, int64_t end) {
      sums[static_cast<size_t>(k)] = loops.total(in + off[1] + begin, end - begin);
    });
    double before = 0;
    for (int64_t k = 0; k < pieces; ++k) {
      auto& sum = sums[static_cast<size_t>(reverse ? pieces - 1 - k : k)];
      before += std::exchange(sum, before);
    }
    each([&](int64_t k, int64_t begin, int64_t end) {
      run(off, begin, end, sums[static_cast<size_t>(k)]);
    });
  }
  return true;
}

template <class T>
using running_t = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                     std::conditional_t<is_complex_v<T>, c128, double>>;

template <class T, class Acc> inline Acc widen(T v) {
  return static_cast<Acc>(static_cast<compute_t<T>>(v));
}

template <class T, bool Largest>
void cumextremum_of(const NdView& values, const NdView& indices, const NdView& src, int dim) {
  using C = compute_t<T>;
  Lines<3> lines({values, src, indices}, dim);
  T* out = values.ptr<T>();
  const T* in = src.ptr<const T>();
  int64_t* where = indices.ptr<int64_t>();
  int64_t n = lines.length[0];
  scan_lines(lines, [&](std::array<int64_t, 3> off, int64_t w) {
    if (w == 1) {
      const T* p = in + off[1];
      T* values_at = out + off[0];
      int64_t* places_at = where + off[2];
      const auto [to, from, place_step] = lines.step;
      C top = static_cast<C>(*p);
      int64_t place = 0;
      // In a short line the top changes often, and is chosen without a branch.
      for (int64_t r = 0; n <= 16 && r < n; ++r) {
        const C v = static_cast<C>(p[r * from]);
        const bool better = (v != v) | (Largest ? v >= top : v <= top);
        top = better ? v : top;
        place = better ? r : place;
        values_at[r * to] = static_cast<T>(top);
        places_at[r * place_step] = place;
      }
      for (int64_t r = 0; n > 16 && r < n; ++r) {
        const C v = static_cast<C>(p[r * from]);
        // Mostly the top stays, and the next element need not wait for a choice.
        if (!(Largest ? v < top : v > top)) [[unlikely]] {
          if (top == top || v != v) {
            top = v;
            place = r;
          }
        }
        values_at[r * to] = static_cast<T>(top);
        places_at[r * place_step] = place;
      }
      return;
    }
    std::array<C, columns> best;
    std::array<int64_t, columns> at;
    if (lines.spacing(0) == 1 && lines.spacing(1) == 1 && lines.spacing(2) == 1) {
      const auto [to, from, place_step] = lines.step;
      for (int64_t r = 0; r < n; ++r) {
        const T* p = in + off[1] + r * from;
        T* values_at = out + off[0] + r * to;
        int64_t* places_at = where + off[2] + r * place_step;
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) {
          const auto k = static_cast<size_t>(j);
          const C v = static_cast<C>(p[j]);
          const bool better = (r == 0) | (v != v) | (Largest ? v >= best[k] : v <= best[k]);
          best[k] = better ? v : best[k];
          at[k] = better ? r : at[k];
          values_at[j] = static_cast<T>(best[k]);
          places_at[j] = at[k];
        }
      }
      return;
    }
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t j = 0; j < w; ++j) {
        auto k = static_cast<size_t>(j);
        C v = static_cast<C>(in[off[1] + r * lines.step[1] + j * lines.spacing(1)]);
        // Nothing compares with a NaN on top.
        bool better = r == 0 || v != v || (Largest ? v >= best[k] : v <= best[k]);
        if (better) {
          best[k] = v;
          at[k] = r;
        }
        out[off[0] + r * lines.step[0] + j * lines.spacing(0)] = static_cast<T>(best[k]);
        where[off[2] + r * lines.step[2] + j * lines.spacing(2)] = at[k];
      }
    }
  });
}

}  // namespace

void cumsum(const NdView& dst, const NdView& given, int dim, bool reverse) {
  const LongWork work(given.numel());
  const NdView src = read_in_order(dst, given, dim);
  if (sum_dense_lines(dst, src, dim, reverse)) return;
  dispatch(as_signed(dst.dtype), PlainTypes{}, [&]<class T>() {
    using Acc = running_t<T>;
    scan<T>(dst, src, dim, reverse, Acc(0), [](Acc a, T v) { return a + widen<T, Acc>(v); });
  });
}

void cumprod(const NdView& dst, const NdView& given, int dim) {
  const LongWork work(given.numel());
  const NdView src = read_in_order(dst, given, dim);
  dispatch(as_signed(dst.dtype), PlainTypes{}, [&]<class T>() {
    using Acc = running_t<T>;
    scan<T>(dst, src, dim, false, Acc(1), [](Acc a, T v) { return a * widen<T, Acc>(v); });
  });
}

void logcumsumexp(const NdView& dst, const NdView& src, int dim) {
  const LongWork work(src.numel());
  if (is_complex(dst.dtype)) {
    dispatch(dst.dtype, ComplexTypes{}, [&]<class T>() {
      using Acc = std::complex<double>;
      constexpr double none = -std::numeric_limits<double>::infinity();
      scan<T>(dst, src, dim, false, Acc(none), [](Acc a, T x) {
        Acc v(x.real(), x.imag());
        Acc top = a.real() >= v.real() ? a : v, low = a.real() >= v.real() ? v : a;
        if (!(std::abs(top.real()) <= std::numeric_limits<double>::max())) return top;
        return top + std::log(1.0 + std::exp(low - top));
      });
    });
    return;
  }
  dispatch(dst.dtype, FloatTypes{}, [&]<class T>() {
    constexpr double none = -std::numeric_limits<double>::infinity();
    scan<T>(dst, src, dim, false, none, [](double a, T x) {
      double v = widen<T, double>(x);
      if (v != v || a != a) return a + v;
      double top = std::max(a, v), low = std::min(a, v);
      if (!(std::abs(top) <= std::numeric_limits<double>::max())) return top;
      return top + std::log1p(std::exp(low - top));
    });
  });
}

void cumextremum(const NdView& values, const NdView& indices, const NdView& src, int dim,
                 bool largest) {
  const LongWork work(src.numel());
  NdView v = values, s = src;
  if (s.dtype == DType::Bool) v.dtype = s.dtype = DType::UInt8;
  dispatch(s.dtype, RealNumericTypes{}, [&]<class T>() {
    if (largest)
      cumextremum_of<T, true>(v, indices, s, dim);
    else
      cumextremum_of<T, false>(v, indices, s, dim);
  });
}

}  // namespace clew::kernels

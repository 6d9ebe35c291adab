// The loops of softmax over columns, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
// Comparisons may become selections: nobody reads the floating-point exception flags.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif
#include "kernels/lanes.h"
#include "kernels/softmax_columns.h"
#include "kernels/softmax_exp.h"
#include "kernels/stream.h"
#include "kernels/vmath.h"

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int64_t flush = 32;  // sums run in C that far

// What is kept of each column of a tile. W is the width, or 0 when it is only known now.
template <class C, int W> struct Tile {
  int64_t width;
  C top[column_tile], sum[column_tile], other[column_tile];
  double total[column_tile];
  int64_t w() const { return W ? W : width; }

  void find_top(const C* x, int64_t sx, int64_t n) {
    for (int64_t j = 0; j < w(); ++j) top[j] = -vm::inf<C>;
    for (int64_t r = 0; r < n; ++r) {
      const C* p = x + r * sx;
      for (int64_t j = 0; j < w(); ++j) top[j] = p[j] > top[j] ? p[j] : top[j];
    }
  }
  // total = the sum of row(r, sum) over all rows
  template <class F> [[gnu::always_inline]] void add_up(int64_t n, F&& row) {
    for (int64_t j = 0; j < w(); ++j) total[j] = 0;
    for (int64_t r0 = 0; r0 < n; r0 += flush) {
      int64_t end = n - r0 < flush ? n : r0 + flush;
      for (int64_t j = 0; j < w(); ++j) sum[j] = 0;
      for (int64_t r = r0; r < end; ++r) row(r);
      for (int64_t j = 0; j < w(); ++j) total[j] += static_cast<double>(sum[j]);
    }
  }
  void add_exps(const C* __restrict x, int64_t sx, int64_t n) {
    add_up(n, [&](int64_t r) {
      const C* __restrict p = x + r * sx;
      for (int64_t j = 0; j < w(); ++j) sum[j] += exp_fast(p[j] - top[j]);
    });
  }

  // find_top() that copies what it reads; it is fetched some rows ahead.
  void take(C* __restrict room, const C* __restrict x, int64_t sx, int64_t n) {
    constexpr int64_t ahead = 16, line = line_bytes / static_cast<int64_t>(sizeof(C));
    constexpr int N = lane_count<C>, V = W / N;
    if constexpr (V > 0) {
      Lanes_t<C> best[V];
      for (int v = 0; v < V; ++v) best[v] = spread<C>(-vm::inf<C>);
      for (int64_t r = 0; r < n; ++r, room += W, x += sx) {
        for (int64_t j = 0; j < W; j += line) __builtin_prefetch(x + ahead * sx + j, 0, 2);
        for (int v = 0; v < V; ++v) {
          const Lanes_t<C> row = load(x + v * N);
          store<C>(room + v * N, row);
          best[v] = row > best[v] ? row : best[v];
        }
      }
      for (int v = 0; v < V; ++v) store<C>(top + v * N, best[v]);
    } else {
      find_top(x, sx, n);
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t j = 0; j < w(); ++j) room[r * w() + j] = x[r * sx + j];
      }
    }
  }
  // y = row(r) for all rows, past the caches where lines are whole and many.
  template <class F>
  [[gnu::always_inline]] void give(C* __restrict y, int64_t sy, int64_t n, F&& value) {
    constexpr auto item = static_cast<int64_t>(sizeof(C));
    if (W * item % line_bytes == 0 && W > 0 && n * sy * item >= stream_bytes && starts_line(y) &&
        sy * item % line_bytes == 0) {
      for (int64_t r = 0; r < n; ++r) {
        C row[W ? W : 1];
        for (int64_t j = 0; j < W; ++j) row[j] = value(r, j);
        stream_lines(reinterpret_cast<char*>(y + r * sy), reinterpret_cast<const char*>(row),
                     W * item);
      }
      stream_end();
      return;
    }
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t j = 0; j < w(); ++j) y[r * sy + j] = value(r, j);
    }
  }
  void softmax(C* __restrict y, int64_t sy, const C* __restrict x, int64_t sx, int64_t n, bool log,
               C* __restrict room) {
    take(room, x, sx, n);
    if (log) {
      add_exps(room, w(), n);
      for (int64_t j = 0; j < w(); ++j) other[j] = static_cast<C>(vm::log(total[j]));
      give(y, sy, n, [&](int64_t r, int64_t j) { return (room[r * w() + j] - top[j]) - other[j]; });
      return;
    }
    add_up(n, [&](int64_t r) {
      C* __restrict p = room + r * w();
      for (int64_t j = 0; j < w(); ++j) {
        C e = exp_fast(p[j] - top[j]);
        p[j] = e;
        sum[j] += e;
      }
    });
    for (int64_t j = 0; j < w(); ++j) other[j] = static_cast<C>(1 / total[j]);
    give(y, sy, n, [&](int64_t r, int64_t j) { return room[r * w() + j] * other[j]; });
  }
  void log_sum(double* out, const C* x, int64_t sx, int64_t n) {
    find_top(x, sx, n);
    for (int64_t j = 0; j < w(); ++j) {
      // A column of infinities is not shifted.
      C t = top[j];
      top[j] = t - t == C(0) ? t : C(0);
    }
    add_exps(x, sx, n);
    for (int64_t j = 0; j < w(); ++j) out[j] = static_cast<double>(top[j]) + vm::log(total[j]);
  }
  void shares(C* __restrict y, int64_t sy, const C* __restrict x, int64_t sx, int64_t n,
              const C* __restrict shift, const C* __restrict a, const C* __restrict b) const {
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t j = 0; j < w(); ++j)
        y[r * sy + j] = exp_fast(x[r * sx + j] - shift[j]) * a[j] + b[j];
    }
  }
  void gradient(C* __restrict dx, int64_t sd, const C* __restrict g, int64_t sg,
                const C* __restrict y, int64_t sy, int64_t n, bool log) {
    add_up(n, [&](int64_t r) {
      const C *pg = g + r * sg, *py = y + r * sy;
      if (log) {
        for (int64_t j = 0; j < w(); ++j) sum[j] += pg[j];
      } else {
        for (int64_t j = 0; j < w(); ++j) sum[j] += pg[j] * py[j];
      }
    });
    for (int64_t j = 0; j < w(); ++j) other[j] = static_cast<C>(total[j]);
    for (int64_t r = 0; r < n; ++r) {
      const C *pg = g + r * sg, *py = y + r * sy;
      C* to = dx + r * sd;
      if (log) {
        for (int64_t j = 0; j < w(); ++j) to[j] = pg[j] - exp_fast(py[j]) * other[j];
      } else {
        for (int64_t j = 0; j < w(); ++j) to[j] = py[j] * (pg[j] - other[j]);
      }
    }
  }
};

template <class C, class F> inline void with_tile(int64_t w, F&& f) {
  if (w == 128) {
    Tile<C, 128> t;
    f(t);
  } else if (w == 64) {
    Tile<C, 64> t;
    f(t);
  } else {
    Tile<C, 0> t;
    t.width = w;
    f(t);
  }
}

template <class C>
void softmax(C* y, int64_t sy, const C* x, int64_t sx, int64_t n, int64_t w, bool log, C* room) {
  with_tile<C>(w, [&](auto& t) { t.softmax(y, sy, x, sx, n, log, room); });
}
template <class C> void log_sum(double* out, const C* x, int64_t sx, int64_t n, int64_t w) {
  with_tile<C>(w, [&](auto& t) { t.log_sum(out, x, sx, n); });
}
template <class C>
void shares(C* y, int64_t sy, const C* x, int64_t sx, int64_t n, int64_t w, const C* shift,
            const C* a, const C* b) {
  with_tile<C>(w, [&](auto& t) { t.shares(y, sy, x, sx, n, shift, a, b); });
}
template <class C>
void gradient(C* dx, int64_t sd, const C* g, int64_t sg, const C* y, int64_t sy, int64_t n,
              int64_t w, bool log) {
  with_tile<C>(w, [&](auto& t) { t.gradient(dx, sd, g, sg, y, sy, n, log); });
}

template <class C> constexpr ColumnSoftmax<C> table() {
  return {
      .softmax = softmax<C>, .log_sum = log_sum<C>, .shares = shares<C>, .gradient = gradient<C>};
}

}  // namespace

extern const ColumnSoftmax<float> columns_float;
extern const ColumnSoftmax<double> columns_double;
const ColumnSoftmax<float> columns_float = table<float>();
const ColumnSoftmax<double> columns_double = table<double>();

}  // namespace clew::kernels::CLEW_ISA

// The loops of softmax over columns, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/core/lanes.h"
#include "kernels/core/stream.h"
#include "kernels/math/vmath.h"
#include "kernels/norm/softmax_columns.h"
#include "kernels/norm/softmax_exp.h"

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int64_t flush = 32;           // sums run in C that far
constexpr int64_t few_elements = 4096;  // of a tile that is copied

// exp(x) of a number that is mostly tiny: what is lost where a logarithm is rounded.
[[gnu::always_inline]] inline double exp_of_rest(double x) {
  const double series = 1 + x * (1 + x * (0.5 + x * (1.0 / 6)));  // the next term is below 1e-17
  return std::fabs(x) < 1e-4 ? series : vm::exp(x);
}

constexpr int64_t least_width = 32;  // columns whose sums stay in registers

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

  // find_top() that copies what it reads.
  void take(C* __restrict room, const C* __restrict x, int64_t sx, int64_t n) {
    constexpr int N = lane_count<C>, V = W / N;
    if constexpr (V > 0) {
      Lanes_t<C> best[V];
      for (int v = 0; v < V; ++v) best[v] = spread<C>(-vm::inf<C>);
      for (int64_t r = 0; r < n; ++r, room += W, x += sx) {
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
  // Whether n rows are written past the caches: lines are whole and many.
  bool streams(const C* y, int64_t sy, int64_t n) const {
    constexpr auto item = static_cast<int64_t>(sizeof(C));
    return W * item % line_bytes == 0 && W > 0 && n * sy * item >= stream_bytes && starts_line(y) &&
           sy * item % line_bytes == 0;
  }
  // y = row(r) for all rows.
  template <class F>
  [[gnu::always_inline]] void give(C* __restrict y, int64_t sy, int64_t n, bool stream, F&& value) {
    if (stream) {
      constexpr auto item = static_cast<int64_t>(sizeof(C));
      for (int64_t r = 0; r < n; ++r) {
        C row[W ? W : 1];
        for (int64_t j = 0; j < W; ++j) row[j] = value(r, j);
        stream_lines(reinterpret_cast<char*>(y + r * sy), reinterpret_cast<const char*>(row),
                     W * item);
      }
      return;
    }
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t j = 0; j < w(); ++j) y[r * sy + j] = value(r, j);
    }
  }
  // sum = the sum of exp(x - top) over rows of room, which become these unless they are `kept`.
  // Meanwhile the n rows from `next` on are fetched.
  template <bool kept> void exps(C* __restrict room, int64_t n, const C* next, int64_t sx) {
    if constexpr (W == 0) {
      C shift[column_tile];
      for (int64_t j = 0; j < w(); ++j) {
        shift[j] = top[j] == -vm::inf<C> ? C(0) : top[j];  // a column without numbers
        sum[j] = 0;
      }
      for (int64_t r = 0; r < n; ++r) {
        C* __restrict p = room + r * w();
        for (int64_t j = 0; j < w(); ++j) {
          const C e = exp_fast(p[j] - shift[j]);
          sum[j] += e;
          if constexpr (!kept) p[j] = e;
        }
      }
      return;
    }
    constexpr int64_t some = least_width, line = line_bytes / int64_t{sizeof(C)};
    for (int64_t j0 = 0; j0 < w(); j0 += some) {
      C shift[some], added[some];
      for (int64_t j = 0; j < some; ++j) {
        shift[j] = top[j0 + j] == -vm::inf<C> ? C(0) : top[j0 + j];
        added[j] = 0;
      }
      for (int64_t r = 0; r < n; ++r) {
        C* __restrict p = room + r * w() + j0;
        for (int64_t j = 0; j < some; j += line) __builtin_prefetch(next + r * sx + j0 + j, 0, 2);
        constexpr int N = lane_count<C>, U = some / N;
        Lanes_t<C> e[U];
        for (int u = 0; u < U; ++u) e[u] = load(p + u * N) - load(shift + u * N);
        exp_in_step<C>(e);
        for (int u = 0; u < U; ++u) {
          store<C>(added + u * N, load(added + u * N) + e[u]);
          if constexpr (!kept) store<C>(p + u * N, e[u]);
        }
      }
      for (int64_t j = 0; j < some; ++j) sum[j0 + j] = added[j];
    }
  }
  // Piece by piece: each is shifted by its own maximum, which `tops` keeps. In the end `top` and
  // `total` are those of all rows. Of a single piece, `sum` is what `total` would be.
  template <bool kept>
  void take_exps(C* __restrict room, C* __restrict tops, const C* __restrict x, int64_t sx,
                 int64_t n) {
    if (n <= column_rows) {  // one piece
      take(room, x, sx, n);
      exps<kept>(room, n, x, sx);
      return;
    }
    C before[column_tile];
    for (int64_t j = 0; j < w(); ++j) {
      before[j] = -vm::inf<C>;
      total[j] = 0;
    }
    for (int64_t r = 0; r < n; r += column_rows, tops += w()) {
      const int64_t count = n - r < column_rows ? n - r : column_rows;
      take(room + r * w(), x + r * sx, sx, count);
      exps<kept>(room + r * w(), count, x + (r + column_rows) * sx, sx);
      for (int64_t j = 0; j < w(); ++j) {
        const C of_piece = top[j], all = of_piece > before[j] ? of_piece : before[j];
        // What was added up before, and what comes now, in units of the maximum of both.
        other[j] = before[j] == all ? C(1) : exp_fast(before[j] - all);
        sum[j] *= of_piece == all ? C(1) : exp_fast(of_piece - all);
        tops[j] = of_piece;
        before[j] = all;
      }
      for (int64_t j = 0; j < w(); ++j)
        total[j] = total[j] * static_cast<double>(other[j]) + static_cast<double>(sum[j]);
    }
    for (int64_t j = 0; j < w(); ++j) top[j] = before[j];
  }
  void softmax(C* __restrict y, int64_t sy, const C* __restrict x, int64_t sx, int64_t n, bool log,
               C* __restrict room) {
    C* tops = room + n * w();
    const bool stream = streams(y, sy, n);
    if (log) {
      take_exps<true>(room, tops, x, sx, n);
      if (n <= column_rows)
        for (int64_t j = 0; j < w(); ++j) other[j] = vm::log(sum[j]);
      else
        for (int64_t j = 0; j < w(); ++j) other[j] = static_cast<C>(vm::log(total[j]));
      give(y, sy, n, stream,
           [&](int64_t r, int64_t j) { return (room[r * w() + j] - top[j]) - other[j]; });
      if (stream) stream_end();
      return;
    }
    take_exps<false>(room, tops, x, sx, n);
    if (n <= column_rows) {
      for (int64_t j = 0; j < w(); ++j) other[j] = C(1) / sum[j];
      give(y, sy, n, stream, [&](int64_t r, int64_t j) { return room[r * w() + j] * other[j]; });
      if (stream) stream_end();
      return;
    }
    for (int64_t r = 0; r < n; r += column_rows, tops += w()) {
      for (int64_t j = 0; j < w(); ++j) {
        const C apart = tops[j] == top[j] ? C(1) : exp_fast(tops[j] - top[j]);
        other[j] = static_cast<C>(static_cast<double>(apart) / total[j]);
      }
      give(y + r * sy, sy, n - r < column_rows ? n - r : column_rows, stream,
           [&](int64_t i, int64_t j) { return room[(r + i) * w() + j] * other[j]; });
    }
    if (stream) stream_end();
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
  // total = the sum of weight[k] x over the rows k, or of x.
  void add_weighted(const C* x, int64_t sx, int64_t n, const C* weight) {
    int64_t k = 0;
    add_up(n, [&](int64_t r) {
      const C* p = x + r * sx;
      const C by = weight ? weight[k] : C(1);
      ++k;
      for (int64_t j = 0; j < w(); ++j) sum[j] += by * p[j];
    });
  }
  void losses(double* __restrict loss, C* __restrict high, C* __restrict low, const C* x,
              int64_t sx, int64_t n, const ColumnTargets<C>& of) {
    double log_sum[column_tile];
    this->log_sum(log_sum, x, sx, n);
    for (int64_t j = 0; j < w(); ++j) {
      high[j] = static_cast<C>(log_sum[j]);
      low[j] = static_cast<C>(log_sum[j] - static_cast<double>(high[j]));
    }
    if (of.spread != 0) add_weighted(x, sx, n, of.weight);
    C picked[column_tile], own[column_tile];
    for (int64_t j = 0; j < w(); ++j) {
      const bool counts = of.target[j] != of.ignore;
      const int64_t t = counts ? of.target[j] : 0;
      picked[j] = n > 0 ? x[t * sx + j] : C(0);  // without classes all are ignored
      own[j] = !counts ? C(0) : of.weight ? of.weight[t] : C(1);
    }
    for (int64_t j = 0; j < w(); ++j)
      loss[j] =
          of.keep * static_cast<double>(own[j]) * (log_sum[j] - static_cast<double>(picked[j]));
    if (of.spread != 0)
      for (int64_t j = 0; j < w(); ++j) loss[j] += of.spread * (of.all * log_sum[j] - total[j]);
    // Beside a score of inf the loss of another class is NaN, as its log-probability is.
    for (int64_t j = 0; j < w(); ++j) {
      const double value = log_sum[j] == vm::inf<double> ? vm::nan<double> : loss[j];
      loss[j] = of.target[j] == of.ignore ? 0.0 : value;
    }
  }
  void loss_gradient(C* __restrict dx, int64_t sd, const C* __restrict x, int64_t sx, int64_t n,
                     const double* __restrict grad, const C* __restrict high,
                     const C* __restrict low, const ColumnTargets<C>& of) {
    // d loss / d x[k] = g ((own + spread all) p[k] - own [k = t] - spread weight[k]), where
    // p[k] = exp(x[k] - high) exp(-low)
    C own[column_tile], factor[column_tile], smooth[column_tile];
    bool ignored = false;
    for (int64_t j = 0; j < w(); ++j) {
      const bool counts = of.target[j] != of.ignore;
      ignored |= !counts;
      own[j] = !counts ? C(0) : of.weight ? of.weight[of.target[j]] : C(1);
    }
    for (int64_t j = 0; j < w(); ++j) {
      const double g = of.target[j] != of.ignore ? grad[j] : 0.0, kept = of.keep * own[j];
      factor[j] = static_cast<C>(g * (kept + of.spread * of.all) * exp_of_rest(-low[j]));
      smooth[j] = static_cast<C>(-g * of.spread);
      own[j] = static_cast<C>(g * kept);
    }
    for (int64_t r = 0; r < n; ++r) {
      const C* p = x + r * sx;
      C* to = dx + r * sd;
      if (of.spread == 0) {
        for (int64_t j = 0; j < w(); ++j) to[j] = exp_fast(p[j] - high[j]) * factor[j];
        continue;
      }
      const C by = of.weight ? of.weight[r] : C(1);
      for (int64_t j = 0; j < w(); ++j)
        to[j] = exp_fast(p[j] - high[j]) * factor[j] + smooth[j] * by;
    }
    for (int64_t j = 0; j < w(); ++j)
      if (of.target[j] != of.ignore) dx[of.target[j] * sd + j] -= own[j];
    if (!ignored) return;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t j = 0; j < w(); ++j)
        dx[r * sd + j] = of.target[j] == of.ignore ? C(0) : dx[r * sd + j];
  }
  // Of softmax of few rows, which are copied when they are read first, as in take(): rows that lie
  // a power of two apart push each other out of the nearest cache.
  void gradient_of_few(C* __restrict dx, int64_t sd, const C* __restrict g, int64_t sg,
                       const C* __restrict y, int64_t sy, int64_t n) {
    constexpr int N = lane_count<C>, V = W ? W / N : 1;
    alignas(64) C near_g[few_elements], near_y[few_elements];
    Lanes_t<C> added[V] = {};
    for (int64_t r = 0; r < n; ++r) {
      for (int v = 0; v < V; ++v) {
        const Lanes_t<C> vg = load(g + r * sg + v * N), vy = load(y + r * sy + v * N);
        store<C>(near_g + r * W + v * N, vg);
        store<C>(near_y + r * W + v * N, vy);
        added[v] += vg * vy;
      }
    }
    for (int v = 0; v < V; ++v) store<C>(other + v * N, added[v]);
    for (int64_t r = 0; r < n; ++r) {
      const C* __restrict pg = near_g + r * W, * __restrict py = near_y + r * W;
      C* __restrict to = dx + r * sd;
      for (int64_t j = 0; j < W; ++j) to[j] = py[j] * (pg[j] - other[j]);
    }
  }
  void gradient(C* __restrict dx, int64_t sd, const C* __restrict g, int64_t sg,
                const C* __restrict y, int64_t sy, int64_t n, bool log) {
    if (W > 0 && !log && sg != W && n <= flush && n * W <= few_elements)
      return gradient_of_few(dx, sd, g, sg, y, sy, n);
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
void losses(double* loss, C* high, C* low, const C* x, int64_t sx, int64_t n, int64_t w,
            const ColumnTargets<C>& of) {
  with_tile<C>(w, [&](auto& t) { t.losses(loss, high, low, x, sx, n, of); });
}
template <class C>
void loss_gradient(C* dx, int64_t sd, const C* x, int64_t sx, int64_t n, int64_t w,
                   const double* grad, const C* high, const C* low, const ColumnTargets<C>& of) {
  with_tile<C>(w, [&](auto& t) { t.loss_gradient(dx, sd, x, sx, n, grad, high, low, of); });
}
template <class C>
void gradient(C* dx, int64_t sd, const C* g, int64_t sg, const C* y, int64_t sy, int64_t n,
              int64_t w, bool log) {
  with_tile<C>(w, [&](auto& t) { t.gradient(dx, sd, g, sg, y, sy, n, log); });
}

template <class C> constexpr ColumnSoftmax<C> table() {
  return {.softmax = softmax<C>,
          .log_sum = log_sum<C>,
          .losses = losses<C>,
          .loss_gradient = loss_gradient<C>,
          .gradient = gradient<C>};
}

}  // namespace

extern const ColumnSoftmax<float> columns_float;
extern const ColumnSoftmax<double> columns_double;
const ColumnSoftmax<float> columns_float = table<float>();
const ColumnSoftmax<double> columns_double = table<double>();

}  // namespace clew::kernels::CLEW_ISA

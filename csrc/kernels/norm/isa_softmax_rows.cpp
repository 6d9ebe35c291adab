// The row loops of softmax and normalisation, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/norm/short_rows.h"
#include "kernels/norm/softmax_exp.h"
#include "kernels/norm/softmax_rows.h"

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int L = 32;
constexpr int64_t block = 16 * L;
constexpr int S = 8;  // the rest after blocks of L is done in blocks of S

// Joins the lanes by halves, as long as a half is whole vectors.
template <class C, class F> [[gnu::always_inline]] inline void join_halves(C* lanes, F&& join) {
  for (int l = 0; l < L / 2; ++l) lanes[l] = join(lanes[l], lanes[l + L / 2]);
  for (int l = 0; l < L / 4; ++l) lanes[l] = join(lanes[l], lanes[l + L / 4]);
}
template <class C> [[gnu::always_inline]] inline void add_lanes(double* part, C* lanes) {
  join_halves(lanes, [](C a, C b) { return a + b; });
  for (int l = 0; l < L / 4; ++l) part[l % 4] += static_cast<double>(lanes[l]);
}
// Sums term(i) over [0, n).
template <class C, class F> inline double summed(int64_t n, F term) {
  double total = 0, part[4] = {};
  int64_t i = 0;
  while (i + L <= n) {
    C lanes[L] = {};
    int64_t stop = i + block < n - L ? i + block : n - L;
    for (; i <= stop; i += L) {
      for (int l = 0; l < L; ++l) lanes[l] += term(i + l);
    }
    add_lanes(part, lanes);
  }
  total = (part[0] + part[1]) + (part[2] + part[3]);
  for (; i < n; ++i) total += static_cast<double>(term(i));
  return total;
}

template <class C> C max_(const C* x, int64_t n) {
  C best = -std::numeric_limits<C>::infinity();
  int64_t i = 0;
  if (n >= L) {
    C lanes[L];
    for (int l = 0; l < L; ++l) lanes[l] = best;
    for (; i + L <= n; i += L) {
      for (int l = 0; l < L; ++l) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
    }
    join_halves(lanes, [](C a, C b) { return b > a ? b : a; });
    for (int l = 0; l < L / 4; ++l) best = lanes[l] > best ? lanes[l] : best;
  }
  if (i + S <= n) {
    C lanes[S];
    for (int l = 0; l < S; ++l) lanes[l] = best;
    for (; i + S <= n; i += S) {
      for (int l = 0; l < S; ++l) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
    }
    for (int l = 0; l < S / 2; ++l)
      lanes[l] = lanes[l + S / 2] > lanes[l] ? lanes[l + S / 2] : lanes[l];
    for (int l = 0; l < S / 2; ++l) best = lanes[l] > best ? lanes[l] : best;
  }
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}
template <class C> double sum(const C* x, int64_t n) {
  return summed<C>(n, [=](int64_t i) { return x[i]; });
}
template <class C> double dot(const C* x, const C* y, int64_t n) {
  return summed<C>(n, [=](int64_t i) { return x[i] * y[i]; });
}
template <bool stored, class C, int U>
[[gnu::always_inline]] inline void exp_of(Lanes_t<C> (&e)[U]) {
  if constexpr (stored)
    exp_in_step<C>(e);
  else
    terms_in_step<C>(e);
}
// Calls put(i, e) with vectors e = exp(x[i ...] - shift) and returns the sum of all e; without put,
// the sum alone. Prefetches the next row, which is likely to follow, and `to` if it is not null.
template <class C, class F>
[[gnu::always_inline]] inline double exps(const C* x, int64_t n, C shift, const C* to, F put) {
  constexpr bool stored = !std::is_same_v<F, std::nullptr_t>;
  constexpr int N = lane_count<C>, U = stored ? 2 : 4;
  constexpr int64_t line = 64 / int64_t{sizeof(C)};
  double total = 0;
  int64_t i = 0;
  while (i + U * N <= n) {
    Lanes_t<C> sum[U] = {};
    const int64_t stop = std::min(i + block, n - U * N);
    for (; i <= stop; i += U * N) {
      for (int64_t l = 0; l < U * N; l += line) {
        __builtin_prefetch(x + n + i + l, 0, 2);
        if (to) __builtin_prefetch(to + i + l, 1, 3);
      }
      Lanes_t<C> e[U];
      for (int u = 0; u < U; ++u) e[u] = load(x + i + u * N) - shift;
      exp_of<stored, C>(e);
      for (int u = 0; u < U; ++u) {
        if constexpr (stored) put(i + u * N, e[u]);
        sum[u] += e[u];
      }
    }
    for (int u = 1; u < U; ++u) sum[0] += sum[u];
    total += sum_of_lanes<C>(sum[0]);
  }
  if (i == n) return total;
  if (n < N) {
    for (; i < n; ++i) {
      const C e = exp_fast(x[i] - shift);
      if constexpr (stored) put(i, e);
      total += static_cast<double>(e);
    }
    return total;
  }
  Lanes_t<C> sum{};
  for (; i + N <= n; i += N) {
    Lanes_t<C> e[] = {load(x + i) - shift};
    exp_of<stored, C>(e);
    if constexpr (stored) put(i, e[0]);
    sum += e[0];
  }
  if (i < n) {
    // Some of the last N were there before: they are written again, but not added.
    Lanes_t<C> e[] = {load(x + n - N) - shift};
    exp_of<stored, C>(e);
    if constexpr (stored) put(n - N, e[0]);
    for (int l = 0; l < N; ++l) e[0][l] = l < N - (n - i) ? C(0) : e[0][l];
    sum += e[0];
  }
  return total + sum_of_lanes<C>(sum);
}
template <class C> double exp_store(C* __restrict to, const C* __restrict x, int64_t n, C shift) {
  return exps<C>(x, n, shift, nullptr,
                 [=](int64_t i, auto e) { std::memcpy(to + i, &e, sizeof e); });
}
template <class C> double exp_sum(const C* x, int64_t n, C shift) {
  return exps<C>(x, n, shift, nullptr, nullptr);
}
template <class C> double exp_sum_before(const C* to, const C* x, int64_t n, C shift) {
  return exps<C>(x, n, shift, to, nullptr);
}
template <class C>
void exp_affine(C* __restrict y, const C* __restrict x, int64_t n, C shift, C a, C b) {
  exps<C>(x, n, shift, nullptr, [=](int64_t i, auto e) {
    e = e * a + b;
    std::memcpy(y + i, &e, sizeof e);
  });
}
template <class C> void affine(C* y, const C* x, int64_t n, C a, C b) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * a + b;
}
template <class C> void centred(C* y, const C* x, int64_t n, C centre, C a, C b) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - centre) * a + b;
}
// The largest of a vector's lanes, if none is NaN.
template <class C> [[gnu::always_inline]] inline C largest_lane(Lanes_t<C> v) {
  return join_all_lanes<C>(v, [](auto a, auto b) { return b > a ? b : a; });
}
// Softmax, or its logarithm, of U vectors of rows of W elements.
template <int W, bool log, int U>
[[gnu::always_inline]] inline void softmax_packed(float* y, const float* x) {
  constexpr int N = lane_count<float>;
  typedef float Half __attribute__((vector_size(lane_bytes / 2)));
  using Wide = Lanes_t<double>;
  Lanes_t<float> v[U], e[U];
  for (int u = 0; u < U; ++u) {
    const Lanes_t<float> from = load(x + u * N);
    v[u] = from - join_groups<W / 2>(from, [](auto p, auto q) { return q > p ? q : p; });
    e[u] = v[u];
  }
  exp_in_step<float>(e);
  for (int u = 0; u < U; ++u) {
    Half part[2], by[2];
    std::memcpy(part, &e[u], sizeof part);
    for (int h = 0; h < 2; ++h) {
      Wide sum = join_groups<W / 2>(__builtin_convertvector(part[h], Wide),
                                    [](auto p, auto q) { return p + q; });
      if constexpr (log) {
        for (int l = 0; l < N / 2; l += W) {
          const double total = -std::log(sum[l]);
          for (int k = 0; k < W; ++k) sum[l + k] = total;
        }
      } else {
        sum = 1 / sum;
      }
      by[h] = __builtin_convertvector(sum, Half);
    }
    Lanes_t<float> factor;
    std::memcpy(&factor, by, sizeof by);
    store(y + u * N, log ? v[u] + factor : e[u] * factor);
  }
}
// Rows of W elements, of which a vector holds several.
template <int W, bool log> void softmax_narrow(float* y, const float* x, int64_t count) {
  constexpr int N = lane_count<float>, U = 4;
  int64_t at = 0;
  for (; at + U * N <= count; at += U * N) softmax_packed<W, log, U>(y + at, x + at);
  for (; at + N <= count; at += N) softmax_packed<W, log, 1>(y + at, x + at);
  if (at == count) return;
  alignas(64) float last[N] = {};
  const size_t bytes = static_cast<size_t>(count - at) * sizeof(float);
  std::memcpy(last, x + at, bytes);
  softmax_packed<W, log, 1>(last, last);
  std::memcpy(y + at, last, bytes);
}
// Softmax, or its logarithm, of rows of one to four vectors. The maximum may miss an element beside
// a NaN; then the whole row is NaN anyway.
template <class C>
void softmax_of_vectors_together(C* __restrict y, const C* __restrict x, int64_t rows,
                                 int64_t width, bool log) {
  constexpr int N = lane_count<C>, U = 4;
  constexpr int64_t most_elements = 512;
  alignas(64) C powers[most_elements];
  const int64_t together = most_elements / width;
  for (int64_t first = 0; first < rows; first += together) {
    const int64_t count = least(together, rows - first) * width;
    const C* from = x + first * width;
    C* to = y + first * width;
    for (int64_t row = 0; row < count; row += width) {
      Lanes_t<C> top = load(from + row);
      for (int64_t i = row + N; i < row + width; i += N) {
        const Lanes_t<C> v = load(from + i);
        top = v > top ? v : top;
      }
      const C shift = largest_lane<C>(top);
      for (int64_t i = row; i < row + width; i += N) store(to + i, load(from + i) - shift);
    }
    int64_t at = 0;
    for (; at + U * N <= count; at += U * N) {
      Lanes_t<C> e[U];
      for (int u = 0; u < U; ++u) e[u] = load(to + at + u * N);
      exp_in_step<C>(e);
      for (int u = 0; u < U; ++u) store(powers + at + u * N, e[u]);
    }
    for (; at < count; at += N) {
      Lanes_t<C> e[] = {load(to + at)};
      exp_in_step<C>(e);
      store(powers + at, e[0]);
    }
    for (int64_t row = 0; row < count; row += width) {
      double total = 0;
      for (int64_t i = row; i < row + width; i += N) total += sum_of_lanes<C>(load(powers + i));
      const C by = static_cast<C>(log ? -std::log(total) : 1 / total);
      for (int64_t i = row; i < row + width; i += N)
        store(to + i, log ? load(to + i) + by : load(powers + i) * by);
    }
  }
}
template <class C>
void softmax_of_long(C* __restrict y, const C* __restrict x, int64_t n, bool log) {
  const C top = max_(x, n);
  if (log)
    centred(y, x, n, top, C(1), static_cast<C>(-std::log(exp_sum(x, n, top))));
  else
    affine(y, y, n, static_cast<C>(1 / exp_store(y, x, n, top)), C(0));
}
template <class C>
void softmax_few(C* __restrict y, const C* __restrict x, int64_t rows, int64_t width, bool log) {
  constexpr int N = lane_count<C>;
  if constexpr (std::is_same_v<C, float>) {
    const int64_t count = rows * width;
    if constexpr (N > 8)
      if (width == 8)
        return log ? softmax_narrow<8, true>(y, x, count) : softmax_narrow<8, false>(y, x, count);
    if constexpr (N > 4)
      if (width == 4)
        return log ? softmax_narrow<4, true>(y, x, count) : softmax_narrow<4, false>(y, x, count);
  }
  if (width < N)
    return log ? softmax_of_short<C, 1, true, true>(y, x, rows, width)
               : softmax_of_short<C, 1, true, false>(y, x, rows, width);
  if (width % N == 0 && width <= 4 * N) return softmax_of_vectors_together(y, x, rows, width, log);
  if (width <= short_row_most<C>) {
    const auto& of = log ? softmax_of_vectors<C, true> : softmax_of_vectors<C, false>;
    return of[static_cast<size_t>(ceil_div(width, N) - 1)](y, x, rows, width);
  }
  for (int64_t r = 0; r < rows; ++r) softmax_of_long(y + r * width, x + r * width, width, log);
}
template <class C> void log_sums(double* out, const C* x, int64_t rows, int64_t width) {
  constexpr int N = lane_count<C>;
  if (width == 0 || width > short_row_most<C>) {
    for (int64_t r = 0; r < rows; ++r) {
      const C* row = x + r * width;
      const C top = max_(row, width);
      out[r] = top - top == C(0) ? static_cast<double>(top) + std::log(exp_sum(row, width, top))
                                 : log_sum_of_ends(row, width, top);
    }
    return;
  }
  if (width < N) return log_sums_of_short<C, 1, true>(out, x, rows, width);
  log_sums_of_vectors<C>[static_cast<size_t>(ceil_div(width, N) - 1)](out, x, rows, width);
}
template <class C>
void centred_weighted(C* y, const C* x, int64_t n, C centre, C a, C b, const C* w, const C* c) {
  if (w && c) {
    for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] - centre) * a + b) * w[i] + c[i];
  } else if (w) {
    for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] - centre) * a + b) * w[i];
  } else if (c) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - centre) * a + b + c[i];
  } else {
    centred(y, x, n, centre, a, b);
  }
}
template <class C>
void softmax_grad(C* __restrict dx, const C* __restrict g, const C* __restrict y, int64_t n,
                  bool log) {
  constexpr int N = lane_count<C>;
  if (n >= N && n <= short_row_most<C>) {
    const auto& of = log ? back_of_vectors<C, true> : back_of_vectors<C, false>;
    return of[static_cast<size_t>(ceil_div(n, N) - 1)](dx, g, y, n);
  }
  const auto s = static_cast<C>(log ? sum(g, n) : dot(g, y, n));
  if (!log) {
    for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (g[i] - s);
    return;
  }
  exps<C>(y, n, C(0), nullptr, [=](int64_t i, auto e) {
    decltype(e) from;
    std::memcpy(&from, g + i, sizeof from);
    e = from - e * s;
    std::memcpy(dx + i, &e, sizeof e);
  });
}
template <class C>
void weight_grad(C* dw, C* db, const C* g, const C* x, int64_t n, C centre, C a) {
  for (int64_t i = 0; i < n; ++i) {
    dw[i] += g[i] * ((x[i] - centre) * a);
    db[i] += g[i];
  }
}
template <class C>
void norm_grad(C* dx, const C* g, const C* w, const C* x, int64_t n, C centre, C a, C b, C c) {
  if (w) {
    for (int64_t i = 0; i < n; ++i) dx[i] = g[i] * w[i] * a + ((x[i] - centre) * b + c);
  } else {
    for (int64_t i = 0; i < n; ++i) dx[i] = g[i] * a + ((x[i] - centre) * b + c);
  }
}

template <class C> constexpr RowOps<C> table() {
  return {.max = max_<C>,
          .sum = sum<C>,
          .dot = dot<C>,
          .exp_store = exp_store<C>,
          .exp_sum = exp_sum<C>,
          .softmax_few = softmax_few<C>,
          .few_width = short_row_most<C>,
          .log_sums = log_sums<C>,
          .exp_sum_before = exp_sum_before<C>,
          .exp_affine = exp_affine<C>,
          .affine = affine<C>,
          .centred = centred<C>,
          .centred_weighted = centred_weighted<C>,
          .softmax_grad = softmax_grad<C>,
          .weight_grad = weight_grad<C>,
          .norm_grad = norm_grad<C>};
}

}  // namespace

extern const RowOps<float> rows_float;
extern const RowOps<double> rows_double;
const RowOps<float> rows_float = table<float>();
const RowOps<double> rows_double = table<double>();

}  // namespace clew::kernels::CLEW_ISA

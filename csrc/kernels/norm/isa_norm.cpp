// The vector loops of normalisation, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#include "kernels/core/lanes.h"
#include "kernels/norm/norm_loops.h"
#include "kernels/norm/short_norms.h"

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int64_t block_terms = 2048;  // stay in the first-level cache between two passes
constexpr int64_t block_rows = 32;

// ---- planes
// --------------------------------------------------------------------------------------

// Calls f(offset, planes, size) for blocks of whole planes, or parts of one, of a few thousand
// elements.
template <class F> [[gnu::always_inline]] inline void for_blocks(const Planes& at, F&& f) {
  if (at.size > block_terms) {
    for (int64_t p = 0; p < at.planes; ++p) {
      for (int64_t i = 0; i < at.size; i += block_terms) {
        int64_t n = at.size - i < block_terms ? at.size - i : block_terms;
        f(p * at.step + i, int64_t{1}, n);
      }
    }
    return;
  }
  int64_t few = at.size > 0 ? block_terms / at.size : 1;
  for (int64_t p = 0; p < at.planes; p += few)
    f(p * at.step, at.planes - p < few ? at.planes - p : few, at.size);
}

// With `fetches`, prefetches `to`, which is written next, and the row after x, which is read then.
template <class C, bool fetches>
[[gnu::always_inline]] inline void moments_of(const C* x, const Planes& at, double* mean,
                                              double* squares, const C* to) {
  double n = 0, m = 0, q = 0;
  for_blocks(at, [&](int64_t off, int64_t planes, int64_t size) {
    const C* p = x + off;
    double sum[1] = {};
    block_sums<C, 1>(
        planes, at.step, size, sum, [=](int64_t i, auto& acc) { acc[0] += load(p + i); },
        [=](int64_t i, double(&t)[1]) { t[0] += static_cast<double>(p[i]); });
    auto terms = static_cast<double>(planes * size);
    // Deviations from the rounded mean; their sum gives the correction.
    C near = static_cast<C>(sum[0] / terms);
    double dev[2] = {};
    block_sums<C, 2>(
        planes, at.step, size, dev,
        [=](int64_t i, auto& acc) {
          if constexpr (fetches) {
            __builtin_prefetch(to + off + i, 1, 3);
            __builtin_prefetch(p + i + at.size, 0, 2);
          }
          auto d = load(p + i) - near;
          acc[0] += d;
          acc[1] += d * d;
        },
        [=](int64_t i, double(&t)[2]) {
          double d = static_cast<double>(p[i] - near);
          t[0] += d;
          t[1] += d * d;
        });
    join_moments(m, q, n, static_cast<double>(near) + dev[0] / terms,
                 dev[1] - dev[0] * dev[0] / terms, terms);
    n += terms;
  });
  *mean = m;
  *squares = q > 0 || q != q ? q : 0;
}

template <class C> void moments(const C* x, const Planes& at, double* mean, double* squares) {
  moments_of<C, false>(x, at, mean, squares, nullptr);
}
template <class C>
void row_moments(const C* to, const C* x, int64_t n, double* mean, double* squares) {
  moments_of<C, true>(x, {1, n, n}, mean, squares, to);
}

template <class C>
void dots(const C* g, const C* x, const Planes& at, C centre, double* s1, double* s2) {
  double total[2] = {};
  for_blocks(at, [&](int64_t off, int64_t planes, int64_t size) {
    const C *pg = g + off, *px = x + off;
    block_sums<C, 2>(
        planes, at.step, size, total,
        [=](int64_t i, auto& acc) {
          auto v = load(pg + i);
          acc[0] += v;
          acc[1] += v * (load(px + i) - centre);
        },
        [=](int64_t i, double(&t)[2]) {
          t[0] += static_cast<double>(pg[i]);
          t[1] += static_cast<double>(pg[i]) * static_cast<double>(px[i] - centre);
        });
  });
  *s1 = total[0];
  *s2 = total[1];
}

template <class C>
void rows_affine(C* y, const C* x, int64_t r0, int64_t r1, int64_t c, int64_t s, const C* mean,
                 const C* a, const C* b) {
  constexpr int N = lane_count<C>;
  int64_t k = r0 % c;
  for (int64_t r = r0; r < r1; ++r, k = k + 1 == c ? 0 : k + 1) {
    C *to = y + r * s, m = mean[k], scale = a[k], shift = b[k];
    const C* from = x + r * s;
    int64_t i = 0;
    for (; i + N <= s; i += N) store<C>(to + i, (load(from + i) - m) * scale + shift);
    for (; i < s; ++i) to[i] = (from[i] - m) * scale + shift;
  }
}
template <class C>
void rows_grad(C* dx, const C* g, const C* x, int64_t r0, int64_t r1, int64_t channels, int64_t s,
               const C* mean, const C* a, const C* b, const C* c) {
  constexpr int N = lane_count<C>;
  int64_t k = r0 % channels;
  for (int64_t r = r0; r < r1; ++r, k = k + 1 == channels ? 0 : k + 1) {
    C *to = dx + r * s, m = mean[k], ka = a[k], kb = b[k], kc = c[k];
    const C *pg = g + r * s, *px = x + r * s;
    int64_t i = 0;
    for (; i + N <= s; i += N) store<C>(to + i, load(pg + i) * ka + ((load(px + i) - m) * kb + kc));
    for (; i < s; ++i) to[i] = pg[i] * ka + ((px[i] - m) * kb + kc);
  }
}

// ---- columns
// --------------------------------------------------------------------------------------

// A number of columns that are done together: V vectors, or single ones at the end.
template <class C, int V> struct Wide {
  using L = Lanes_t<C>;
  static constexpr int N = lane_count<C>;
  static constexpr int width = V * N;
  L v[V];
  [[gnu::always_inline]] static Wide of(const C* p) {
    Wide w;
    for (int k = 0; k < V; ++k) w.v[k] = load(p + k * N);
    return w;
  }
  [[gnu::always_inline]] void put(C* p) const {
    for (int k = 0; k < V; ++k) store<C>(p + k * N, v[k]);
  }
};
template <class C> struct Wide<C, 0> {
  using L = C;
  static constexpr int width = 1;
  C v[1];
  [[gnu::always_inline]] static Wide of(const C* p) { return {{*p}}; }
  [[gnu::always_inline]] void put(C* p) const { *p = v[0]; }
};
template <class C, int V> constexpr int parts = V ? V : 1;

// Calls f.operator()<V>(first column) over w columns, up to `most` vectors at a time.
template <class C, int most = 4, class F>
[[gnu::always_inline]] inline void for_columns(int64_t w, F&& f) {
  constexpr int N = lane_count<C>;
  int64_t j = 0;
  if constexpr (most > 1) {
    for (; j + most * N <= w; j += most * N) f.template operator()<most>(j);
  }
  for (; j + N <= w; j += N) f.template operator()<1>(j);
  for (; j < w; ++j) f.template operator()<0>(j);
}

template <class C>
void column_moments(const C* x, int64_t rows, int64_t w, int64_t step, double* mean,
                    double* squares) {
  for (int64_t j = 0; j < w; ++j) mean[j] = squares[j] = 0;
  for (int64_t r0 = 0; r0 < rows; r0 += block_rows) {
    int64_t count = rows - r0 < block_rows ? rows - r0 : block_rows;
    auto m = static_cast<double>(count), share = m / static_cast<double>(r0 + count);
    double between = static_cast<double>(r0) * share, per = 1 / m;
    const C* block = x + r0 * step;
    for_columns<C>(w, [&]<int V>(int64_t j) {
      using W = Wide<C, V>;
      W near = W::of(block + j), dev{}, sq{};
      for (int64_t r = 1; r < count; ++r) {
        W v = W::of(block + r * step + j);
        for (int k = 0; k < parts<C, V>; ++k) near.v[k] += v.v[k];
      }
      for (int k = 0; k < parts<C, V>; ++k) near.v[k] *= static_cast<C>(per);
      for (int64_t r = 0; r < count; ++r) {
        W v = W::of(block + r * step + j);
        for (int k = 0; k < parts<C, V>; ++k) {
          auto d = v.v[k] - near.v[k];
          dev.v[k] += d;
          sq.v[k] += d * d;
        }
      }
      C centre[W::width], off[W::width], spread_[W::width];
      near.put(centre);
      dev.put(off);
      sq.put(spread_);
      double *to_mean = mean + j, *to_squares = squares + j;
      for (int l = 0; l < W::width; ++l) {
        double d = static_cast<double>(off[l]);
        double apart = static_cast<double>(centre[l]) + d * per - to_mean[l];
        to_mean[l] += apart * share;
        to_squares[l] += static_cast<double>(spread_[l]) - d * d * per + apart * apart * between;
      }
    });
  }
  for (int64_t j = 0; j < w; ++j) squares[j] = squares[j] < 0 ? 0 : squares[j];
}

template <class C>
void column_dots(const C* g, const C* x, int64_t rows, int64_t w, const C* mean, double* s1,
                 double* s2) {
  for (int64_t j = 0; j < w; ++j) s1[j] = s2[j] = 0;
  for (int64_t r0 = 0; r0 < rows; r0 += block_rows) {
    int64_t count = rows - r0 < block_rows ? rows - r0 : block_rows;
    const C *pg = g + r0 * w, *px = x + r0 * w;
    for_columns<C>(w, [&]<int V>(int64_t j) {
      using W = Wide<C, V>;
      W a{}, b{}, m = W::of(mean + j);
      for (int64_t r = 0; r < count; ++r) {
        W vg = W::of(pg + r * w + j), vx = W::of(px + r * w + j);
        for (int k = 0; k < parts<C, V>; ++k) {
          a.v[k] += vg.v[k];
          b.v[k] += vg.v[k] * (vx.v[k] - m.v[k]);
        }
      }
      C sums[W::width], products[W::width];
      a.put(sums);
      b.put(products);
      double *t1 = s1 + j, *t2 = s2 + j;
      for (int l = 0; l < W::width; ++l) {
        t1[l] += static_cast<double>(sums[l]);
        t2[l] += static_cast<double>(products[l]);
      }
    });
  }
}

template <class C>
void column_affine(C* y, const C* x, int64_t rows, int64_t w, const C* mean, const C* a,
                   const C* b) {
  for (int64_t r0 = 0; r0 < rows; r0 += block_rows) {
    int64_t end = rows - r0 < block_rows ? rows : r0 + block_rows;
    for_columns<C>(w, [&]<int V>(int64_t j) {
      using W = Wide<C, V>;
      W m = W::of(mean + j), ka = W::of(a + j), kb = W::of(b + j);
      for (int64_t r = r0; r < end; ++r) {
        W v = W::of(x + r * w + j);
        for (int k = 0; k < parts<C, V>; ++k) v.v[k] = (v.v[k] - m.v[k]) * ka.v[k] + kb.v[k];
        v.put(y + r * w + j);
      }
    });
  }
}
template <class C>
void column_grad(C* dx, const C* g, const C* x, int64_t rows, int64_t w, const C* mean, const C* a,
                 const C* b, const C* c) {
  for (int64_t r0 = 0; r0 < rows; r0 += block_rows) {
    int64_t end = rows - r0 < block_rows ? rows : r0 + block_rows;
    for_columns<C>(w, [&]<int V>(int64_t j) {
      using W = Wide<C, V>;
      W m = W::of(mean + j), ka = W::of(a + j), kb = W::of(b + j), kc = W::of(c + j);
      for (int64_t r = r0; r < end; ++r) {
        W v = W::of(x + r * w + j), vg = W::of(g + r * w + j);
        for (int k = 0; k < parts<C, V>; ++k)
          v.v[k] = vg.v[k] * ka.v[k] + ((v.v[k] - m.v[k]) * kb.v[k] + kc.v[k]);
        v.put(dx + r * w + j);
      }
    });
  }
}

// ---- rows with a weight for each element
// ----------------------------------------------------------

template <class C>
void row_dots(const C* g, const C* w, const C* x, int64_t n, C centre, double* s1, double* s2) {
  if (!w) return dots(g, x, Planes{1, n, n}, centre, s1, s2);
  double total[2] = {};
  for_blocks(Planes{1, n, n}, [&](int64_t off, int64_t planes, int64_t size) {
    const C *pg = g + off, *px = x + off, *pw = w + off;
    block_sums<C, 2>(
        planes, 0, size, total,
        [=](int64_t i, auto& acc) {
          auto v = load(pg + i) * load(pw + i);
          acc[0] += v;
          acc[1] += v * (load(px + i) - centre);
        },
        [=](int64_t i, double(&t)[2]) {
          double v = static_cast<double>(pg[i] * pw[i]);
          t[0] += v;
          t[1] += v * static_cast<double>(px[i] - centre);
        });
  });
  *s1 = total[0];
  *s2 = total[1];
}

template <class C>
void row_grad(C* dx, C* dw, C* db, const C* g, const C* w, const C* x, int64_t n, C centre, C rstd,
              C a, C b, C c) {
  // Without AVX-512 there are no registers for more, and for the numbers that all share.
  constexpr int most = lane_bytes == 64 ? 4 : 2;
  for_columns<C, most>(n, [&]<int V>(int64_t i) {
    using W = Wide<C, V>;
    W vg = W::of(g + i), vx = W::of(x + i), vdw = W::of(dw + i), vdb = W::of(db + i), out = vg;
    if (w) {
      W vw = W::of(w + i);
      for (int k = 0; k < parts<C, V>; ++k) out.v[k] *= vw.v[k];
    }
    for (int k = 0; k < parts<C, V>; ++k) {
      auto off = vx.v[k] - centre;
      out.v[k] = out.v[k] * a + (off * b + c);
      vdw.v[k] += vg.v[k] * (off * rstd);
      vdb.v[k] += vg.v[k];
    }
    out.put(dx + i);
    vdw.put(dw + i);
    vdb.put(db + i);
  });
}

template <class C>
void short_rows(C* y, C* means, C* rstds, const C* x, const C* w, const C* b, int64_t rows,
                int64_t n, double eps) {
  constexpr int N = lane_count<C>;
  const NormOfShort<C> run = n < N ? norm_of_short<C, 1, true>
                                   : norms_of_vectors<C>[static_cast<size_t>(ceil_div(n, N) - 1)];
  run(y, means, rstds, x, w, b, rows, n, eps);
}
template <class C>
void short_rows_grad(C* dx, C* dw, C* db, const C* g, const C* x, const C* w, const C* means,
                     const C* rstds, int64_t rows, int64_t n) {
  constexpr int N = lane_count<C>;
  const BackOfShortNorm<C> run = n < N
                                     ? back_of_short_norm<C, 1, true>
                                     : backs_of_vectors<C>[static_cast<size_t>(ceil_div(n, N) - 1)];
  run(dx, dw, db, g, x, w, means, rstds, rows, n);
}

template <class C> constexpr NormLoops<C> table() {
  return {.moments = moments<C>,
          .row_moments = row_moments<C>,
          .dots = dots<C>,
          .rows_affine = rows_affine<C>,
          .rows_grad = rows_grad<C>,
          .column_moments = column_moments<C>,
          .column_dots = column_dots<C>,
          .column_affine = column_affine<C>,
          .column_grad = column_grad<C>,
          .row_dots = row_dots<C>,
          .row_grad = row_grad<C>,
          .short_most = short_row_most<C>,
          .short_rows = short_rows<C>,
          .short_rows_grad = short_rows_grad<C>};
}

}  // namespace

extern const NormLoops<float> norm_float;
extern const NormLoops<double> norm_double;
const NormLoops<float> norm_float = table<float>();
const NormLoops<double> norm_double = table<double>();

}  // namespace clew::kernels::CLEW_ISA

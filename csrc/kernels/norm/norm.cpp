// Normalisation over rows and over channels, with their gradients, built of the vector loops.
// May include: base, kernels.
// Invariant: means are subtracted before squaring; sums of pieces are merged in order.
#include "kernels/norm/norm.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "base/parallel.h"
#include "kernels/core/instruction_set.h"
#include "kernels/norm/norm_loops.h"
#include "kernels/norm/softmax_rows.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const NormLoops<float> norm_float;
                 extern const NormLoops<double> norm_double;)

template <> const NormLoops<float>& norm_loops<float>() { return CLEW_CHOSEN(norm_float); }
template <> const NormLoops<double>& norm_loops<double>() { return CLEW_CHOSEN(norm_double); }

namespace {

constexpr int64_t flush_rows = 64;

// Into how many pieces work of n elements is split, at most `most`.
int64_t pieces_of(int64_t n, int64_t most) {
  return std::max<int64_t>(1, std::min<int64_t>({num_threads(), n / grain_default + 1, most}));
}

// [rows, c] seen with several rows as one, so that a row fills whole vectors.
struct Folded {
  int64_t fold, width, rows, rest;  // `rest` elements are left after the last whole row
  Folded(int64_t r, int64_t c) {
    fold = c < 64 ? 64 / std::gcd(c, int64_t{64}) : 1;
    width = c * fold;
    rows = r / fold;
    rest = r % fold * c;
  }
};
// Per-channel values, repeated over a folded row.
template <class T> std::vector<T> repeated(const T* x, int64_t c, const Folded& f) {
  std::vector<T> out(static_cast<size_t>(f.width));
  for (int64_t i = 0; i < f.width; ++i) out[static_cast<size_t>(i)] = x[i % c];
  return out;
}
// Calls f(first row, rows, elements of a row) over all rows of a folded array, in parallel; what
// is left after the last whole row comes as one shorter row.
template <class F> void for_folded(const Folded& f, F&& body) {
  parallel_for(f.rows, std::max<int64_t>(1, grain_default / f.width),
               [&](int64_t r0, int64_t r1) { body(r0, r1 - r0, f.width); });
  if (f.rest) body(f.rows, 1, f.rest);
}

// Two sums for each of n columns: body(first row, rows, s1, s2) adds the terms of some rows, which
// are merged in double.
template <class T, class Body>
void sum_over_rows(int64_t rows, int64_t n, double* sum_w, double* sum_b, Body&& body) {
  const LongWork work(rows * n);
  int64_t pieces = pieces_of(rows * n, rows);
  std::vector<double> partial(static_cast<size_t>(2 * n * pieces), 0.0);
  parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
    std::vector<T> dw(static_cast<size_t>(n)), db(static_cast<size_t>(n));
    for (int64_t p = first; p < last; ++p) {
      double* total = partial.data() + 2 * n * p;
      int64_t end = (p + 1) * rows / pieces;
      for (int64_t r = p * rows / pieces; r < end;) {
        std::fill(dw.begin(), dw.end(), T(0));
        std::fill(db.begin(), db.end(), T(0));
        int64_t stop = std::min(end, r + flush_rows);
        body(r, stop - r, dw.data(), db.data());
        r = stop;
        for (int64_t i = 0; i < n; ++i) {
          total[i] += static_cast<double>(dw[static_cast<size_t>(i)]);
          total[n + i] += static_cast<double>(db[static_cast<size_t>(i)]);
        }
      }
    }
  });
  for (int64_t i = 0; i < n; ++i) {
    sum_w[i] = sum_b[i] = 0;
    for (int64_t p = 0; p < pieces; ++p) {
      sum_w[i] += partial[static_cast<size_t>(2 * n * p + i)];
      sum_b[i] += partial[static_cast<size_t>(2 * n * p + n + i)];
    }
  }
}

// The gradient of the input alone, of rows of n elements.
template <class T, class F> void each_row(int64_t rows, int64_t n, F&& backward) {
  if (n == 0) return;
  parallel_for(rows, std::max<int64_t>(1, grain_default / n), [&](int64_t begin, int64_t end) {
    T* const nothing = nullptr;
    backward(begin, end - begin, nothing, nothing);
  });
}

}  // namespace

template <class T>
void group_norm(T* y, T* mean, T* rstd, const T* x, const T* weight, const T* bias,
                const GroupShape& sh, double eps) {
  const RowOps<T>& ops = row_ops<T>();
  const NormLoops<T>& loops = norm_loops<T>();
  int64_t n = sh.row();
  if (n == 0) return;
  if (sh.s == 1 && sh.g == 1 && n <= loops.short_most && y != x) {
    auto run = [&](int64_t begin, int64_t end) {
      loops.short_rows(y + begin * n, mean + begin, rstd + begin, x + begin * n, weight, bias,
                       end - begin, n, eps);
    };
    return parallel_for(sh.n, std::max<int64_t>(1, grain_default / n), run);
  }
  parallel_for(
      sh.n * sh.g, std::max<int64_t>(1, grain_default / n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T* row = x + r * n;
          T* out = y + r * n;
          double mu, squares;
          loops.row_moments(out, row, n, &mu, &squares);
          T centre = static_cast<T>(mu);
          double off = mu - static_cast<double>(centre);
          double inv = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
          mean[r] = centre;
          rstd[r] = static_cast<T>(inv);
          int64_t first = r % sh.g * sh.k;
          if (sh.s == 1) {
            ops.centred_weighted(out, row, n, centre, static_cast<T>(inv),
                                 static_cast<T>(-off * inv), weight ? weight + first : nullptr,
                                 bias ? bias + first : nullptr);
            continue;
          }
          for (int64_t k = 0; k < sh.k; ++k) {
            double w = weight ? static_cast<double>(weight[first + k]) : 1.0;
            double b = bias ? static_cast<double>(bias[first + k]) : 0.0;
            ops.centred(out + k * sh.s, row + k * sh.s, sh.s, centre, static_cast<T>(inv * w),
                        static_cast<T>(b - off * inv * w));
          }
        }
      });
}

template <class T>
void group_norm_backward(T* dx, T* dweight, T* dbias, const T* grad, const T* x, const T* mean,
                         const T* rstd, const T* weight, const GroupShape& sh) {
  const RowOps<T>& ops = row_ops<T>();
  const NormLoops<T>& loops = norm_loops<T>();
  int64_t n = sh.row(), channels = sh.g * sh.k;
  auto count = static_cast<double>(n);
  // One row: dx and, if asked for, its part of the sums dw and db of its channels.
  auto row_backward = [&](int64_t r, T* dw, T* db) {
    const T *g = grad + r * n, *row = x + r * n;
    int64_t first = r % sh.g * sh.k;
    const T* w = weight ? weight + first : nullptr;
    double s1 = 0, s2 = 0, inv = static_cast<double>(rstd[r]);
    if (sh.s == 1) {
      loops.row_dots(g, w, row, n, mean[r], &s1, &s2);
      Slopes to(inv, s1, s2, count);
      if (dw) {
        loops.row_grad(dx + r * n, dw + first, db + first, g, w, row, n, mean[r], rstd[r],
                       static_cast<T>(inv), static_cast<T>(to.b), static_cast<T>(to.c));
      } else {
        ops.norm_grad(dx + r * n, g, w, row, n, mean[r], static_cast<T>(inv), static_cast<T>(to.b),
                      static_cast<T>(to.c));
      }
      return;
    }
    for (int64_t k = 0; k < sh.k; ++k) {
      double a, b, scale = w ? static_cast<double>(w[k]) : 1.0;
      loops.dots(g + k * sh.s, row + k * sh.s, {1, sh.s, sh.s}, mean[r], &a, &b);
      s1 += scale * a;
      s2 += scale * b;
      if (!dw) continue;
      dw[first + k] += static_cast<T>(b * inv);
      db[first + k] += static_cast<T>(a);
    }
    Slopes to(inv, s1, s2, count);
    for (int64_t k = 0; k < sh.k; ++k) {
      double scale = w ? static_cast<double>(w[k]) : 1.0;
      ops.norm_grad(dx + r * n + k * sh.s, g + k * sh.s, nullptr, row + k * sh.s, sh.s, mean[r],
                    static_cast<T>(inv * scale), static_cast<T>(to.b), static_cast<T>(to.c));
    }
  };
  auto backward = [&](int64_t first, int64_t rows, T* dw, T* db) {
    if (sh.s == 1 && sh.g == 1 && n <= loops.short_most)
      return loops.short_rows_grad(dx + first * n, dw, db, grad + first * n, x + first * n, weight,
                                   mean + first, rstd + first, rows, n);
    for (int64_t r = first; r < first + rows; ++r) row_backward(r, dw, db);
  };
  if (!dweight) return each_row<T>(sh.n * sh.g, n, backward);
  std::vector<double> w(static_cast<size_t>(channels)), b(static_cast<size_t>(channels));
  // Samples, not rows: each piece needs room for all channels.
  sum_over_rows<T>(sh.n, channels, w.data(), b.data(),
                   [&](int64_t first, int64_t samples, T* dw, T* db) {
                     backward(first * sh.g, samples * sh.g, dw, db);
                   });
  for (int64_t i = 0; i < channels; ++i) {
    dweight[i] = static_cast<T>(w[static_cast<size_t>(i)]);
    dbias[i] = static_cast<T>(b[static_cast<size_t>(i)]);
  }
}

template <class T>
void rms_norm(T* y, T* rstd, const T* x, const T* weight, int64_t rows, int64_t n, double eps) {
  const RowOps<T>& ops = row_ops<T>();
  const NormLoops<T>& loops = norm_loops<T>();
  if (n == 0) return;
  parallel_for(rows, std::max<int64_t>(1, grain_default / n), [&](int64_t begin, int64_t end) {
    T* const nothing = nullptr;
    if (n <= loops.short_most && y != x)
      return loops.short_rows(y + begin * n, nothing, rstd + begin, x + begin * n, weight, nullptr,
                              end - begin, n, eps);
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * n;
      rstd[r] = static_cast<T>(1 / std::sqrt(ops.dot(row, row, n) / static_cast<double>(n) + eps));
      ops.centred_weighted(y + r * n, row, n, T(0), rstd[r], T(0), weight, nullptr);
    }
  });
}

template <class T>
void rms_norm_backward(T* dx, T* dweight, const T* grad, const T* x, const T* rstd, const T* weight,
                       int64_t rows, int64_t n) {
  const RowOps<T>& ops = row_ops<T>();
  const NormLoops<T>& loops = norm_loops<T>();
  auto row_backward = [&](int64_t r, T* dw, T* db) {
    const T *g = grad + r * n, *row = x + r * n;
    double sum, s2, inv = static_cast<double>(rstd[r]);
    loops.row_dots(g, weight, row, n, T(0), &sum, &s2);
    const auto b = static_cast<T>(Slopes(inv, 0, s2, static_cast<double>(n)).b);
    if (dw)
      loops.row_grad(dx + r * n, dw, db, g, weight, row, n, T(0), rstd[r], rstd[r], b, T(0));
    else
      ops.norm_grad(dx + r * n, g, weight, row, n, T(0), rstd[r], b, T(0));
  };
  auto backward = [&](int64_t first, int64_t count, T* dw, T* db) {
    if (n <= loops.short_most)
      return loops.short_rows_grad(dx + first * n, dw, db, grad + first * n, x + first * n, weight,
                                   nullptr, rstd + first, count, n);
    for (int64_t r = first; r < first + count; ++r) row_backward(r, dw, db);
  };
  if (!dweight) return each_row<T>(rows, n, backward);
  std::vector<double> w(static_cast<size_t>(n)), unused(static_cast<size_t>(n));
  sum_over_rows<T>(rows, n, w.data(), unused.data(), backward);
  for (int64_t i = 0; i < n; ++i) dweight[i] = static_cast<T>(w[static_cast<size_t>(i)]);
}

template <class T>
void group_norm_weight_backward(T* dweight, T* dbias, const T* grad, const T* x, const T* mean,
                                const T* rstd, const GroupShape& sh) {
  const RowOps<T>& ops = row_ops<T>();
  const NormLoops<T>& loops = norm_loops<T>();
  int64_t channels = sh.g * sh.k;
  std::vector<double> w(static_cast<size_t>(channels)), b(static_cast<size_t>(channels));
  auto row_sums = [&](int64_t r, T* dw, T* db) {
    for (int64_t g = 0; g < sh.g; ++g) {
      T centre = mean[r * sh.g + g];
      double inv = static_cast<double>(rstd[r * sh.g + g]);
      int64_t at = (r * sh.g + g) * sh.row();
      if (sh.s == 1) {
        ops.weight_grad(dw + g * sh.k, db + g * sh.k, grad + at, x + at, sh.k, centre,
                        static_cast<T>(inv));
        continue;
      }
      for (int64_t k = 0; k < sh.k; ++k) {
        double s1, s2;
        loops.dots(grad + at + k * sh.s, x + at + k * sh.s, {1, sh.s, sh.s}, centre, &s1, &s2);
        dw[g * sh.k + k] += static_cast<T>(s2 * inv);
        db[g * sh.k + k] += static_cast<T>(s1);
      }
    }
  };
  sum_over_rows<T>(sh.n, channels, w.data(), b.data(),
                   [&](int64_t first, int64_t count, T* dw, T* db) {
                     for (int64_t r = first; r < first + count; ++r) row_sums(r, dw, db);
                   });
  for (int64_t i = 0; i < channels; ++i) {
    dweight[i] = static_cast<T>(w[static_cast<size_t>(i)]);
    dbias[i] = static_cast<T>(b[static_cast<size_t>(i)]);
  }
}

// Planes of a channel that are looked at together: a few thousand elements, so that those of all
// channels pass through the cache in the order of memory.
static int64_t planes_together(const ChannelShape& sh) {
  return std::max<int64_t>(1, 2048 / std::max<int64_t>(sh.s, 1));
}
// Calls body(piece, planes of channel c at x + offset, ...) over all channels and samples: pieces
// of samples when there are too few channels for the threads.
template <class F> static void for_channels(const ChannelShape& sh, int64_t pieces, F&& body) {
  int64_t few = planes_together(sh);
  int64_t per_channel = std::max<int64_t>(sh.n * sh.s / pieces, 1);
  parallel_for(pieces * sh.c, std::max<int64_t>(1, grain_default / per_channel),
               [&](int64_t u0, int64_t u1) {
                 while (u0 < u1) {
                   int64_t p = u0 / sh.c, c0 = u0 % sh.c, c1 = std::min(sh.c, c0 + u1 - u0);
                   int64_t n1 = (p + 1) * sh.n / pieces;
                   for (int64_t n = p * sh.n / pieces; n < n1; n += few) {
                     Planes at{std::min(few, n1 - n), sh.c * sh.s, sh.s};
                     for (int64_t c = c0; c < c1; ++c) body(p, c, (n * sh.c + c) * sh.s, at);
                   }
                   u0 += c1 - c0;
                 }
               });
}
static int64_t channel_pieces(const ChannelShape& sh) {
  return sh.c >= 2 * num_threads() ? 1 : pieces_of(sh.n * sh.c * sh.s, sh.n);
}

template <class T>
void channel_moments(double* mean, double* squares, const T* x, const ChannelShape& sh) {
  if (sh.c == 0) return;
  const LongWork work(sh.n * sh.c * sh.s);
  const NormLoops<T>& loops = norm_loops<T>();
  struct Moments {
    double n = 0, mean = 0, squares = 0;
    void join(const Moments& o) {
      join_moments(mean, squares, n, o.mean, o.squares, o.n);
      n += o.n;
    }
  };
  std::vector<Moments> all(static_cast<size_t>(sh.c));
  if (sh.s == 1) {
    Folded f(sh.n, sh.c);
    int64_t pieces = pieces_of(sh.n * sh.c, std::max<int64_t>(f.rows, 1));
    auto width = static_cast<size_t>(f.width);
    std::vector<double> m(width * static_cast<size_t>(pieces)), q(m.size());
    parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        int64_t r0 = p * f.rows / pieces, r1 = (p + 1) * f.rows / pieces;
        loops.column_moments(x + r0 * f.width, r1 - r0, f.width, f.width, m.data() + p * f.width,
                             q.data() + p * f.width);
      }
    });
    for (int64_t p = 0; p < pieces; ++p) {
      auto rows = static_cast<double>((p + 1) * f.rows / pieces - p * f.rows / pieces);
      for (size_t i = 0; i < width; ++i) {
        size_t at = static_cast<size_t>(p) * width + i;
        all[i % static_cast<size_t>(sh.c)].join({rows, m[at], q[at]});
      }
    }
    const T* left = x + f.rows * f.width;
    for (int64_t i = 0; i < f.rest; ++i)
      all[static_cast<size_t>(i % sh.c)].join({1, static_cast<double>(left[i]), 0});
  } else {
    int64_t pieces = channel_pieces(sh);
    std::vector<Moments> parts(static_cast<size_t>(sh.c * pieces));
    for_channels(sh, pieces, [&](int64_t p, int64_t c, int64_t offset, const Planes& at) {
      Moments m;
      loops.moments(x + offset, at, &m.mean, &m.squares);
      m.n = static_cast<double>(at.count());
      parts[static_cast<size_t>(p * sh.c + c)].join(m);
    });
    for (size_t i = 0; i < parts.size(); ++i) all[i % all.size()].join(parts[i]);
  }
  for (size_t c = 0; c < all.size(); ++c) {
    mean[c] = all[c].mean;
    squares[c] = all[c].squares;
  }
}

template <class T>
void channel_affine(T* y, const T* x, const T* mean, const T* rstd, const T* weight, const T* bias,
                    const ChannelShape& sh) {
  if (sh.c == 0) return;
  const NormLoops<T>& loops = norm_loops<T>();
  std::vector<T> a(static_cast<size_t>(sh.c)), b(static_cast<size_t>(sh.c));
  for (int64_t c = 0; c < sh.c; ++c) {
    double scale = static_cast<double>(rstd[c]) * (weight ? static_cast<double>(weight[c]) : 1.0);
    a[static_cast<size_t>(c)] = static_cast<T>(scale);
    b[static_cast<size_t>(c)] = bias ? bias[c] : T(0);
  }
  if (sh.s == 1) {
    Folded f(sh.n, sh.c);
    std::vector<T> fm = repeated(mean, sh.c, f), fa = repeated(a.data(), sh.c, f),
                   fb = repeated(b.data(), sh.c, f);
    for_folded(f, [&](int64_t r, int64_t rows, int64_t w) {
      loops.column_affine(y + r * f.width, x + r * f.width, rows, w, fm.data(), fa.data(),
                          fb.data());
    });
    return;
  }
  parallel_for(sh.n * sh.c, std::max<int64_t>(1, grain_default / std::max<int64_t>(sh.s, 1)),
               [&](int64_t r0, int64_t r1) {
                 loops.rows_affine(y, x, r0, r1, sh.c, sh.s, mean, a.data(), b.data());
               });
}

template <class T>
void channel_dots(double* sum_g, double* sum_gx, const T* grad, const T* x, const T* mean,
                  const ChannelShape& sh) {
  if (sh.c == 0) return;
  const LongWork work(sh.n * sh.c * sh.s);
  const NormLoops<T>& loops = norm_loops<T>();
  for (int64_t c = 0; c < sh.c; ++c) sum_g[c] = sum_gx[c] = 0;
  if (sh.s == 1) {
    Folded f(sh.n, sh.c);
    std::vector<T> centre = repeated(mean, sh.c, f);
    int64_t pieces = pieces_of(sh.n * sh.c, std::max<int64_t>(f.rows, 1));
    std::vector<double> sums(static_cast<size_t>(2 * f.width * pieces));
    parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        int64_t r0 = p * f.rows / pieces, r1 = (p + 1) * f.rows / pieces;
        double* s = sums.data() + 2 * f.width * p;
        loops.column_dots(grad + r0 * f.width, x + r0 * f.width, r1 - r0, f.width, centre.data(), s,
                          s + f.width);
      }
    });
    for (int64_t p = 0; p < pieces; ++p) {
      const double* s = sums.data() + 2 * f.width * p;
      for (int64_t i = 0; i < f.width; ++i) {
        sum_g[i % sh.c] += s[i];
        sum_gx[i % sh.c] += s[f.width + i];
      }
    }
    const T *g = grad + f.rows * f.width, *left = x + f.rows * f.width;
    for (int64_t i = 0; i < f.rest; ++i) {
      sum_g[i % sh.c] += static_cast<double>(g[i]);
      sum_gx[i % sh.c] += static_cast<double>(g[i]) * static_cast<double>(left[i] - mean[i % sh.c]);
    }
    return;
  }
  int64_t pieces = channel_pieces(sh);
  std::vector<double> sums(static_cast<size_t>(2 * sh.c * pieces));
  for_channels(sh, pieces, [&](int64_t p, int64_t c, int64_t offset, const Planes& at) {
    double s1, s2;
    loops.dots(grad + offset, x + offset, at, mean[c], &s1, &s2);
    double* to = sums.data() + 2 * (p * sh.c + c);
    to[0] += s1;
    to[1] += s2;
  });
  for (int64_t i = 0; i < sh.c * pieces; ++i) {
    sum_g[i % sh.c] += sums[static_cast<size_t>(2 * i)];
    sum_gx[i % sh.c] += sums[static_cast<size_t>(2 * i + 1)];
  }
}

template <class T>
void channel_grad(T* dx, const T* grad, const T* x, const T* mean, const T* a, const T* b,
                  const T* c, const ChannelShape& sh) {
  const NormLoops<T>& loops = norm_loops<T>();
  if (sh.s == 1) {
    Folded f(sh.n, sh.c);
    std::vector<T> fm = repeated(mean, sh.c, f), fa = repeated(a, sh.c, f),
                   fb = repeated(b, sh.c, f), fc = repeated(c, sh.c, f);
    for_folded(f, [&](int64_t r, int64_t rows, int64_t w) {
      int64_t at = r * f.width;
      loops.column_grad(dx + at, grad + at, x + at, rows, w, fm.data(), fa.data(), fb.data(),
                        fc.data());
    });
    return;
  }
  parallel_for(sh.n * sh.c, std::max<int64_t>(1, grain_default / std::max<int64_t>(sh.s, 1)),
               [&](int64_t r0, int64_t r1) {
                 loops.rows_grad(dx, grad, x, r0, r1, sh.c, sh.s, mean, a, b, c);
               });
}

template <class T>
void channel_backward(T* dx, const T* grad, const T* x, const T* mean, const T* rstd,
                      const T* weight, const double* sum_g, const double* sum_gx,
                      const ChannelShape& sh) {
  if (sh.c == 0) return;
  auto count = static_cast<size_t>(sh.c);
  std::vector<T> a(count), b(count), c(count);
  auto m = static_cast<double>(sh.n * sh.s);
  for (size_t i = 0; i < count; ++i) {
    double inv = static_cast<double>(rstd[i]), w = weight ? static_cast<double>(weight[i]) : 1.0;
    a[i] = static_cast<T>(inv * w);
    if (!sum_g) continue;
    Slopes to(inv, w * sum_g[i], w * sum_gx[i], m);
    b[i] = static_cast<T>(to.b);
    c[i] = static_cast<T>(to.c);
  }
  channel_grad(dx, grad, x, mean, a.data(), b.data(), c.data(), sh);
}

template void group_norm(float*, float*, float*, const float*, const float*, const float*,
                         const GroupShape&, double);
template void group_norm_backward(float*, float*, float*, const float*, const float*, const float*,
                                  const float*, const float*, const GroupShape&);
template void group_norm_weight_backward(float*, float*, const float*, const float*, const float*,
                                         const float*, const GroupShape&);
template void rms_norm(float*, float*, const float*, const float*, int64_t, int64_t, double);
template void rms_norm_backward(float*, float*, const float*, const float*, const float*,
                                const float*, int64_t, int64_t);
template void channel_moments(double*, double*, const float*, const ChannelShape&);
template void channel_affine(float*, const float*, const float*, const float*, const float*,
                             const float*, const ChannelShape&);
template void channel_dots(double*, double*, const float*, const float*, const float*,
                           const ChannelShape&);
template void channel_backward(float*, const float*, const float*, const float*, const float*,
                               const float*, const double*, const double*, const ChannelShape&);
template void group_norm(double*, double*, double*, const double*, const double*, const double*,
                         const GroupShape&, double);
template void group_norm_backward(double*, double*, double*, const double*, const double*,
                                  const double*, const double*, const double*, const GroupShape&);
template void group_norm_weight_backward(double*, double*, const double*, const double*,
                                         const double*, const double*, const GroupShape&);
template void rms_norm(double*, double*, const double*, const double*, int64_t, int64_t, double);
template void rms_norm_backward(double*, double*, const double*, const double*, const double*,
                                const double*, int64_t, int64_t);
template void channel_moments(double*, double*, const double*, const ChannelShape&);
template void channel_affine(double*, const double*, const double*, const double*, const double*,
                             const double*, const ChannelShape&);
template void channel_dots(double*, double*, const double*, const double*, const double*,
                           const ChannelShape&);
template void channel_backward(double*, const double*, const double*, const double*, const double*,
                               const double*, const double*, const double*, const ChannelShape&);

}  // namespace clew::kernels

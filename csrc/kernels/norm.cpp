// Normalisation over rows and over channels, with their gradients, built of the row loops.
// May include: base, kernels.
// Invariant: means are subtracted before squaring; sums over rows are merged in row order.
#include "kernels/norm.h"

#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/softmax_rows.h"

namespace clew::kernels {
namespace {

constexpr int64_t flush_rows = 64;

// Adds up two rows of n numbers over `rows` rows: body(row, dw, db) adds one row's terms; results
// in double.
template <class T, class Body>
void sum_over_rows(int64_t rows, int64_t n, double* sum_w, double* sum_b, Body&& body) {
  int64_t pieces = std::min<int64_t>(num_threads(), rows * n / grain_default + 1);
  pieces = std::max<int64_t>(1, std::min(pieces, rows));
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
        for (; r < stop; ++r) body(r, dw.data(), db.data());
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

}  // namespace

template <class T>
void group_norm(T* y, T* mean, T* rstd, const T* x, const T* weight, const T* bias,
                const GroupShape& sh, double eps) {
  const RowOps<T>& ops = row_ops<T>();
  int64_t n = sh.row();
  if (n == 0) return;
  parallel_for(
      sh.n * sh.g, std::max<int64_t>(1, grain_default / n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T* row = x + r * n;
          T* out = y + r * n;
          double mu = ops.sum(row, n) / static_cast<double>(n);
          T centre = static_cast<T>(mu);
          double off = mu - static_cast<double>(centre);
          double var = ops.squares(row, n, centre) / static_cast<double>(n) - off * off;
          double inv = 1 / std::sqrt(std::max(var, 0.0) + eps);
          if (var != var) inv = var;
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
void group_norm_backward(T* dx, const T* grad, const T* x, const T* mean, const T* rstd,
                         const T* weight, const GroupShape& sh) {
  const RowOps<T>& ops = row_ops<T>();
  int64_t n = sh.row();
  if (n == 0) return;
  parallel_for(sh.n * sh.g, std::max<int64_t>(1, grain_default / n),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   const T *g = grad + r * n, *row = x + r * n;
                   int64_t first = r % sh.g * sh.k;
                   const T* w = weight ? weight + first : nullptr;
                   double s1 = 0, s2 = 0, inv = static_cast<double>(rstd[r]);
                   if (sh.s == 1 || !w) {
                     ops.norm_dots(g, w, row, n, mean[r], &s1, &s2);
                   } else {
                     for (int64_t k = 0; k < sh.k; ++k) {
                       double a, b;
                       ops.norm_dots(g + k * sh.s, nullptr, row + k * sh.s, sh.s, mean[r], &a, &b);
                       s1 += static_cast<double>(w[k]) * a;
                       s2 += static_cast<double>(w[k]) * b;
                     }
                   }
                   // dx = rstd (g w - s1 / n) - rstd^3 (x - mean) s2 / n
                   double b = -inv * inv * inv * s2 / static_cast<double>(n);
                   double c = -inv * s1 / static_cast<double>(n);
                   if (sh.s == 1 || !w) {
                     ops.norm_grad(dx + r * n, g, w, row, n, mean[r], static_cast<T>(inv),
                                   static_cast<T>(b), static_cast<T>(c));
                     continue;
                   }
                   for (int64_t k = 0; k < sh.k; ++k) {
                     ops.norm_grad(dx + r * n + k * sh.s, g + k * sh.s, nullptr, row + k * sh.s,
                                   sh.s, mean[r], static_cast<T>(inv * static_cast<double>(w[k])),
                                   static_cast<T>(b), static_cast<T>(c));
                   }
                 }
               });
}

template <class T>
void group_norm_weight_backward(T* dweight, T* dbias, const T* grad, const T* x, const T* mean,
                                const T* rstd, const GroupShape& sh) {
  const RowOps<T>& ops = row_ops<T>();
  int64_t channels = sh.g * sh.k;
  std::vector<double> w(static_cast<size_t>(channels)), b(static_cast<size_t>(channels));
  sum_over_rows<T>(sh.n, channels, w.data(), b.data(), [&](int64_t r, T* dw, T* db) {
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
        ops.norm_dots(grad + at + k * sh.s, nullptr, x + at + k * sh.s, sh.s, centre, &s1, &s2);
        dw[g * sh.k + k] += static_cast<T>(s2 * inv);
        db[g * sh.k + k] += static_cast<T>(s1);
      }
    }
  });
  for (int64_t i = 0; i < channels; ++i) {
    dweight[i] = static_cast<T>(w[static_cast<size_t>(i)]);
    dbias[i] = static_cast<T>(b[static_cast<size_t>(i)]);
  }
}

template <class T>
void channel_affine(T* y, const T* x, const T* mean, const T* rstd, const T* weight, const T* bias,
                    const ChannelShape& sh) {
  const RowOps<T>& ops = row_ops<T>();
  std::vector<T> a(static_cast<size_t>(sh.c)), b(static_cast<size_t>(sh.c));
  for (int64_t c = 0; c < sh.c; ++c) {
    double scale = static_cast<double>(rstd[c]) * (weight ? static_cast<double>(weight[c]) : 1.0);
    a[static_cast<size_t>(c)] = static_cast<T>(scale);
    b[static_cast<size_t>(c)] = bias ? bias[c] : T(0);
  }
  if (sh.s == 1) {
    parallel_for(sh.n, std::max<int64_t>(1, grain_default / std::max<int64_t>(sh.c, 1)),
                 [&](int64_t r0, int64_t r1) {
                   for (int64_t r = r0; r < r1; ++r) {
                     ops.column_centred(y + r * sh.c, x + r * sh.c, mean, a.data(), b.data(), sh.c);
                   }
                 });
    return;
  }
  parallel_for(sh.n * sh.c, std::max<int64_t>(1, grain_default / std::max<int64_t>(sh.s, 1)),
               [&](int64_t r0, int64_t r1) {
                 for (int64_t r = r0; r < r1; ++r) {
                   auto c = static_cast<size_t>(r % sh.c);
                   ops.centred(y + r * sh.s, x + r * sh.s, sh.s, mean[c], a[c], b[c]);
                 }
               });
}

template <class T>
void channel_dots(double* sum_g, double* sum_gx, const T* grad, const T* x, const T* mean,
                  const ChannelShape& sh) {
  const RowOps<T>& ops = row_ops<T>();
  if (sh.s == 1) {
    sum_over_rows<T>(sh.n, sh.c, sum_gx, sum_g, [&](int64_t r, T* dw, T* db) {
      ops.column_dots(dw, db, grad + r * sh.c, x + r * sh.c, mean, sh.c);
    });
    return;
  }
  parallel_for(sh.c, std::max<int64_t>(1, grain_default / std::max<int64_t>(sh.n * sh.s, 1)),
               [&](int64_t c0, int64_t c1) {
                 for (int64_t c = c0; c < c1; ++c) {
                   sum_g[c] = sum_gx[c] = 0;
                   for (int64_t r = 0; r < sh.n; ++r) {
                     double s1, s2;
                     int64_t at = (r * sh.c + c) * sh.s;
                     ops.norm_dots(grad + at, nullptr, x + at, sh.s, mean[c], &s1, &s2);
                     sum_g[c] += s1;
                     sum_gx[c] += s2;
                   }
                 }
               });
}

template <class T>
void channel_backward(T* dx, const T* grad, const T* x, const T* mean, const T* rstd,
                      const T* weight, bool batch_stats, const ChannelShape& sh) {
  const RowOps<T>& ops = row_ops<T>();
  auto count = static_cast<size_t>(sh.c);
  std::vector<double> s1(count), s2(count);
  if (batch_stats) channel_dots(s1.data(), s2.data(), grad, x, mean, sh);
  std::vector<T> a(count), b(count), c(count);
  auto m = static_cast<double>(sh.n * sh.s);
  for (size_t i = 0; i < count; ++i) {
    double inv = static_cast<double>(rstd[i]), w = weight ? static_cast<double>(weight[i]) : 1.0;
    double slope = batch_stats ? -w * inv * inv * inv * s2[i] / m : 0.0;
    a[i] = static_cast<T>(inv * w);
    b[i] = static_cast<T>(slope);
    c[i] = static_cast<T>(batch_stats ? -inv * w * s1[i] / m : 0.0);
  }
  if (sh.s == 1) {
    parallel_for(sh.n, std::max<int64_t>(1, grain_default / std::max<int64_t>(sh.c, 1)),
                 [&](int64_t r0, int64_t r1) {
                   for (int64_t r = r0; r < r1; ++r) {
                     ops.column_grad(dx + r * sh.c, grad + r * sh.c, x + r * sh.c, mean, a.data(),
                                     b.data(), c.data(), sh.c);
                   }
                 });
    return;
  }
  parallel_for(sh.n * sh.c, std::max<int64_t>(1, grain_default / std::max<int64_t>(sh.s, 1)),
               [&](int64_t r0, int64_t r1) {
                 for (int64_t r = r0; r < r1; ++r) {
                   auto i = static_cast<size_t>(r % sh.c);
                   ops.norm_grad(dx + r * sh.s, grad + r * sh.s, nullptr, x + r * sh.s, sh.s,
                                 mean[i], a[i], b[i], c[i]);
                 }
               });
}

template void group_norm(float*, float*, float*, const float*, const float*, const float*,
                         const GroupShape&, double);
template void group_norm(double*, double*, double*, const double*, const double*, const double*,
                         const GroupShape&, double);
template void group_norm_backward(float*, const float*, const float*, const float*, const float*,
                                  const float*, const GroupShape&);
template void group_norm_backward(double*, const double*, const double*, const double*,
                                  const double*, const double*, const GroupShape&);
template void group_norm_weight_backward(float*, float*, const float*, const float*, const float*,
                                         const float*, const GroupShape&);
template void group_norm_weight_backward(double*, double*, const double*, const double*,
                                         const double*, const double*, const GroupShape&);
template void channel_affine(float*, const float*, const float*, const float*, const float*,
                             const float*, const ChannelShape&);
template void channel_affine(double*, const double*, const double*, const double*, const double*,
                             const double*, const ChannelShape&);
template void channel_dots(double*, double*, const float*, const float*, const float*,
                           const ChannelShape&);
template void channel_dots(double*, double*, const double*, const double*, const double*,
                           const ChannelShape&);
template void channel_backward(float*, const float*, const float*, const float*, const float*,
                               const float*, bool, const ChannelShape&);
template void channel_backward(double*, const double*, const double*, const double*, const double*,
                               const double*, bool, const ChannelShape&);

}  // namespace clew::kernels

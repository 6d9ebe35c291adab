// Picking each sample's log-probability for the negative log likelihood, cross-entropy in one pass,
// and their gradients.
// May include: base, kernels.
// Invariant: losses are added up in double, in sample order; few distances as sums of tensors are.
#include "kernels/norm/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/core/loop_tables.h"
#include "kernels/norm/softmax_columns.h"
#include "kernels/norm/softmax_rows.h"
#include "kernels/reduce/reduce_loops.h"

namespace clew::kernels {

double distance_total(DType d, const char* a, const char* b, int64_t n, const Scalar* params) {
  const LongWork work(n);
  constexpr int64_t block = 2048, together = 16;  // a block of distances stays in the cache
  const Loop loop = table::distance[d];
  const auto item = static_cast<int64_t>(itemsize(d));
  const int64_t steps[] = {item, item, item};
  if (d == DType::Float32 && n <= few_terms) {
    // Adds in the order in which sum() adds so few elements.
    alignas(64) float each[few_terms];
    float total = 0;
    char* p[] = {reinterpret_cast<char*>(each), const_cast<char*>(a), const_cast<char*>(b)};
    loop(p, steps, n, params);
    reduce_table().few_sums(each, 1, n, 1, &total);
    return static_cast<double>(total);
  }
  const int64_t pieces = (n + block * together - 1) / (block * together);
  std::vector<double> part(static_cast<size_t>(pieces), 0.0);
  parallel_for(pieces, 1, [&](int64_t from, int64_t to) {
    alignas(64) char room[block * sizeof(double)];
    for (int64_t piece = from; piece < to; ++piece) {
      double& total = part[static_cast<size_t>(piece)];
      int64_t end = std::min(n, (piece + 1) * block * together);
      for (int64_t i = piece * block * together; i < end; i += block) {
        int64_t count = std::min(block, end - i);
        // A loop reads through pointers that it does not write through.
        char* p[] = {room, const_cast<char*>(a) + i * item, const_cast<char*>(b) + i * item};
        loop(p, steps, count, params);
        if (d == DType::Float64)
          reduce_table().sum_double.row(reinterpret_cast<const double*>(room), count, total);
        else
          reduce_table().sum_float.row(reinterpret_cast<const float*>(room), count, total);
      }
    }
  });
  double total = 0;
  for (double p : part) total += p;
  return total;
}

void check_targets(const int64_t* target, const NllShape& sh) {
  for (int64_t i = 0; i < sh.n * sh.s; ++i) {
    int64_t t = target[i];
    if (t != sh.ignore && (t < 0 || t >= sh.c)) {
      fail_index("nll_loss: target ", t, " is out of bounds for ", sh.c, " classes");
    }
  }
}

template <class T>
void nll(const T* x, const int64_t* target, const T* weight, const NllShape& sh, T* each,
         double* sum, double* total) {
  const LongWork work(sh.n * sh.s);
  *sum = *total = 0;
  for (int64_t n = 0; n < sh.n; ++n) {
    for (int64_t s = 0; s < sh.s; ++s) {
      int64_t i = n * sh.s + s, t = target[i];
      T loss = 0;
      if (t != sh.ignore) {
        T w = weight ? weight[t] : T(1);
        loss = -w * x[(n * sh.c + t) * sh.s + s];
        *total += static_cast<double>(w);
        *sum += static_cast<double>(loss);
      }
      if (each) each[i] = loss;
    }
  }
}

template <class T>
void nll_backward(T* dx, const T* grad, bool scalar, double scale, const int64_t* target,
                  const T* weight, const NllShape& sh) {
  for (int64_t n = 0; n < sh.n; ++n) {
    for (int64_t s = 0; s < sh.s; ++s) {
      int64_t i = n * sh.s + s, t = target[i];
      if (t == sh.ignore) continue;
      double g = static_cast<double>(scalar ? grad[0] : grad[i]) * scale;
      double w = weight ? static_cast<double>(weight[t]) : 1.0;
      dx[(n * sh.c + t) * sh.s + s] = static_cast<T>(-w * g);
    }
  }
}

namespace {

// What the smoothed part of a loss weighs: each class by its weight.
template <class T> double weight_sum(const T* weight, int64_t c) {
  return weight ? row_ops<T>().sum(weight, c) : static_cast<double>(c);
}

// exp(x) of a number that is mostly tiny: what is lost where a logarithm is rounded.
double exp_of_rest(double x) {
  if (!(std::abs(x) < 1e-4)) return std::exp(x);
  return 1 + x * (1 + x * (0.5 + x * (1.0 / 6)));  // the next term is below 1e-17
}

int64_t rows_grain(int64_t c) {
  return std::max<int64_t>(1, grain_default / 4 / std::max<int64_t>(c, 1));
}

}  // namespace

template <class T>
void cross_entropy(const T* x, const int64_t* target, const T* weight, const CrossEntropy& of,
                   T* log_sum, T* each, double* sum, double* total) {
  const NllShape& sh = of.shape;
  int64_t count = sh.n * sh.s;
  std::vector<double> losses(static_cast<size_t>(count));
  double spread = sh.c ? of.smoothing / static_cast<double>(sh.c) : 0;
  double all = spread != 0 ? weight_sum(weight, sh.c) : 0;
  // The loss of target i, whose class k has the score x[at + k * step].
  auto finish = [&](int64_t i, double log_sum_i, int64_t at, int64_t step) {
    log_sum[i] = static_cast<T>(log_sum_i);
    log_sum[count + i] = static_cast<T>(log_sum_i - static_cast<double>(log_sum[i]));
    int64_t t = target[i];
    double loss = 0;
    if (t != sh.ignore) {
      double w = weight ? static_cast<double>(weight[t]) : 1.0;
      loss = (1 - of.smoothing) * w * (log_sum_i - static_cast<double>(x[at + t * step]));
      if (spread != 0) {
        double mixed = 0;
        if (step == 1) {
          mixed = weight ? row_ops<T>().dot(weight, x + at, sh.c) : row_ops<T>().sum(x + at, sh.c);
        } else {
          for (int64_t k = 0; k < sh.c; ++k) {
            const auto v = static_cast<double>(x[at + k * step]);
            mixed += weight ? static_cast<double>(weight[k]) * v : v;
          }
        }
        loss += spread * (all * log_sum_i - mixed);
      }
    }
    losses[static_cast<size_t>(i)] = loss;
  };
  if (sh.s == 1) {
    parallel_for(sh.n, rows_grain(sh.c), [&](int64_t begin, int64_t end) {
      constexpr int64_t together = 64;
      double sums[together];
      for (int64_t first = begin; first < end; first += together) {
        const int64_t rows = std::min(together, end - first);
        row_ops<T>().log_sums(sums, x + first * sh.c, rows, sh.c);
        for (int64_t r = 0; r < rows; ++r) finish(first + r, sums[r], (first + r) * sh.c, 1);
      }
    });
  } else {
    int64_t tiles = (sh.s + column_tile - 1) / column_tile;
    parallel_for(sh.n * tiles, rows_grain(sh.c * column_tile), [&](int64_t begin, int64_t end) {
      double sums[column_tile];
      for (int64_t u = begin; u < end; ++u) {
        int64_t n = u / tiles, first = u % tiles * column_tile;
        int64_t w = std::min(column_tile, sh.s - first), at = n * sh.c * sh.s + first;
        column_softmax<T>().log_sum(sums, x + at, sh.s, sh.c, w);
        for (int64_t j = 0; j < w; ++j) finish(n * sh.s + first + j, sums[j], at + j, sh.s);
      }
    });
  }
  *sum = *total = 0;
  for (int64_t i = 0; i < count; ++i) {
    double loss = losses[static_cast<size_t>(i)];
    if (each) each[i] = static_cast<T>(loss);
    if (target[i] == sh.ignore) continue;
    *sum += loss;
    *total += weight ? static_cast<double>(weight[target[i]]) : 1.0;
  }
}

template <class T>
void cross_entropy_backward(T* dx, const T* x, const T* log_sum, const T* grad, bool scalar,
                            double scale, const int64_t* target, const T* weight,
                            const CrossEntropy& of) {
  const NllShape& sh = of.shape;
  double spread = sh.c ? of.smoothing / static_cast<double>(sh.c) : 0;
  double all = spread != 0 ? weight_sum(weight, sh.c) : 0;
  // d loss / d x[k] = g ((own + spread all) p[k] - own [k = t] - spread w[k])
  auto gradient_of = [&](int64_t i) {
    return target[i] == sh.ignore ? 0.0 : static_cast<double>(scalar ? grad[0] : grad[i]) * scale;
  };
  auto own_of = [&](int64_t i) {
    return (1 - of.smoothing) * (weight ? static_cast<double>(weight[target[i]]) : 1.0);
  };
  auto finish = [&](int64_t i, double g, int64_t at, int64_t step) {
    if (target[i] == sh.ignore) return;
    dx[at + target[i] * step] -= static_cast<T>(g * own_of(i));
    for (int64_t k = 0; weight && spread != 0 && k < sh.c; ++k)
      dx[at + k * step] -= static_cast<T>(g * spread * static_cast<double>(weight[k]));
  };
  const T* rest = log_sum + sh.n * sh.s;  // p[k] = exp(x[k] - log_sum) exp(-rest)
  auto factor = [&](int64_t i, double g) {
    if (target[i] == sh.ignore) return T(0);
    return static_cast<T>(g * (own_of(i) + spread * all) * exp_of_rest(-rest[i]));
  };
  if (sh.s == 1) {
    parallel_for(sh.n, rows_grain(sh.c), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* to = dx + i * sh.c;
        if (target[i] == sh.ignore) {
          std::fill_n(to, sh.c, T(0));
          continue;
        }
        double g = gradient_of(i);
        row_ops<T>().exp_affine(to, x + i * sh.c, sh.c, log_sum[i], factor(i, g),
                                static_cast<T>(weight ? 0.0 : -g * spread));
        finish(i, g, i * sh.c, 1);
      }
    });
    return;
  }
  int64_t tiles = (sh.s + column_tile - 1) / column_tile;
  parallel_for(sh.n * tiles, rows_grain(sh.c * column_tile), [&](int64_t begin, int64_t end) {
    T a[column_tile], b[column_tile];
    for (int64_t u = begin; u < end; ++u) {
      int64_t n = u / tiles, first = u % tiles * column_tile, i0 = n * sh.s + first;
      int64_t w = std::min(column_tile, sh.s - first), at = n * sh.c * sh.s + first;
      for (int64_t j = 0; j < w; ++j) {
        double g = gradient_of(i0 + j);
        a[j] = factor(i0 + j, g);
        b[j] = static_cast<T>(weight ? 0.0 : -g * spread);
      }
      column_softmax<T>().shares(dx + at, sh.s, x + at, sh.s, sh.c, w, log_sum + i0, a, b);
      for (int64_t j = 0; j < w; ++j) {
        if (target[i0 + j] == sh.ignore) {
          for (int64_t k = 0; k < sh.c; ++k) dx[at + j + k * sh.s] = 0;
        }
        finish(i0 + j, gradient_of(i0 + j), at + j, sh.s);
      }
    }
  });
}

template void cross_entropy(const float*, const int64_t*, const float*, const CrossEntropy&, float*,
                            float*, double*, double*);
template void cross_entropy(const double*, const int64_t*, const double*, const CrossEntropy&,
                            double*, double*, double*, double*);
template void cross_entropy_backward(float*, const float*, const float*, const float*, bool, double,
                                     const int64_t*, const float*, const CrossEntropy&);
template void cross_entropy_backward(double*, const double*, const double*, const double*, bool,
                                     double, const int64_t*, const double*, const CrossEntropy&);
template void nll(const float*, const int64_t*, const float*, const NllShape&, float*, double*,
                  double*);
template void nll(const double*, const int64_t*, const double*, const NllShape&, double*, double*,
                  double*);
template void nll_backward(float*, const float*, bool, double, const int64_t*, const float*,
                           const NllShape&);
template void nll_backward(double*, const double*, bool, double, const int64_t*, const double*,
                           const NllShape&);

}  // namespace clew::kernels

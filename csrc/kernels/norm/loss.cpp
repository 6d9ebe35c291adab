// Picking each sample's log-probability for the negative log likelihood, cross-entropy in one pass,
// and their gradients.
// May include: base, kernels.
// Invariant: losses are added up in double, in pieces that do not depend on the threads; few
// distances as sums of tensors are.
#include "kernels/norm/loss.h"

#include <algorithm>
#include <atomic>
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
  const int64_t count = sh.n * sh.s;
  const auto wrong = [&](int64_t t) {
    return (t != sh.ignore) & (static_cast<uint64_t>(t) >= static_cast<uint64_t>(sh.c));
  };
  std::atomic<bool> any = false;
  parallel_for(count, 4 * grain_default, [&](int64_t begin, int64_t end) {
    bool found = false;
    for (int64_t i = begin; i < end; ++i) found |= wrong(target[i]);
    if (found) any = true;
  });
  for (int64_t i = 0; any && i < count; ++i)
    if (wrong(target[i]))
      fail_index("nll_loss: target ", target[i], " is out of bounds for ", sh.c, " classes");
}

namespace {

// Losses that are added up together, and the sums of all such pieces in their order.
constexpr int64_t loss_piece = 1024;
struct LossSum {
  double loss = 0, weight = 0;
};
LossSum sum_of(const std::vector<LossSum>& parts) {
  LossSum all;
  for (const LossSum& p : parts) {
    all.loss += p.loss;
    all.weight += p.weight;
  }
  return all;
}
// Several sums side by side: one would wait for each addition.
template <class F> double sum_in_turn(int64_t count, F&& term) {
  double part[4] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int64_t k = 0; k < 4; ++k) part[k] += term(i + k);
  for (; i < count; ++i) part[0] += term(i);
  return (part[0] + part[1]) + (part[2] + part[3]);
}
template <class T>
double weight_of(const int64_t* target, int64_t count, const T* weight, int64_t ignore) {
  return sum_in_turn(count, [&](int64_t i) {
    const int64_t t = target[i];
    return t == ignore ? 0.0 : weight ? static_cast<double>(weight[t]) : 1.0;
  });
}

}  // namespace

template <class T>
void nll(const T* x, const int64_t* target, const T* weight, const NllShape& sh, T* each,
         double* sum, double* total) {
  const int64_t count = sh.n * sh.s, pieces = (count + loss_piece - 1) / loss_piece;
  std::vector<LossSum> parts(static_cast<size_t>(pieces));
  parallel_for(pieces, grain_default / loss_piece, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p * loss_piece, many = std::min(loss_piece, count - first);
      const int64_t* own = target + first;
      T losses[loss_piece];
      int64_t n = first / sh.s, s = first % sh.s;
      for (int64_t i = 0; i < many; ++i) {
        const bool counts = own[i] != sh.ignore;
        const int64_t t = counts ? own[i] : 0;
        losses[i] = counts ? -(weight ? weight[t] : T(1)) * x[(n * sh.c + t) * sh.s + s] : T(0);
        if (++s == sh.s) s = 0, ++n;
      }
      if (each) std::copy_n(losses, many, each + first);
      parts[static_cast<size_t>(p)] = {
          sum_in_turn(many, [&](int64_t i) { return static_cast<double>(losses[i]); }),
          weight_of(own, many, weight, sh.ignore)};
    }
  });
  const LossSum all = sum_of(parts);
  *sum = all.loss;
  *total = all.weight;
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
  const int64_t count = sh.n * sh.s;
  const double spread = sh.c ? of.smoothing / static_cast<double>(sh.c) : 0;
  const double all = spread != 0 ? weight_sum(weight, sh.c) : 0, keep = 1 - of.smoothing;
  // Of some losses, one after the other: stores them where they are wanted, and adds them up.
  const auto sums_of = [&](const double* losses, int64_t first, int64_t many) {
    for (int64_t i = 0; each && i < many; ++i) each[first + i] = static_cast<T>(losses[i]);
    return LossSum{sum_in_turn(many, [&](int64_t i) { return losses[i]; }),
                   weight_of(target + first, many, weight, sh.ignore)};
  };
  std::vector<LossSum> parts;
  if (sh.s == 1) {
    // The loss of target i, whose scores are row[0 ... c).
    const auto loss_of = [&](int64_t i, double log_sum_i, const T* row) {
      log_sum[i] = static_cast<T>(log_sum_i);
      log_sum[count + i] = static_cast<T>(log_sum_i - static_cast<double>(log_sum[i]));
      const int64_t t = target[i];
      if (t == sh.ignore) return 0.0;
      // Beside a score of inf the loss of another class is NaN, as its log-probability is.
      if (log_sum_i == std::numeric_limits<double>::infinity())
        return std::numeric_limits<double>::quiet_NaN();
      const double w = weight ? static_cast<double>(weight[t]) : 1.0;
      double loss = keep * w * (log_sum_i - static_cast<double>(row[t]));
      if (spread != 0) {
        const double mixed =
            weight ? row_ops<T>().dot(weight, row, sh.c) : row_ops<T>().sum(row, sh.c);
        loss += spread * (all * log_sum_i - mixed);
      }
      return loss;
    };
    constexpr int64_t together = 64;
    parts.resize(static_cast<size_t>((count + together - 1) / together));
    parallel_for(std::ssize(parts), rows_grain(sh.c * together), [&](int64_t begin, int64_t end) {
      double sums[together];
      for (int64_t p = begin; p < end; ++p) {
        const int64_t first = p * together, rows = std::min(together, count - first);
        row_ops<T>().log_sums(sums, x + first * sh.c, rows, sh.c);
        for (int64_t r = 0; r < rows; ++r)
          sums[r] = loss_of(first + r, sums[r], x + (first + r) * sh.c);
        parts[static_cast<size_t>(p)] = sums_of(sums, first, rows);
      }
    });
  } else {
    const int64_t tiles = (sh.s + column_tile - 1) / column_tile;
    parts.resize(static_cast<size_t>(sh.n * tiles));
    parallel_for(sh.n * tiles, rows_grain(sh.c * column_tile), [&](int64_t begin, int64_t end) {
      double losses[column_tile];
      for (int64_t u = begin; u < end; ++u) {
        const int64_t n = u / tiles, first = u % tiles * column_tile, i = n * sh.s + first;
        const int64_t w = std::min(column_tile, sh.s - first);
        column_softmax<T>().losses(losses, log_sum + i, log_sum + count + i,
                                   x + n * sh.c * sh.s + first, sh.s, sh.c, w,
                                   {target + i, weight, sh.ignore, keep, spread, all});
        parts[static_cast<size_t>(u)] = sums_of(losses, i, w);
      }
    });
  }
  const LossSum total_of = sum_of(parts);
  *sum = total_of.loss;
  *total = total_of.weight;
}

template <class T>
void cross_entropy_backward(T* dx, const T* x, const T* log_sum, const T* grad, bool scalar,
                            double scale, const int64_t* target, const T* weight,
                            const CrossEntropy& of) {
  const NllShape& sh = of.shape;
  const double spread = sh.c ? of.smoothing / static_cast<double>(sh.c) : 0;
  const double all = spread != 0 ? weight_sum(weight, sh.c) : 0, keep = 1 - of.smoothing;
  const T* rest = log_sum + sh.n * sh.s;  // p[k] = exp(x[k] - log_sum) exp(-rest)
  const auto gradient_of = [&](int64_t i) {
    return static_cast<double>(scalar ? grad[0] : grad[i]) * scale;
  };
  if (sh.s == 1) {
    // d loss / d x[k] = g ((own + spread all) p[k] - own [k = t] - spread w[k])
    parallel_for(sh.n, rows_grain(sh.c), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* to = dx + i * sh.c;
        const int64_t t = target[i];
        if (t == sh.ignore) {
          std::fill_n(to, sh.c, T(0));
          continue;
        }
        const double g = gradient_of(i);
        const double own = keep * (weight ? static_cast<double>(weight[t]) : 1.0);
        const auto factor = static_cast<T>(g * (own + spread * all) * exp_of_rest(-rest[i]));
        row_ops<T>().exp_affine(to, x + i * sh.c, sh.c, log_sum[i], factor,
                                static_cast<T>(weight ? 0.0 : -g * spread));
        to[t] -= static_cast<T>(g * own);
        for (int64_t k = 0; weight && spread != 0 && k < sh.c; ++k)
          to[k] -= static_cast<T>(g * spread * static_cast<double>(weight[k]));
      }
    });
    return;
  }
  const int64_t tiles = (sh.s + column_tile - 1) / column_tile;
  parallel_for(sh.n * tiles, rows_grain(sh.c * column_tile), [&](int64_t begin, int64_t end) {
    double g[column_tile];
    for (int64_t u = begin; u < end; ++u) {
      const int64_t n = u / tiles, first = u % tiles * column_tile, i = n * sh.s + first;
      const int64_t w = std::min(column_tile, sh.s - first), at = n * sh.c * sh.s + first;
      for (int64_t j = 0; j < w; ++j) g[j] = gradient_of(i + j);
      column_softmax<T>().loss_gradient(dx + at, sh.s, x + at, sh.s, sh.c, w, g, log_sum + i,
                                        rest + i,
                                        {target + i, weight, sh.ignore, keep, spread, all});
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

// Group normalisation of images whose channels lie last, made of the loops over channels.
// May include: base, kernels.
// Invariant: a sample's sums are made by one thread or in pieces that do not depend on the others.
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/norm/norm.h"
#include "kernels/norm/norm_loops.h"

namespace clew::kernels {
namespace {

// Calls f(i) for all samples: one thread each, or all threads for one after the other.
template <class F> void each_sample(const GroupShape& sh, F&& f) {
  if (sh.n < num_threads()) {
    for (int64_t i = 0; i < sh.n; ++i) f(i);
    return;
  }
  const int64_t size = std::max<int64_t>(1, sh.g * sh.row());
  parallel_for(sh.n, std::max<int64_t>(1, grain_default / size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}
double factor(const auto* weight, int64_t c) {
  return weight ? static_cast<double>(weight[c]) : 1.0;
}

}  // namespace

template <class T>
void group_norm_last(T* y, T* mean, T* rstd, const T* x, const T* weight, const T* bias,
                     const GroupShape& sh, double eps) {
  const int64_t C = sh.g * sh.k, size = C * sh.s;
  if (size == 0) return;
  const bool channels_long = sh.k >= 64;  // the channels of a group in one point fill vectors
  each_sample(sh, [&](int64_t i) {
    const ChannelShape points{sh.s, C, 1};
    const auto count = static_cast<size_t>(C);
    std::vector<double> means(channels_long ? 0 : count), squares(means.size());
    if (!channels_long) channel_moments(means.data(), squares.data(), x + i * size, points);
    std::vector<T> centre(count), scale(count), shift(count);
    for (int64_t g = 0; g < sh.g; ++g) {
      double mu = 0, total = 0;
      if (channels_long)
        norm_loops<T>().moments(x + i * size + g * sh.k, {sh.s, C, sh.k}, &mu, &total);
      for (int64_t k = 0; k < sh.k && !channels_long; ++k) {
        const auto c = static_cast<size_t>(g * sh.k + k);
        join_moments(mu, total, static_cast<double>(k * sh.s), means[c], squares[c],
                     static_cast<double>(sh.s));
      }
      const double inv = 1 / std::sqrt(total / static_cast<double>(sh.row()) + eps);
      T& m = mean[i * sh.g + g] = static_cast<T>(mu);
      rstd[i * sh.g + g] = static_cast<T>(inv);
      const double off = (mu - static_cast<double>(m)) * inv;
      for (int64_t c = g * sh.k; c < (g + 1) * sh.k; ++c) {
        const auto at = static_cast<size_t>(c);
        const double b = bias ? static_cast<double>(bias[c]) : 0.0;
        centre[at] = m;
        scale[at] = static_cast<T>(inv * factor(weight, c));
        shift[at] = static_cast<T>(b - off * factor(weight, c));
      }
    }
    channel_affine<T>(y + i * size, x + i * size, centre.data(), scale.data(), nullptr,
                      shift.data(), points);
  });
}

template <class T>
void group_norm_backward_last(T* dx, T* dweight, T* dbias, const T* grad, const T* x, const T* mean,
                              const T* rstd, const T* weight, const GroupShape& sh) {
  const int64_t C = sh.g * sh.k, size = C * sh.s;
  std::vector<double> sums(static_cast<size_t>(2 * C * sh.n));
  each_sample(sh, [&](int64_t i) {
    const ChannelShape points{sh.s, C, 1};
    double *sum_g = sums.data() + 2 * C * i, *sum_gx = sum_g + C;
    std::vector<T> centre(static_cast<size_t>(C)), a(centre.size()), b(a.size()), add(a.size());
    for (int64_t c = 0; c < C; ++c) centre[static_cast<size_t>(c)] = mean[i * sh.g + c / sh.k];
    channel_dots(sum_g, sum_gx, grad + i * size, x + i * size, centre.data(), points);
    for (int64_t g = 0; g < sh.g; ++g) {
      const auto inv = static_cast<double>(rstd[i * sh.g + g]);
      double s1 = 0, s2 = 0;
      for (int64_t c = g * sh.k; c < (g + 1) * sh.k; ++c) {
        s1 += factor(weight, c) * sum_g[c];
        s2 += factor(weight, c) * sum_gx[c];
      }
      const Slopes to(inv, s1, s2, static_cast<double>(sh.row()));
      for (int64_t c = g * sh.k; c < (g + 1) * sh.k; ++c) {
        const auto at = static_cast<size_t>(c);
        a[at] = static_cast<T>(inv * factor(weight, c));
        b[at] = static_cast<T>(to.b);
        add[at] = static_cast<T>(to.c);
        sum_gx[c] *= inv;
      }
    }
    if (dx)
      channel_grad<T>(dx + i * size, grad + i * size, x + i * size, centre.data(), a.data(),
                      b.data(), add.data(), points);
  });
  if (!dweight) return;
  for (int64_t c = 0; c < C; ++c) {
    double w = 0, b = 0;
    for (int64_t i = 0; i < sh.n; ++i) {
      b += sums[static_cast<size_t>(2 * C * i + c)];
      w += sums[static_cast<size_t>(2 * C * i + C + c)];
    }
    dweight[c] = static_cast<T>(w);
    dbias[c] = static_cast<T>(b);
  }
}

template void group_norm_last(float*, float*, float*, const float*, const float*, const float*,
                              const GroupShape&, double);
template void group_norm_backward_last(float*, float*, float*, const float*, const float*,
                                       const float*, const float*, const float*, const GroupShape&);
template void group_norm_last(double*, double*, double*, const double*, const double*,
                              const double*, const GroupShape&, double);
template void group_norm_backward_last(double*, double*, double*, const double*, const double*,
                                       const double*, const double*, const double*,
                                       const GroupShape&);

}  // namespace clew::kernels

// The loops of distances over a row and those that it is compared with, compiled once for each
// instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/core/loop_tables.h"
#include "kernels/math/vmath.h"
#include "kernels/sort/distances.h"

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int L = 16;  // sums run in so many lanes, which are joined in fours at last

enum class Norm { count, sum, euclidean, greatest, any };

template <class F> void with_norm(double p, F&& f) {
  if (p == 0) return f.template operator()<Norm::count>();
  if (p == 1) return f.template operator()<Norm::sum>();
  if (p == 2) return f.template operator()<Norm::euclidean>();
  if (p == std::numeric_limits<double>::infinity()) return f.template operator()<Norm::greatest>();
  f.template operator()<Norm::any>();
}

// x^p for what stands in a block.
constexpr int64_t block = 256;
template <class C> void raise(C* x, int64_t n, double p) {
  C exponent = static_cast<C>(p);
  char* const rows[] = {reinterpret_cast<char*>(x), reinterpret_cast<char*>(x),
                        reinterpret_cast<char*>(&exponent)};
  constexpr int64_t item = sizeof(C), steps[] = {item, item, 0};
  table::pow.fn[static_cast<int>(dtype_of<C>())](rows, steps, n, nullptr);
}

template <class C, class F, class G>
[[gnu::always_inline]] inline C over_lanes(int64_t m, F&& join, G&& term) {
  C lanes[L] = {};
  int64_t i = 0;
  for (; i + L <= m; i += L) {
    for (int l = 0; l < L; ++l) lanes[l] = join(lanes[l], term(i + l));
  }
  for (int l = 0; l < L / 2; ++l) lanes[l] = join(lanes[l], lanes[l + L / 2]);
  for (int l = 0; l < L / 4; ++l) lanes[l] = join(lanes[l], lanes[l + L / 4]);
  C total = join(join(lanes[0], lanes[1]), join(lanes[2], lanes[3]));
  for (; i < m; ++i) total = join(total, term(i));
  return total;
}
template <class C, class G> [[gnu::always_inline]] inline C sum_of(int64_t m, G&& term) {
  return over_lanes<C>(
      m, [](C a, C b) { return a + b; }, term);
}

template <Norm norm, class C> C distance(const C* x, const C* y, int64_t m, double p) {
  auto size = [=](int64_t i) { return std::fabs(x[i] - y[i]); };
  if constexpr (norm == Norm::count) {
    return sum_of<C>(m, [=](int64_t i) {
      const C d = x[i] - y[i];
      return d == C(0) ? C(0) : d != d ? d : C(1);
    });
  } else if constexpr (norm == Norm::sum) {
    return sum_of<C>(m, size);
  } else if constexpr (norm == Norm::greatest) {
    const C sum = sum_of<C>(m, size);
    if (sum != sum) return sum;  // NaN, which no comparison finds
    return over_lanes<C>(
        m, [](C a, C b) { return b > a ? b : a; }, size);
  } else if constexpr (norm == Norm::euclidean) {
    return sum_of<C>(m, [=](int64_t i) { return (x[i] - y[i]) * (x[i] - y[i]); });  // squared
  } else {
    double total = 0;
    C room[block];
    for (int64_t begin = 0; begin < m; begin += block) {
      const int64_t n = std::min(block, m - begin);
      for (int64_t i = 0; i < n; ++i) room[i] = size(begin + i);
      raise(room, n, p);
      total += static_cast<double>(sum_of<C>(n, [&](int64_t i) { return room[i]; }));
    }
    return static_cast<C>(std::pow(total, 1 / p));
  }
}

// Squares that are out of range are added up again, in double.
template <class C> C wide_distance(const C* x, const C* y, int64_t m) {
  double total = 0;
  for (int64_t i = 0; i < m; ++i) {
    const double d = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    total += d * d;
  }
  return static_cast<C>(std::sqrt(total));
}
// The roots of squared distances to `count` rows.
template <class C> void take_roots(C* out, const C* x, const C* y, int64_t count, int64_t m) {
  constexpr C least = std::numeric_limits<C>::min() * C(1 << 20);
  constexpr C most = std::numeric_limits<C>::max();
  const auto fits = [](C square) { return square > least && square <= most; };
  constexpr int64_t together = 32;
  for (int64_t begin = 0; begin < count; begin += together) {
    const int64_t end = std::min(begin + together, count);
    int bad = 0;
    C wide[together];
    for (int64_t k = begin; k < end; ++k) bad += fits(out[k]) ? 0 : 1;
    for (int64_t k = begin; bad > 0 && k < end; ++k)
      wide[k - begin] = fits(out[k]) ? std::sqrt(out[k]) : wide_distance(x, y + k * m, m);
    if (bad > 0) {
      std::copy_n(wide, end - begin, out + begin);
    } else {
      for (int64_t k = begin; k < end; ++k) out[k] = std::sqrt(out[k]);
    }
  }
}
template <class C>
void distances(C* out, const C* x, const C* y, int64_t count, int64_t m, double p) {
  with_norm(p, [&]<Norm norm>() {
    for (int64_t k = 0; k < count; ++k) out[k] = distance<norm>(x, y + k * m, m, p);
    if (norm == Norm::euclidean) take_roots(out, x, y, count, m);
  });
}

// The distances of x to a turned block, squared if euclidean.
template <Norm norm, class C>
[[gnu::always_inline]] inline void to_block(C* out, const C* x, const C* turned, int64_t m) {
  typedef C Rows __attribute__((vector_size(turned_rows * sizeof(C))));
  Rows total = {}, sum = {};
  for (int64_t i = 0; i < m; ++i, turned += turned_rows) {
    Rows y;
    std::memcpy(&y, turned, sizeof y);
    const Rows d = x[i] - y, size = d < 0 ? -d : d;
    if constexpr (norm == Norm::count) {
      total += d == 0 ? Rows{} : d != d ? d : Rows{} + 1;
    } else if constexpr (norm == Norm::sum) {
      total += size;
    } else if constexpr (norm == Norm::greatest) {
      total = size > total ? size : total;
      sum += size;  // finds NaN, which no comparison does
    } else {
      total += d * d;
    }
  }
  if (norm == Norm::greatest) total = sum != sum ? sum : total;
  std::memcpy(out, &total, sizeof total);
}
template <class C>
void to_turned(C* out, const C* x, const C* y, const C* turned, int64_t first, int64_t last,
               int64_t m, double p) {
  constexpr int64_t W = turned_rows;
  with_norm(p, [&]<Norm norm>() {
    C* to = out;
    for (int64_t k = first / W * W; k < last; k += W) {
      const int64_t from = std::max(k, first), end = std::min(k + W, last);
      if (end - from == W) {
        to_block<norm>(to, x, turned + k * m, m);
      } else {
        C some[W];
        to_block<norm>(some, x, turned + k * m, m);
        std::copy(some + (from - k), some + (end - k), to);
      }
      to += end - from;
    }
    if (norm == Norm::euclidean) take_roots(out, x, y + first * m, last - first, m);
  });
}

template <Norm norm, class C>
void add_slope(C* __restrict dx, const C* __restrict x, const C* __restrict y, C grad, C distance,
               int64_t m, double p) {
  if (norm == Norm::count || distance == C(0)) return;
  if constexpr (norm == Norm::euclidean) {
    const C scale = grad / distance;
    for (int64_t i = 0; i < m; ++i) dx[i] += (x[i] - y[i]) * scale;
  } else if constexpr (norm == Norm::any) {
    C room[block];
    for (int64_t begin = 0; begin < m; begin += block) {
      const int64_t n = std::min(block, m - begin);
      const C *some = x + begin, *other = y + begin;
      for (int64_t i = 0; i < n; ++i) room[i] = std::fabs(some[i] - other[i]) / distance;
      raise(room, n, p - 1);
      for (int64_t i = 0; i < n; ++i) {
        const C d = some[i] - other[i], slope = d == C(0) ? C(0) : room[i];
        dx[begin + i] += grad * (d < C(0) ? -slope : slope);
      }
    }
  } else {
    for (int64_t i = 0; i < m; ++i) {
      const C d = x[i] - y[i], size = std::fabs(d);
      C slope = d == C(0) ? C(0) : d != d ? d : C(1);
      if (norm == Norm::greatest) slope = size == distance || d != d ? slope : C(0);
      dx[i] += grad * (d < C(0) ? -slope : slope);
    }
  }
}
template <class C>
void slopes(C* dx, const C* x, const C* y, const C* grad, const C* distance, int64_t step,
            int64_t count, int64_t m, double p) {
  with_norm(p, [&]<Norm norm>() {
    for (int64_t k = 0; k < count; ++k)
      add_slope<norm>(dx, x, y + k * m, grad[k * step], distance[k * step], m, p);
  });
}

// The slopes at as many distances as a block has rows; there are n.
template <Norm norm, class C> struct BlockSlopes {
  typedef C Rows __attribute__((vector_size(turned_rows * sizeof(C))));
  Rows grad = {}, far = {};
  decltype(Rows{} != Rows{}) live;  // not where there is no row, or no distance
  BlockSlopes(const C* grads, const C* distances, int64_t n) {
    if (n == turned_rows) {
      std::memcpy(&grad, grads, sizeof grad);
      std::memcpy(&far, distances, sizeof far);
    } else {
      std::memcpy(&grad, grads, static_cast<size_t>(n) * sizeof(C));
      std::memcpy(&far, distances, static_cast<size_t>(n) * sizeof(C));
    }
    live = far != 0;
    if (norm == Norm::euclidean) grad = live ? grad / far : Rows{};
  }
  [[gnu::always_inline]] void add_to(Rows& sum, const Rows& d) const {
    if constexpr (norm == Norm::euclidean) {
      sum += live ? d * grad : Rows{};
    } else {
      const Rows size = d < 0 ? -d : d, one = Rows{} + 1;
      Rows sign = d < 0 ? -one : d > 0 ? one : d;
      if (norm == Norm::greatest) sign = size == far ? sign : d != d ? d : Rows{};
      sum += live ? grad * sign : Rows{};
    }
  }
};
template <class F> void with_simple_norm(double p, F&& f) {
  with_norm(p, [&]<Norm norm>() {
    if constexpr (norm != Norm::count && norm != Norm::any) f.template operator()<norm>();
  });
}
template <class C>
void turned_slopes(C* dx, const C* x, const C* turned, const C* grad, const C* distance,
                   int64_t count, int64_t m, double p) {
  constexpr int64_t W = turned_rows;
  with_simple_norm(p, [&]<Norm norm>() {
    using Slopes = BlockSlopes<norm, C>;
    typename Slopes::Rows sums[turned_most] = {};
    for (int64_t k = 0; k < count; k += W, turned += W * m) {
      const Slopes slopes(grad + k, distance + k, std::min(W, count - k));
      for (int64_t i = 0; i < m; ++i) {
        typename Slopes::Rows y;
        std::memcpy(&y, turned + i * W, sizeof y);
        slopes.add_to(sums[i], x[i] - y);
      }
    }
    for (int64_t i = 0; i < m; ++i) {
      C lanes[W];
      std::memcpy(lanes, &sums[i], sizeof lanes);
      for (int64_t half = W / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
      dx[i] += lanes[0];
    }
  });
}
template <class C>
void block_slopes(C* dy, int64_t n, const C* turned, const C* x, const C* grad, const C* distance,
                  int64_t apart, int64_t count, int64_t m, double p) {
  constexpr int64_t W = turned_rows;
  with_simple_norm(p, [&]<Norm norm>() {
    using Slopes = BlockSlopes<norm, C>;
    typename Slopes::Rows sums[turned_most] = {};
    for (int64_t k = 0; k < count; ++k) {
      const Slopes slopes(grad + k * apart, distance + k * apart, n);
      for (int64_t i = 0; i < m; ++i) {
        typename Slopes::Rows y;
        std::memcpy(&y, turned + i * W, sizeof y);
        slopes.add_to(sums[i], y - x[k * m + i]);
      }
    }
    for (int64_t i = 0; i < m; ++i)
      for (int64_t l = 0; l < n; ++l) dy[l * m + i] = sums[i][l];
  });
}

template <class C> constexpr DistanceLoops<C> loops() {
  return {.distances = distances<C>,
          .to_turned = to_turned<C>,
          .slopes = slopes<C>,
          .turned_slopes = turned_slopes<C>,
          .block_slopes = block_slopes<C>};
}

}  // namespace

extern const DistanceLoops<float> distances_float;
extern const DistanceLoops<double> distances_double;
const DistanceLoops<float> distances_float = loops<float>();
const DistanceLoops<double> distances_double = loops<double>();

}  // namespace clew::kernels::CLEW_ISA

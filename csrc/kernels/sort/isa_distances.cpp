// The loops of distances over a row and those that it is compared with, compiled once for each
// instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#include <algorithm>
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
template <class C>
void distances(C* out, const C* x, const C* y, int64_t count, int64_t m, double p) {
  with_norm(p, [&]<Norm norm>() {
    for (int64_t k = 0; k < count; ++k) out[k] = distance<norm>(x, y + k * m, m, p);
    if (norm != Norm::euclidean) return;
    constexpr C least = std::numeric_limits<C>::min() * C(1 << 20);
    constexpr C most = std::numeric_limits<C>::max();
    for (int64_t k = 0; k < count; ++k) {
      const bool fits = out[k] > least && out[k] <= most;
      out[k] = fits ? std::sqrt(out[k]) : wide_distance(x, y + k * m, m);
    }
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

template <class C> constexpr DistanceLoops<C> loops() {
  return {.distances = distances<C>, .slopes = slopes<C>};
}

}  // namespace

extern const DistanceLoops<float> distances_float;
extern const DistanceLoops<double> distances_double;
const DistanceLoops<float> distances_float = loops<float>();
const DistanceLoops<double> distances_double = loops<double>();

}  // namespace clew::kernels::CLEW_ISA

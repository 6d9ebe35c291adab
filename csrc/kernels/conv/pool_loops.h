// The loops of pooling, along rows of windows and along the channels of one window, and what is
// compiled of them once per instruction set.
// May include: base, kernels/core/lanes.h.
// Invariant: functions have internal linkage: code for one instruction set never leaks into
// another's.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/dtype.h"
#include "kernels/core/lanes.h"

namespace clew::kernels {

// Runs of windows side by side, whose inputs lie in a piece of memory of their own.
struct PoolRuns {
  int64_t count, n;           // runs, and windows of each
  int64_t in_step, out_step;  // from one run to the next, of the inputs and of what is computed
  int64_t taps;
  const int64_t* at;  // where the inputs of each tap begin
};

namespace {

template <class T> using place_t = std::conditional_t<sizeof(compute_t<T>) <= 4, int32_t, int64_t>;

// Whether the loops for T run in vectors.
template <class T> constexpr bool has_lanes = std::is_floating_point_v<compute_t<T>>;

template <class T> constexpr T lowest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::lowest();
  else
    return -std::numeric_limits<T>::infinity();
}
template <class A> auto real_part_type() {
  if constexpr (is_complex_v<A>)
    return typename A::value_type{};
  else
    return A{};
}
// What sums of type A are divided by.
template <class A> using divisor_t = decltype(real_part_type<A>());

// ---- runs of windows side by side. Their inputs lie in a piece of memory of its own, sorted by
// the remainder of the column, so that a tap of neighbouring windows is a run of neighbours, too.

// Elements behind a run that its loops may read and write.
constexpr int64_t run_slack = 64;

template <int fixed_step, class A> void every_by(const A* x, int64_t step, int64_t n, A* to) {
  if (fixed_step) step = fixed_step;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) to[j] = x[j * step];
}
// to[j] = x[j * step].
template <class A> void every(const A* x, int64_t step, int64_t n, A* to) {
  if (step == 1) return every_by<1>(x, 1, n, to);
  if (step == 2) return every_by<2>(x, 2, n, to);
  if (step == 3) return every_by<3>(x, 3, n, to);
  every_by<0>(x, step, n, to);
}
template <int fixed_step, class A> void add_every_by(const A* x, int64_t step, int64_t n, A* to) {
  if (fixed_step) step = fixed_step;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) to[j * step] += x[j];
}
// to[j * step] += x[j].
template <class A> void add_every(const A* x, int64_t step, int64_t n, A* to) {
  if (step == 1) return add_every_by<1>(x, 1, n, to);
  if (step == 2) return add_every_by<2>(x, 2, n, to);
  add_every_by<0>(x, step, n, to);
}

// The greatest value of each window and its tap's place, -1 where all are the lowest; NaN counts as
// greatest.
template <class A>
void greatest_of_runs(const PoolRuns& r, const A* x, const place_t<A>* places, A* value,
                      place_t<A>* place) {
  using P = place_t<A>;
  for (int64_t i = 0; i < r.count; ++i) {
    if constexpr (!has_lanes<A>) {
      for (int64_t o = 0; o < r.n; ++o) value[o] = lowest<A>(), place[o] = -1;
      for (int64_t t = 0; t < r.taps; ++t) {
        const A* line = x + r.at[t];
#pragma GCC ivdep
        for (int64_t o = 0; o < r.n; ++o) {
          const bool take = line[o] > value[o];
          value[o] = take ? line[o] : value[o];
          place[o] = take ? places[t] : place[o];
        }
      }
    } else {
      constexpr int N = lane_count<A>;
      const auto vectors = [&]<int V>(int64_t c) {
        Lanes_t<A> top[V];
        Lanes_t<P> at[V];
        for (int u = 0; u < V; ++u) top[u] = spread(lowest<A>()), at[u] = spread(P(-1));
        for (int64_t t = 0; t < r.taps; ++t) {
          const A* line = x + r.at[t] + c;
          const Lanes_t<P> here = spread(places[t]);
          for (int u = 0; u < V; ++u) {
            const Lanes_t<A> v = load(line + u * N);
            const auto take = (v > top[u]) | (v != v);
            top[u] = take ? v : top[u];
            at[u] = take ? here : at[u];
          }
        }
        for (int u = 0; u < V; ++u)
          store(value + c + u * N, top[u]), store(place + c + u * N, at[u]);
      };
      int64_t c = 0;
      for (; c + 4 * N <= r.n; c += 4 * N) vectors.template operator()<4>(c);
      for (; c < r.n; c += N) vectors.template operator()<1>(c);
    }
    x += r.in_step, value += r.out_step, place += r.out_step;
  }
}
// Sums of many taps are sums of sums, whose error is smaller.
constexpr int64_t terms_of_sum = 32;

template <class A> void sums_of_runs(const PoolRuns& r, const A* x, A* sum) {
  for (int64_t i = 0; i < r.count; ++i) {
    if constexpr (!has_lanes<A>) {
      for (int64_t o = 0; o < r.n; ++o) sum[o] = A(0);
      for (int64_t t = 0; t < r.taps; ++t) {
        const A* line = x + r.at[t];
        for (int64_t o = 0; o < r.n; ++o) sum[o] += line[o];
      }
    } else {
      constexpr int N = lane_count<A>;
      const auto vectors = [&]<int V>(int64_t c) {
        Lanes_t<A> total[V] = {};
        for (int64_t begin = 0; begin < r.taps; begin += terms_of_sum) {
          Lanes_t<A> part[V] = {};
          const int64_t end = least(r.taps, begin + terms_of_sum);
          for (int64_t t = begin; t < end; ++t) {
            const A* line = x + r.at[t] + c;
            for (int u = 0; u < V; ++u) part[u] += load(line + u * N);
          }
          for (int u = 0; u < V; ++u) total[u] += part[u];
        }
        for (int u = 0; u < V; ++u) store(sum + c + u * N, total[u]);
      };
      int64_t c = 0;
      for (; c + 4 * N <= r.n; c += 4 * N) vectors.template operator()<4>(c);
      for (; c < r.n; c += N) vectors.template operator()<1>(c);
    }
    x += r.in_step, sum += r.out_step;
  }
}
// Adds each window's part to all of its taps.
template <class A> void spread_runs(const PoolRuns& r, const A* part, A* sums) {
  for (int64_t i = 0; i < r.count; ++i) {
    for (int64_t t = 0; t < r.taps; ++t) {
      A* line = sums + r.at[t];
#pragma GCC ivdep
      for (int64_t o = 0; o < r.n; ++o) line[o] += part[o];
    }
    part += r.out_step, sums += r.in_step;
  }
}

// ---- one window whose points, `taps`, have n of C channels each, one after the other. A few
// vectors of channels stay in registers while the points are visited.

template <class T, class A> [[gnu::always_inline]] inline Lanes_t<A> load_as(const T* p) {
  if constexpr (std::is_same_v<T, A>) {
    return load(p);
  } else {
    A room[lane_count<A>];
    for (int l = 0; l < lane_count<A>; ++l) room[l] = static_cast<A>(p[l]);
    return load(room);
  }
}
// Calls vectors<V>(first channel) for blocks of V vectors that cover n channels, or one(channel)
// where there are fewer than a vector has lanes. The last vectors may begin before the others end.
template <class A, class F, class G>
[[gnu::always_inline]] inline void each_block(int64_t n, F&& vectors, G&& one) {
  constexpr int N = lane_count<A>;
  int64_t c = 0;
  if (n < N) {
    for (; c < n; ++c) one(c);
    return;
  }
  for (; c + 4 * N <= n; c += 4 * N) vectors.template operator()<4>(c);
  for (; c + N <= n; c += N) vectors.template operator()<1>(c);
  if (c < n) vectors.template operator()<1>(n - N);
}

// A window without points has the given corner.
template <class T>
void greatest_of_taps(const T* x, const int64_t* taps, int64_t count, int64_t corner, int64_t C,
                      int64_t n, T* values, int64_t* indices) {
  using A = compute_t<T>;
  using P = place_t<T>;
  const auto first = static_cast<P>(count == 0 ? corner : taps[0]);
  const auto one = [&](int64_t c) {
    A value = lowest<A>();
    P place = first;
    for (int64_t t = 0; t < count; ++t) {
      const auto v = static_cast<A>(x[taps[t] * C + c]);
      const bool take = (v > value) | (v != v);
      value = take ? v : value;
      place = take ? static_cast<P>(taps[t]) : place;
    }
    values[c] = static_cast<T>(value);
    indices[c] = place;
  };
  if constexpr (!has_lanes<T>) {
    for (int64_t c = 0; c < n; ++c) one(c);
  } else {
    constexpr int N = lane_count<A>;
    const auto vectors = [&]<int V>(int64_t c) {
      Lanes_t<A> value[V];
      Lanes_t<P> place[V];
      for (int u = 0; u < V; ++u) value[u] = spread(lowest<A>()), place[u] = spread(first);
      for (int64_t t = 0; t < count; ++t) {
        const T* line = x + taps[t] * C + c;
        const Lanes_t<P> at = spread(static_cast<P>(taps[t]));
        for (int u = 0; u < V; ++u) {
          const Lanes_t<A> v = load_as<T, A>(line + u * N);
          const auto take = (v > value[u]) | (v != v);
          value[u] = take ? v : value[u];
          place[u] = take ? at : place[u];
        }
      }
      for (int u = 0; u < V; ++u) {
        for (int l = 0; l < N; ++l) values[c + u * N + l] = static_cast<T>(value[u][l]);
        for (int l = 0; l < N; ++l) indices[c + u * N + l] = place[u][l];
      }
    };
    each_block<A>(n, vectors, one);
  }
}
template <class T>
void mean_of_taps(const T* x, const int64_t* taps, int64_t count, int64_t C, int64_t n,
                  double divisor, T* y) {
  using A = accumulate_t<T>;
  const auto by = static_cast<divisor_t<A>>(divisor);
  const auto one = [&](int64_t c) {
    A sum(0);
    for (int64_t begin = 0; begin < count; begin += terms_of_sum) {
      A part(0);
      const int64_t end = least(count, begin + terms_of_sum);
      for (int64_t t = begin; t < end; ++t) part += static_cast<A>(x[taps[t] * C + c]);
      sum += part;
    }
    y[c] = static_cast<T>(sum / by);
  };
  if constexpr (!has_lanes<T>) {
    for (int64_t c = 0; c < n; ++c) one(c);
  } else {
    constexpr int N = lane_count<A>;
    const auto vectors = [&]<int V>(int64_t c) {
      Lanes_t<A> sum[V] = {};
      for (int64_t begin = 0; begin < count; begin += terms_of_sum) {
        Lanes_t<A> part[V] = {};
        const int64_t end = least(count, begin + terms_of_sum);
        for (int64_t t = begin; t < end; ++t) {
          const T* line = x + taps[t] * C + c;
          for (int u = 0; u < V; ++u) part[u] += load_as<T, A>(line + u * N);
        }
        for (int u = 0; u < V; ++u) sum[u] += part[u];
      }
      for (int u = 0; u < V; ++u) {
        const Lanes_t<A> mean = sum[u] / by;
        for (int l = 0; l < N; ++l) y[c + u * N + l] = static_cast<T>(mean[l]);
      }
    };
    each_block<A>(n, vectors, one);
  }
}
constexpr int64_t channel_block = 64;

// Adds g / divisor to every point; one lies `step` elements after the other.
template <class T>
void spread_to_taps(const T* g, const int64_t* taps, int64_t count, int64_t step, int64_t n,
                    double divisor, accumulate_t<T>* sums) {
  using A = accumulate_t<T>;
  A part[channel_block];
  const auto by = static_cast<divisor_t<A>>(divisor);
  for (int64_t c = 0; c < n; c += channel_block) {
    const int64_t m = least(channel_block, n - c);
    for (int64_t k = 0; k < m; ++k) part[k] = static_cast<A>(g[c + k]) / by;
    for (int64_t t = 0; t < count; ++t) {
      A* line = sums + taps[t] * step + c;
#pragma GCC ivdep
      for (int64_t k = 0; k < m; ++k) line[k] += part[k];
    }
  }
}

}  // namespace

using PoolTypes = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, f16, bf16, float, double>;
using MeanPoolTypes = TypeList<int64_t, f16, bf16, float, double, c64, c128>;

// The loops along channels for elements of a type that both kinds of pooling take.
template <class T> struct ChannelLoops {
  decltype(&greatest_of_taps<T>) greatest;
  decltype(&mean_of_taps<T>) mean;
  decltype(&spread_to_taps<T>) spread;
};

// The loops along runs of windows.
template <class A> struct RunLoops {
  decltype(&every<A>) every;
  decltype(&add_every<A>) add_every;
  decltype(&sums_of_runs<A>) sums;
  decltype(&spread_runs<A>) spread;
};
template <class A>
constexpr RunLoops<A> run_loops = {every<A>, add_every<A>, sums_of_runs<A>, spread_runs<A>};

struct PoolLoops {
  RunLoops<float> runs_float;
  RunLoops<double> runs_double;
  decltype(&greatest_of_runs<float>) greatest_float;
  decltype(&greatest_of_runs<double>) greatest_double;
  ChannelLoops<float> channels_float;
  ChannelLoops<double> channels_double;
  ChannelLoops<bf16> channels_bf16;
  ChannelLoops<f16> channels_f16;
};

}  // namespace clew::kernels

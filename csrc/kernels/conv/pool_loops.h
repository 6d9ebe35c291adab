// The loops of pooling, along a row of windows and along the channels of one window, and what is
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
namespace {

template <class T> using place_t = std::conditional_t<sizeof(compute_t<T>) <= 4, int32_t, int64_t>;

template <int fixed_stride, class T>
void max_line_by(const T* x, int64_t first, int64_t stride, int64_t n, compute_t<T>* value,
                 place_t<T>* place) {
  using P = place_t<T>;
  if (fixed_stride) stride = fixed_stride;
#pragma GCC ivdep
  for (int64_t o = 0; o < n; ++o) {
    const auto v = static_cast<compute_t<T>>(x[first + o * stride]);
    const bool take = (v > value[o]) | (v != v);
    value[o] = take ? v : value[o];
    place[o] = take ? static_cast<P>(first + o * stride) : place[o];
  }
}
// Of n outputs, whose window element is x[first], x[first + stride] ...: the greatest value so far
// and its place; NaN counts as greatest.
template <class T>
void max_line(const T* x, int64_t first, int64_t stride, int64_t n, compute_t<T>* value,
              place_t<T>* place) {
  if (stride == 1) return max_line_by<1>(x, first, 1, n, value, place);
  if (stride == 2) return max_line_by<2>(x, first, 2, n, value, place);
  if (stride == 3) return max_line_by<3>(x, first, 3, n, value, place);
  if (stride == 4) return max_line_by<4>(x, first, 4, n, value, place);
  max_line_by<0>(x, first, stride, n, value, place);
}

// Whether the loops along channels of T run in vectors.
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
// Sums of many points are sums of sums, whose error is smaller.
template <class T>
void mean_of_taps(const T* x, const int64_t* taps, int64_t count, int64_t C, int64_t n,
                  double divisor, T* y) {
  using A = accumulate_t<T>;
  constexpr int64_t terms = 32;
  const auto by = static_cast<divisor_t<A>>(divisor);
  const auto one = [&](int64_t c) {
    A sum(0);
    for (int64_t begin = 0; begin < count; begin += terms) {
      A part(0);
      const int64_t end = least(count, begin + terms);
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
      for (int64_t begin = 0; begin < count; begin += terms) {
        Lanes_t<A> part[V] = {};
        const int64_t end = least(count, begin + terms);
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

// Rows of other types, and of 16-bit floats, are mostly too short for longer vectors.
template <class T>
using MaxLine = void (*)(const T* x, int64_t first, int64_t stride, int64_t n, compute_t<T>* value,
                         place_t<T>* place);
struct PoolLoops {
  MaxLine<float> of_float;
  MaxLine<double> of_double;
  MaxLine<int64_t> of_int64;
  ChannelLoops<float> channels_float;
  ChannelLoops<double> channels_double;
  ChannelLoops<bf16> channels_bf16;
  ChannelLoops<f16> channels_f16;
};

}  // namespace clew::kernels

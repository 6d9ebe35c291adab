// Vectors as wide as the instruction set has them, for loops that keep their sums in registers.
// May include: the standard library.
// Invariant: everything has internal linkage and is inlined: code for one instruction set never
// leaks into another's.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

namespace clew::kernels {
namespace {

#if defined(__AVX512F__)
constexpr int lane_bytes = 64;
#elif defined(__AVX2__)
constexpr int lane_bytes = 32;
#else
constexpr int lane_bytes = 16;
#endif

template <class C> struct LanesOf { typedef C type __attribute__((vector_size(lane_bytes))); };
template <class C> using Lanes_t = typename LanesOf<C>::type;
template <class C> constexpr int lane_count = lane_bytes / static_cast<int>(sizeof(C));

template <class C> [[gnu::always_inline]] inline Lanes_t<C> load(const C* p) {
  Lanes_t<C> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class C> [[gnu::always_inline]] inline void store(C* p, const Lanes_t<C>& v) {
  std::memcpy(p, &v, sizeof v);
}
template <class C> [[gnu::always_inline]] inline Lanes_t<C> spread(C v) { return v - Lanes_t<C>{}; }
// The standard library's forms are functions that could be shared with other instruction sets.
constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// f<0>(), f<1>() ... f<N - 1>().
template <class F, int... I>
[[gnu::always_inline]] inline void unroll_impl(F&& f, std::integer_sequence<int, I...>) {
  (f.template operator()<I>(), ...);
}
template <int N, class F> [[gnu::always_inline]] inline void unroll(F&& f) {
  unroll_impl(f, std::make_integer_sequence<int, N>{});
}

// The sum of all lanes, from the first one to the last.
template <class C> [[gnu::always_inline]] inline C sum_in_turn(const Lanes_t<C>& v) {
  C sum = 0;
  for (int l = 0; l < lane_count<C>; ++l) sum += v[l];
  return sum;
}
// All lanes as B, joined in pairs: a chain of them would wait for each other.
template <class B, class C, class F>
[[gnu::always_inline]] inline B join_lanes(const Lanes_t<C>& v, F&& join) {
  B room[lane_count<C>];
  for (int l = 0; l < lane_count<C>; ++l) room[l] = static_cast<B>(v[l]);
  for (int half = lane_count<C> / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) room[l] = join(room[l], room[l + half]);
  }
  return room[0];
}
// Each lane where the one at distance `half` was.
template <int half, class V, int... I>
[[gnu::always_inline]] inline V other_half(V v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ half)...);
}
// Joins the lanes of each `half * 2` neighbours without leaving the registers; all of these lanes
// get the result.
template <int half, class V, class F> [[gnu::always_inline]] inline V join_groups(V v, F&& join) {
  if constexpr (half == 0) {
    return v;
  } else {
    constexpr auto all = std::make_integer_sequence<int, sizeof(V) / sizeof(v[0])>{};
    return join_groups<half / 2>(join(v, other_half<half>(v, all)), join);
  }
}
// All lanes as one.
template <class C, class F> [[gnu::always_inline]] inline C join_all_lanes(Lanes_t<C> v, F&& join) {
  return join_groups<lane_count<C> / 2>(v, join)[0];
}
[[gnu::always_inline]] inline double sum_of_doubles(Lanes_t<double> v) {
  return join_all_lanes<double>(v, [](auto a, auto b) { return a + b; });
}
template <class C> [[gnu::always_inline]] inline double sum_of_lanes(const Lanes_t<C>& v) {
  if constexpr (sizeof(C) == sizeof(double)) {
    return sum_of_doubles(v);
  } else {
    typedef C Half __attribute__((vector_size(lane_bytes / 2)));
    Half low, high;
    std::memcpy(&low, &v, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
    return sum_of_doubles(__builtin_convertvector(low, Lanes_t<double>) +
                          __builtin_convertvector(high, Lanes_t<double>));
  }
}

// K sums over `planes` pieces of `size` neighbours at distance `step`: at each place, vec(i, acc)
// adds the terms of one vector to acc[0..K), one(i, acc) those of one element. For blocks of a few
// thousand terms: their sums run in lanes of C, and are added up in double.
template <class C, int K, class F, class G>
[[gnu::always_inline]] inline void block_sums(int64_t planes, int64_t step, int64_t size,
                                              double (&total)[K], F&& vec, G&& one) {
  constexpr int N = lane_count<C>;
  constexpr int U = 4;
  Lanes_t<C> acc[U][K] = {};
  for (int64_t p = 0; p < planes; ++p) {
    int64_t i = p * step, end = i + size;
    for (; i + U * N <= end; i += U * N) {
      vec(i, acc[0]);
      vec(i + N, acc[1]);
      vec(i + 2 * N, acc[2]);
      vec(i + 3 * N, acc[3]);
    }
    for (; i + N <= end; i += N) vec(i, acc[0]);
    for (; i < end; ++i) one(i, total);
  }
  for (int k = 0; k < K; ++k)
    total[k] += sum_of_lanes<C>((acc[0][k] + acc[1][k]) + (acc[2][k] + acc[3][k]));
}

}  // namespace
}  // namespace clew::kernels

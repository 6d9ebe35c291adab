// The vector loops of reductions, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/core/lanes.h"
#include "kernels/reduce/reduce_loops.h"

namespace clew::kernels::CLEW_ISA {
namespace {

// How elements are read: C is what is computed with.
template <class T> struct AsTheyAre {
  using C = T;
  [[gnu::always_inline]] static Lanes_t<C> lanes(const T* p) { return load(p); }
  [[gnu::always_inline]] static C one(const T* p) { return *p; }
};
// Widens narrow integers to W, in which the sum of a block does not overflow.
template <class T, class W> struct Widened {
  using C = W;
  [[gnu::always_inline]] static Lanes_t<C> lanes(const void* p) {
    typedef T Few __attribute__((vector_size(lane_count<W> * sizeof(T))));
    Few v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, Lanes_t<C>);
  }
  [[gnu::always_inline]] static C one(const void* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return static_cast<C>(v);
  }
};
template <class T> struct Reader : AsTheyAre<T> {};
template <> struct Reader<uint8_t> : Widened<uint8_t, uint32_t> {};
template <> struct Reader<bool> : Widened<uint8_t, uint16_t> {};
template <> struct Reader<int32_t> : Widened<int32_t, uint64_t> {};
template <> struct Reader<int64_t> {
  using C = uint64_t;
  [[gnu::always_inline]] static Lanes_t<C> lanes(const int64_t* p) {
    return load(reinterpret_cast<const uint64_t*>(p));
  }
  [[gnu::always_inline]] static C one(const int64_t* p) { return static_cast<C>(*p); }
};
template <> struct Reader<bf16> {
  using C = float;
  [[gnu::always_inline]] static Lanes_t<C> lanes(const bf16* p) {
    constexpr int N = lane_count<float>;
    typedef uint16_t Half __attribute__((vector_size(N * 2)));
    typedef uint32_t Bits __attribute__((vector_size(N * 4)));
    Half h;
    std::memcpy(&h, p, sizeof h);
    Bits bits = __builtin_convertvector(h, Bits) << 16;
    Lanes_t<float> v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
  [[gnu::always_inline]] static C one(const bf16* p) {
    return std::bit_cast<float>(static_cast<uint32_t>(p->bits) << 16);
  }
};

template <> struct Reader<f16> {
  using C = float;
  [[gnu::always_inline]] static Lanes_t<C> lanes(const f16* p) {
    Lanes_t<C> v;
#if defined(__AVX512F__)
    v = _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__F16C__)
    v = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
    for (int l = 0; l < lane_count<C>; ++l) v[l] = static_cast<float>(p[l]);
#endif
    return v;
  }
  [[gnu::always_inline]] static C one(const f16* p) { return static_cast<float>(*p); }
};

// Sums of f(x).
struct Plain {
  template <class V> [[gnu::always_inline]] static V of(V v) { return v; }
};
struct Absolute {
  template <class V> [[gnu::always_inline]] static V of(V v) { return v < 0 ? -v : v; }
};
struct Square {
  template <class V> [[gnu::always_inline]] static V of(V v) { return v * v; }
};
template <class F> struct Sum {
  template <class T> using Source = Reader<T>;
  template <class C> static constexpr C neutral = C(0);
  template <class V> [[gnu::always_inline]] static V term(V v) { return F::of(v); }
  template <class V> [[gnu::always_inline]] static V join(V a, V b) { return a + b; }
};
struct Product {
  template <class T> using Source = AsTheyAre<T>;
  template <class C> static constexpr C neutral = C(1);
  template <class V> [[gnu::always_inline]] static V term(V v) { return v; }
  template <class V> [[gnu::always_inline]] static V join(V a, V b) { return a * b; }
};
// NaN wins: once there, no comparison replaces it.
template <bool Largest> struct Extremum {
  template <class T>
  using Source =
      std::conditional_t<sizeof(T) == 2 && !std::is_integral_v<T>, Reader<T>, AsTheyAre<T>>;
  template <class C>
  static constexpr C most = std::numeric_limits<C>::has_infinity
                                ? std::numeric_limits<C>::infinity()
                                : std::numeric_limits<C>::max();
  template <class C>
  static constexpr C least = std::numeric_limits<C>::has_infinity
                                 ? -most<C>
                                 : std::numeric_limits<C>::lowest();
  template <class C> static constexpr C neutral = Largest ? least<C> : most<C>;
  template <class V> [[gnu::always_inline]] static V term(V v) { return v; }
  template <class V> [[gnu::always_inline]] static V join(V a, V b) {
    const V c = better(a, b);
    return b != b ? b : c;
  }

 private:
  // The better of two; a where either is NaN. Uses a single instruction if there is one: the
  // compiler would make a comparison and a selection, which short rows wait for.
  template <class V> [[gnu::always_inline]] static V better(V a, V b) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<V, Lanes_t<float>>) {
      const auto x = reinterpret_cast<__m512>(b), y = reinterpret_cast<__m512>(a);
      return reinterpret_cast<V>(Largest ? _mm512_maskz_max_ps(0xffff, x, y)
                                         : _mm512_maskz_min_ps(0xffff, x, y));
    } else if constexpr (std::is_same_v<V, Lanes_t<double>>) {
      const auto x = reinterpret_cast<__m512d>(b), y = reinterpret_cast<__m512d>(a);
      return reinterpret_cast<V>(Largest ? _mm512_maskz_max_pd(0xff, x, y)
                                         : _mm512_maskz_min_pd(0xff, x, y));
    }
#endif
    return Largest ? (b > a ? b : a) : (b < a ? b : a);
  }
};
// Sums of what is not NaN.
struct Present {
  template <class V> [[gnu::always_inline]] static V of(V v) { return v == v ? v : V{}; }
};

// The extremum of each of V vectors of columns and the first row that holds it, over n rows.
template <bool Largest, int V, class T>
[[gnu::always_inline]] inline void arg_some_columns(const T* p, int64_t step, int64_t n, T* best,
                                                    int64_t* where) {
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  constexpr int N = lane_count<T>;
  Lanes_t<T> values[V];
  Lanes_t<I> places[V];
  for (int k = 0; k < V; ++k) {
    values[k] = load(p + k * N);
    places[k] = Lanes_t<I>{};
  }
  for (int64_t i = 1; i < n; ++i) {
    p += step;
    const Lanes_t<I> here = spread(static_cast<I>(i));
    for (int k = 0; k < V; ++k) {
      const Lanes_t<T> v = load(p + k * N);
      const auto better = Largest ? v > values[k] : v < values[k];
      const auto take = better | ((v != v) & (values[k] == values[k]));
      values[k] = take ? v : values[k];
      places[k] = take ? here : places[k];
    }
  }
  for (int k = 0; k < V; ++k) {
    store(best + k * N, values[k]);
    for (int l = 0; l < N; ++l) where[k * N + l] = places[k][l];
  }
}
template <bool Largest, class T>
void arg_columns(const T* p, int64_t step, int64_t n, int64_t w, T* best, int64_t* where) {
  constexpr int N = lane_count<T>;
  int64_t j = 0;
  for (; j + 4 * N <= w; j += 4 * N)
    arg_some_columns<Largest, 4>(p + j, step, n, best + j, where + j);
  for (; j + N <= w; j += N) arg_some_columns<Largest, 1>(p + j, step, n, best + j, where + j);
  for (; j < w; ++j) {
    T value = p[j];
    int64_t place = 0;
    for (int64_t i = 1; i < n; ++i) {
      const T v = p[i * step + j];
      const bool better = Largest ? v > value : v < value;
      if (!(better | ((v != v) & (value == value)))) continue;
      value = v;
      place = i;
    }
    best[j] = value;
    where[j] = place;
  }
}

constexpr int row_lanes = 8;    // accumulator vectors side by side
constexpr int row_rounds = 16;  // additions in a lane before it is added to the total

// The first or the second n elements of a vector.
template <int first, class V, int... I>
[[gnu::always_inline]] inline auto part_of(V v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (first + I)...);
}
template <class Op, int n, class V> [[gnu::always_inline]] inline auto join_halves(V v) {
  if constexpr (n == 2) {
    return Op::join(v[0], v[1]);
  } else {
    using Half = std::make_integer_sequence<int, n / 2>;
    return join_halves<Op, n / 2>(Op::join(part_of<0>(v, Half()), part_of<n / 2>(v, Half())));
  }
}
// What join_lanes() gives, without leaving the registers where two of them hold all lanes as B.
template <class Op, class B, class C>
[[gnu::always_inline]] inline B join_lanes_of(const Lanes_t<C>& v) {
  constexpr int N = lane_count<C>;
  if constexpr (N >= 4 && sizeof(B) == 2 * sizeof(C)) {
    typedef B Wide __attribute__((vector_size(N / 2 * sizeof(B))));
    using Half = std::make_integer_sequence<int, N / 2>;
    return join_halves<Op, N / 2>(
        Op::join(__builtin_convertvector(part_of<0>(v, Half()), Wide),
                 __builtin_convertvector(part_of<N / 2>(v, Half()), Wide)));
  } else if constexpr (N >= 2 && sizeof(B) == sizeof(C)) {
    typedef B Wide __attribute__((vector_size(N * sizeof(B))));
    return join_halves<Op, N>(__builtin_convertvector(v, Wide));
  } else {
    return join_lanes<B, C>(v, [](B a, B b) { return Op::join(a, b); });
  }
}

template <class Op, class C, class B>
[[gnu::always_inline]] inline void join_all(Lanes_t<C> (&acc)[row_lanes], B& total) {
  for (int half = row_lanes / 2; half > 0; half /= 2) {
    for (int u = 0; u < half; ++u) acc[u] = Op::join(acc[u], acc[u + half]);
  }
  total = Op::join(total, join_lanes_of<Op, B, C>(acc[0]));
}

// A long row is read in four places at once: from memory that is a third faster than one after the
// other. (Processors with AVX-512 fetch ahead well enough: there it was a third slower.) Returns
// how many elements were taken.
#ifdef __AVX512F__
constexpr int64_t long_row_bytes = INT64_MAX;
#else
constexpr int64_t long_row_bytes = 16384;
#endif
template <class Op, class T, class B>
void at_places(const T* p, int64_t apart, int64_t length, B& total) {
  using R = typename Op::template Source<T>;
  using C = typename R::C;
  constexpr int N = lane_count<C>, each = row_lanes / row_places;
  for (int64_t i = 0; i < length;) {
    Lanes_t<C> acc[row_lanes];
    for (int u = 0; u < row_lanes; ++u) acc[u] = spread(Op::template neutral<C>);
    const int64_t most = i + row_rounds * each * N, end = length < most ? length : most;
    for (; i < end; i += each * N) {
      for (int u = 0; u < row_lanes; ++u) {
        const T* at = p + u / each * apart + i + u % each * N;
        acc[u] = Op::join(acc[u], Op::term(R::lanes(at)));
      }
    }
    join_all<Op, C>(acc, total);
  }
}
template <class Op, class T>
constexpr int64_t place_step =
    row_lanes / row_places* lane_count<typename Op::template Source<T>::C>;
template <class Op, class T, class B> int64_t long_row(const T* p, int64_t n, B& total) {
  const int64_t length = n / row_places / place_step<Op, T> * place_step<Op, T>;
  at_places<Op>(p, length, length, total);
  return row_places * length;
}

// Elements at the end of a row, fewer than a vector has, that are not joined one by one.
constexpr int64_t few_left = 4;
template <class C, int... I>
[[gnu::always_inline]] inline auto from_place(int64_t n, std::integer_sequence<int, I...>) {
  using U = std::conditional_t<sizeof(C) == 2, int16_t,
                               std::conditional_t<sizeof(C) == 4, int32_t, int64_t>>;
  const Lanes_t<U> places = {I...};
  return places >= spread(static_cast<U>(n));
}
// Whether fewer elements than a vector has can be loaded.
template <class T>
constexpr bool has_masks =
#if defined(__AVX512F__)
    std::is_same_v<T, float> || std::is_same_v<T, double>;
#else
    false;
#endif
// The last n of a row's elements, from p on, and `none` in other lanes.
template <class R, class T, class V>
[[gnu::always_inline]] inline V last_lanes(const T* p, int64_t n, V none) {
  using C = typename R::C;
  constexpr int N = lane_count<C>;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return reinterpret_cast<V>(_mm512_mask_loadu_ps(reinterpret_cast<__m512>(none),
                                                    static_cast<__mmask16>((1u << n) - 1u), p));
  else if constexpr (std::is_same_v<T, double>)
    return reinterpret_cast<V>(_mm512_mask_loadu_pd(reinterpret_cast<__m512d>(none),
                                                    static_cast<__mmask8>((1u << n) - 1u), p));
#endif
  // Some of those before them are read again.
  const V v = R::lanes(p + n - N);
  return from_place<C>(N - n, std::make_integer_sequence<int, N>()) ? v : none;
}

template <class Op, class T, class B> void row(const T* p, int64_t n, B& total) {
  using R = typename Op::template Source<T>;
  using C = typename R::C;
  constexpr int N = lane_count<C>;
  constexpr int U = row_lanes;
  constexpr int64_t block = row_rounds * U * N;
  const Lanes_t<C> none = spread(Op::template neutral<C>);
  int64_t i = n * static_cast<int64_t>(sizeof(T)) < long_row_bytes ? 0 : long_row<Op>(p, n, total);
  while (n - i >= N) {
    Lanes_t<C> acc[U];
    for (int u = 0; u < U; ++u) acc[u] = none;
    int64_t end = n - i > block ? i + block : n;
    for (; i + U * N <= end; i += U * N) {
      for (int u = 0; u < U; ++u) acc[u] = Op::join(acc[u], Op::term(R::lanes(p + i + u * N)));
    }
    for (; i + 4 * N <= end; i += 4 * N) {
      for (int u = 0; u < 4; ++u) acc[u] = Op::join(acc[u], Op::term(R::lanes(p + i + u * N)));
    }
    for (; i + N <= end; i += N) acc[0] = Op::join(acc[0], Op::term(R::lanes(p + i)));
    if (end == n && n - i >= few_left) {
      acc[1] = Op::join(acc[1], Op::term(last_lanes<R>(p + i, n - i, none)));
      i = n;
    }
    join_all<Op, C>(acc, total);
  }
  if (has_masks<T> && n - i >= few_left) {
    const Lanes_t<C> v = last_lanes<R>(p + i, n - i, none);
    total = Op::join(total, join_lanes_of<Op, B, C>(Op::term(v)));
    return;
  }
  for (; i < n; ++i) total = Op::join(total, static_cast<B>(Op::term(R::one(p + i))));
}

// V vectors of columns at once, or a single column when V is 0.
template <class Op, int V, class T, class B>
[[gnu::always_inline]] inline void some_columns(const T* const* rows, int64_t count, int64_t j,
                                                B* total) {
  using R = typename Op::template Source<T>;
  using C = typename R::C;
  constexpr int N = lane_count<C>;
  if constexpr (V == 0) {
    C acc = Op::template neutral<C>;
    for (int64_t r = 0; r < count; ++r) acc = Op::join(acc, Op::term(R::one(rows[r] + j)));
    total[j] = Op::join(total[j], static_cast<B>(acc));
  } else {
    Lanes_t<C> acc[V];
    for (int k = 0; k < V; ++k) acc[k] = Op::term(R::lanes(rows[0] + j + k * N));
    for (int64_t r = 1; r < count; ++r) {
      for (int k = 0; k < V; ++k)
        acc[k] = Op::join(acc[k], Op::term(R::lanes(rows[r] + j + k * N)));
    }
    C room[V * N];
    for (int k = 0; k < V; ++k) store<C>(room + k * N, acc[k]);
    B* to = total + j;
    for (int l = 0; l < V * N; ++l) to[l] = Op::join(to[l], static_cast<B>(room[l]));
  }
}
template <class Op, class T, class B>
void columns(const T* const* rows, int64_t count, int64_t w, B* total) {
  constexpr int N = lane_count<typename Op::template Source<T>::C>;
  int64_t j = 0;
  for (; j + 4 * N <= w; j += 4 * N) some_columns<Op, 4>(rows, count, j, total);
  for (; j + N <= w; j += N) some_columns<Op, 1>(rows, count, j, total);
  for (; j < w; ++j) some_columns<Op, 0>(rows, count, j, total);
}

// Complex numbers are pairs of reals: lanes take turns, columns are twice as many.
template <class R> void pair_row(const std::complex<R>* p, int64_t n, c128& total) {
  constexpr int N = lane_count<R>, U = 4;
  auto* q = reinterpret_cast<const R*>(p);
  double sums[2] = {};
  int64_t i = 0;
  while (2 * n - i >= U * N) {
    Lanes_t<R> acc[U] = {};
    const int64_t block = i + 2 * row_rounds * U * N, end = block < 2 * n ? block : 2 * n;
    for (; i + U * N <= end; i += U * N)
      for (int u = 0; u < U; ++u) acc[u] += load(q + i + u * N);
    R room[N];
    store<R>(room, (acc[0] + acc[1]) + (acc[2] + acc[3]));
    for (int l = 0; l < N; ++l) sums[l % 2] += static_cast<double>(room[l]);
  }
  for (; i < 2 * n; ++i) sums[i % 2] += static_cast<double>(q[i]);
  total += c128(sums[0], sums[1]);
}
template <class R>
void pair_columns(const std::complex<R>* const* rows, int64_t count, int64_t w, c128* total) {
  columns<Sum<Plain>>(reinterpret_cast<const R* const*>(rows), count, 2 * w,
                      reinterpret_cast<double*>(total));
}

// ---- Sums of a few lines, in single precision and in the order in which PyTorch adds ------------
// Terms go round four sums, side by side in vectors of eight where they lie so; sixteen terms of
// each are added up before they are added to what came before, and so are sixteen of those. The
// order is that of vectors of eight floats on every processor.
typedef float Eight __attribute__((vector_size(32)));
[[gnu::always_inline]] inline void read(const float* from, float& v) { v = *from; }
[[gnu::always_inline]] inline void read(const float* from, Eight& v) {
  std::memcpy(&v, from, sizeof v);
}

// Adds C sums of n terms each; those of one turn are `apart`, turns are `step` elements apart.
template <int C, class V>
[[gnu::always_inline]] inline void chains(const float* p, int64_t apart, int64_t step, int64_t n,
                                          V (&sum)[C]) {
  constexpr int levels = 4;
  constexpr int64_t turns = 16;
  for (int c = 0; c < C; ++c) sum[c] = V{};
  auto add = [&](int64_t count) __attribute__((always_inline)) {
    for (; count > 0; --count, p += step) {
      for (int c = 0; c < C; ++c) {
        V v;
        read(p + c * apart, v);
        sum[c] += v;
      }
    }
  };
  if (n < turns) return add(n);
  V above[levels][C] = {};
  for (int64_t i = turns; i <= n; i += turns) {
    add(turns);
    for (int c = 0; c < C; ++c) {
      above[1][c] += sum[c];
      sum[c] = V{};
    }
    int64_t full = i / turns;
    for (int k = 2; k < levels && full % turns == 0; ++k, full /= turns) {
      for (int c = 0; c < C; ++c) {
        above[k][c] += above[k - 1][c];
        above[k - 1][c] = V{};
      }
    }
  }
  add(n % turns);
  for (int k = 1; k < levels; ++k)
    for (int c = 0; c < C; ++c) sum[c] += above[k][c];
}
// The sum of n terms (each a number or a vector) that are `step` elements apart.
template <class V>
[[gnu::always_inline]] inline void line(const float* p, int64_t step, int64_t n, V& total) {
  constexpr int C = 4;
  V sum[C];
  chains(p, step, C * step, n / C, sum);
  for (int64_t i = n / C * C; i < n; ++i) {
    V v;
    read(p + i * step, v);
    sum[0] += v;
  }
  total = sum[0] + sum[1] + sum[2] + sum[3];
}
// The lanes of eight vectors become vectors of one lane each.
[[gnu::always_inline]] inline void turn_eight(Eight (&v)[8]) {
  for (int step = 0; step < 3; ++step) {  // each interleaves the two halves of the list
    Eight w[8];
    for (int i = 0; i < 4; ++i) {
      w[2 * i] = __builtin_shufflevector(v[i], v[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      w[2 * i + 1] = __builtin_shufflevector(v[i], v[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; ++i) v[i] = w[i];
  }
}
// Eight lines of 8 to 31 terms that follow each other: their last additions side by side.
[[gnu::always_inline]] inline void eight_lines(const float* from, int64_t count, float* to) {
  constexpr int64_t W = 8;
  Eight lanes[W], sum = {};
  for (int64_t r = 0; r < W; ++r) {
    lanes[r] = Eight{};
    for (int64_t i = 0; i + W <= count; i += W) {
      Eight v;
      read(from + r * count + i, v);
      lanes[r] += v;
    }
  }
  for (int64_t i = count / W * W; i < count; ++i)
    for (int64_t r = 0; r < W; ++r) sum[r] += from[r * count + i];
  turn_eight(lanes);
  for (const Eight& lane : lanes) sum += lane;
  std::memcpy(to, &sum, sizeof sum);
}
void few_sums(const float* from, int64_t outer, int64_t count, int64_t inner, float* to) {
  constexpr int64_t W = 8;
  if (inner == 1 && count >= W && count < 4 * W)
    for (; outer >= W; outer -= W, from += W * count, to += W) eight_lines(from, count, to);
  for (int64_t o = 0; o < outer; ++o, from += count * inner, to += inner) {
    if (inner == 1) {
      if (count < W) {
        line(from, 1, count, *to);
        continue;
      }
      Eight lanes;
      line(from, W, count / W, lanes);
      float sum = 0;
      for (int64_t i = count / W * W; i < count; ++i) sum += from[i];
      for (int l = 0; l < W; ++l) sum += lanes[l];
      *to = sum;
      continue;
    }
    int64_t j = 0;
    if (inner >= W) {
      for (; j + 4 * W <= inner; j += 4 * W) {
        Eight sum[4];
        chains(from + j, W, inner, count, sum);
        std::memcpy(to + j, sum, sizeof sum);
      }
      for (; j + W <= inner; j += W) {
        Eight sum;
        line(from + j, inner, count, sum);
        std::memcpy(to + j, &sum, sizeof sum);
      }
    } else {
      for (; j + 4 <= inner; j += 4) {
        float sum[4];
        chains(from + j, 1, inner, count, sum);
        std::memcpy(to + j, sum, sizeof sum);
      }
    }
    for (; j < inner; ++j) line(from + j, inner, count, to[j]);
  }
}

template <class Op, class T, class B> constexpr ReduceLoops<T, B> loops() {
  return {.row = row<Op, T, B>,
          .columns = columns<Op, T, B>,
          .at_places = at_places<Op, T, B>,
          .step = place_step<Op, T>,
          .block = row_rounds * place_step<Op, T>,
          .long_row = long_row_bytes / static_cast<int64_t>(sizeof(T))};
}

}  // namespace

extern const ReduceTable reduce_loops;
const ReduceTable reduce_loops = {.sum_float = loops<Sum<Plain>, float, double>(),
                                  .abs_float = loops<Sum<Absolute>, float, double>(),
                                  .squares_float = loops<Sum<Square>, float, double>(),
                                  .sum_double = loops<Sum<Plain>, double, double>(),
                                  .abs_double = loops<Sum<Absolute>, double, double>(),
                                  .squares_double = loops<Sum<Square>, double, double>(),
                                  .sum_bf16 = loops<Sum<Plain>, bf16, double>(),
                                  .sum_f16 = loops<Sum<Plain>, f16, double>(),
                                  .abs_bf16 = loops<Sum<Absolute>, bf16, double>(),
                                  .squares_bf16 = loops<Sum<Square>, bf16, double>(),
                                  .abs_f16 = loops<Sum<Absolute>, f16, double>(),
                                  .squares_f16 = loops<Sum<Square>, f16, double>(),
                                  .sum_complex64 = {pair_row<float>, pair_columns<float>},
                                  .sum_complex128 = {pair_row<double>, pair_columns<double>},
                                  .present_float = loops<Sum<Present>, float, double>(),
                                  .present_double = loops<Sum<Present>, double, double>(),
                                  .present_bf16 = loops<Sum<Present>, bf16, double>(),
                                  .present_f16 = loops<Sum<Present>, f16, double>(),
                                  .sum_int64 = loops<Sum<Plain>, int64_t, uint64_t>(),
                                  .sum_int32 = loops<Sum<Plain>, int32_t, uint64_t>(),
                                  .sum_uint8 = loops<Sum<Plain>, uint8_t, uint64_t>(),
                                  .sum_bool = loops<Sum<Plain>, bool, uint64_t>(),
                                  .product_float = loops<Product, float, double>(),
                                  .product_double = loops<Product, double, double>(),
                                  .max_float = loops<Extremum<true>, float, float>(),
                                  .min_float = loops<Extremum<false>, float, float>(),
                                  .max_double = loops<Extremum<true>, double, double>(),
                                  .min_double = loops<Extremum<false>, double, double>(),
                                  .max_bf16 = loops<Extremum<true>, bf16, float>(),
                                  .min_bf16 = loops<Extremum<false>, bf16, float>(),
                                  .max_f16 = loops<Extremum<true>, f16, float>(),
                                  .min_f16 = loops<Extremum<false>, f16, float>(),
                                  .max_int64 = loops<Extremum<true>, int64_t, int64_t>(),
                                  .min_int64 = loops<Extremum<false>, int64_t, int64_t>(),
                                  .max_int32 = loops<Extremum<true>, int32_t, int32_t>(),
                                  .min_int32 = loops<Extremum<false>, int32_t, int32_t>(),
                                  .few_sums = few_sums,
                                  .arg_float = {arg_columns<false>, arg_columns<true>},
                                  .arg_double = {arg_columns<false>, arg_columns<true>},
                                  .arg_int64 = {arg_columns<false>, arg_columns<true>},
                                  .arg_int32 = {arg_columns<false>, arg_columns<true>}};

}  // namespace clew::kernels::CLEW_ISA

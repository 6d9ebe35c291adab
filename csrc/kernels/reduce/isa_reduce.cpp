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

void few_sums(const float* from, int64_t outer, int64_t count, int64_t inner, float* to);

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
template <> struct Reader<uint8_t> : Widened<uint8_t, uint16_t> {};
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
static_assert(row_lanes * row_rounds * 255 <= std::numeric_limits<uint16_t>::max());  // of bytes

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
// Whether vectors of B are made of the lanes: of all, or of those of either half, joined.
template <class B, class C>
constexpr bool widens = (lane_count<C> >= 4 && sizeof(B) == 2 * sizeof(C)) ||
                        (lane_count<C> >= 2 && sizeof(B) == sizeof(C));
template <class Op, class B, class C>
[[gnu::always_inline]] inline auto widened_lanes(const Lanes_t<C>& v) {
  constexpr int N = lane_count<C>, W = N / (sizeof(B) / sizeof(C));
  typedef B Wide __attribute__((vector_size(W * sizeof(B))));
  if constexpr (W == N) {
    return __builtin_convertvector(v, Wide);
  } else {
    using Half = std::make_integer_sequence<int, W>;
    return Op::join(__builtin_convertvector(part_of<0>(v, Half()), Wide),
                    __builtin_convertvector(part_of<W>(v, Half()), Wide));
  }
}
// What join_lanes() gives, without leaving the registers where two of them hold all lanes as B.
template <class Op, class B, class C>
[[gnu::always_inline]] inline B join_lanes_of(const Lanes_t<C>& v) {
  if constexpr (widens<B, C>) {
    const auto wide = widened_lanes<Op, B, C>(v);
    return join_halves<Op, sizeof wide / sizeof(B)>(wide);
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

// Joins up to a block of a row's n elements from i on, which then is where the rest begins: at
// least a vector of them. Fewer than eight vectors have the same bits with U = 4.
template <class Op, class T>
constexpr int64_t row_block = row_rounds* row_lanes* lane_count<typename Op::template Source<T>::C>;
template <class Op, int U = row_lanes, class T>
[[gnu::always_inline]] inline auto block_lanes(const T* p, int64_t n, int64_t& i) {
  using R = typename Op::template Source<T>;
  using C = typename R::C;
  constexpr int N = lane_count<C>;
  constexpr int64_t block = row_block<Op, T>;
  const Lanes_t<C> none = spread(Op::template neutral<C>);
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
  for (int half = U / 2; half > 0; half /= 2) {
    for (int u = 0; u < half; ++u) acc[u] = Op::join(acc[u], acc[u + half]);
  }
  return acc[0];
}

template <class Op, class T, class B> void row(const T* p, int64_t n, B& total) {
  using R = typename Op::template Source<T>;
  using C = typename R::C;
  constexpr int N = lane_count<C>;
  int64_t i = n * static_cast<int64_t>(sizeof(T)) < long_row_bytes ? 0 : long_row<Op>(p, n, total);
  while (n - i >= N) total = Op::join(total, join_lanes_of<Op, B, C>(block_lanes<Op>(p, n, i)));
  if (has_masks<T> && n - i >= few_left) {
    const Lanes_t<C> v = last_lanes<R>(p + i, n - i, spread(Op::template neutral<C>));
    total = Op::join(total, join_lanes_of<Op, B, C>(Op::term(v)));
    return;
  }
  for (; i < n; ++i) total = Op::join(total, static_cast<B>(Op::term(R::one(p + i))));
}

// Lane i of either vector's first or second half, in turn.
template <int first, class V, int... I>
[[gnu::always_inline]] inline V in_turn(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int W = sizeof...(I);
  return __builtin_shufflevector(a, b, (first + I / 2 + (I % 2 ? W : 0))...);
}
// Joins all lanes of each of W vectors of W lanes, in the order of join_halves(); the results are
// the lanes of v[0].
template <class Op, int W, class V> [[gnu::always_inline]] inline void join_each(V (&v)[W]) {
  using All = std::make_integer_sequence<int, W>;
  for (int half = W / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      v[i] =
          Op::join(in_turn<0>(v[i], v[i + half], All()), in_turn<W / 2>(v[i], v[i + half], All()));
}
template <class Op, class T, class B>
void short_rows(const T* p, int64_t apart, int64_t n, int64_t many, B* totals) {
  using R = typename Op::template Source<T>;
  using C = typename R::C;
  constexpr int N = lane_count<C>;
  if constexpr (widens<B, C>) {
    const Lanes_t<C> none = spread(Op::template neutral<C>);
    using Wide = decltype(widened_lanes<Op, B, C>(none));
    constexpr int W = sizeof(Wide) / sizeof(B);
    const int64_t left = n % N;
    const bool is_one_block = n <= row_block<Op, T> && n * int64_t{sizeof(T)} < long_row_bytes;
    const bool fills_vectors = left == 0 ? n > 0 : left >= few_left && (has_masks<T> || n >= N);
    const bool at_once = is_one_block && fills_vectors;
    for (; at_once && many >= W; many -= W, p += W * apart, totals += W) {
      Wide v[W];
      for (int r = 0; r < W; ++r) {
        const T* at = p + r * apart;
        Lanes_t<C> acc = none;
        if (n >= 4 * N) {
          int64_t i = 0;
          acc = n < 8 * N ? block_lanes<Op, 4>(at, n, i) : block_lanes<Op>(at, n, i);
        } else if (n < N) {
          acc = Op::term(last_lanes<R>(at, n, none));
        } else {  // the same bits as block_lanes()
          for (int64_t i = 0; i + N <= n; i += N) acc = Op::join(acc, Op::term(R::lanes(at + i)));
          if (left)
            acc = Op::join(acc, Op::join(none, Op::term(last_lanes<R>(at + n - left, left, none))));
        }
        v[r] = widened_lanes<Op, B, C>(acc);
      }
      join_each<Op, W>(v);
      for (int r = 0; r < W; ++r) totals[r] = Op::join(totals[r], v[0][r]);
    }
  }
  for (int64_t r = 0; r < many; ++r) row<Op>(p + r * apart, n, totals[r]);
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

template <class Op, class T, class B> constexpr ReduceLoops<T, B> loops() {
  return {.row = row<Op, T, B>,
          .columns = columns<Op, T, B>,
          .at_places = at_places<Op, T, B>,
          .step = place_step<Op, T>,
          .block = row_rounds * place_step<Op, T>,
          .long_row = long_row_bytes / static_cast<int64_t>(sizeof(T)),
          .short_rows = short_rows<Op, T, B>,
          .shortest = has_masks<T> && sizeof(B) > sizeof(T) ? 8 : 16};
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

// The blocked matrix product: rows of C over threads, which pack B's panels as they need them.
// May include: kernels/matmul/gemm_isa.h, kernels/matmul/gemm_micro.h, base/guided.h.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
#include <array>
#include <thread>

#include "base/guided.h"
#include "kernels/matmul/gemm_isa.h"
#include "kernels/matmul/gemm_micro.h"

#if defined(__AVX512F__)
// Products of integers are rare and slow to compile, so the AVX2 versions are used here as well.
namespace clew::kernels::avx2 {
void gemm_integers(const GemmTask& t);
}
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

// Depth of a packed block: a panel of A that deep leaves room in the first-level cache.
constexpr int64_t depth_most = 400;
constexpr int64_t mc_block = 4 * tile_rows<1>;  // rows of A packed at a time
constexpr int64_t b_block_bytes = 640 << 10;  // packed B at a time: the second-level cache holds it
constexpr int64_t b_group_bytes = 2 << 20;    // packed at once, block by block
constexpr int64_t copied_steps = 16;          // steps of A read before the next tile's turn
constexpr int64_t shared_rows = 192;          // from so many on threads share packed panels
constexpr int64_t second_cache = 1 << 20;     // bytes that stay near a core
constexpr int64_t parallel_work = 3 << 19;    // multiply-adds from which threads pay
constexpr int64_t parallel_dots = 1 << 19;    // the same for sums along the depth
static_assert(row_work < parallel_dots && row_work < parallel_work);

// A problem with typed pointers; alpha and beta in the compute type.
template <class T> struct Problem {
  using E = Element<T>;
  using S = typename E::S;
  int64_t m, n, k;
  const T* a;
  int64_t a_rs, a_cs;
  const T* b;
  int64_t b_rs, b_cs;
  T* c;
  int64_t c_rs, c_cs;
  const T* bias;  // n of them, added to each row where beta is zero; or null
  Beta beta_kind;
  bool alpha_one;
  S alpha[2], beta[2];
};

// C(m x n) = alpha * tile + beta * C, or + bias. Out of line, as what several loops call is.
template <class T, class S>
[[gnu::noinline]] void merge(const Problem<T>& p, const S* tile, int64_t im_offset, int64_t width,
                             T* c, const T* bias, int64_t m, int64_t n, Beta kind) {
  using E = Element<T>;
  constexpr int L = lanes<S>;
  const S factor = kind == Beta::one ? S(1) : p.beta[0];
  for (int64_t i = 0; i < m; ++i) {
    int64_t j = 0;
    if constexpr (E::planes == 1) {
      if (p.c_cs == 1) {
        for (; j + L <= n; j += L) {
          T* at = c + i * p.c_rs + j;
          Vector<S> v;
          std::memcpy(&v, tile + i * width + j, sizeof v);
          if (!p.alpha_one) v *= p.alpha[0];
          if (kind != Beta::zero)
            v += factor * load_lanes<T>(at);
          else if (bias)
            v += load_lanes<T>(bias + j);
          store_lanes<T>(at, v);
        }
      }
    }
    if constexpr (E::planes == 2) {  // the two most frequent kinds
      const S* from = tile + i * width;
      if (p.c_cs == 1 && p.alpha_one && kind == Beta::zero && !bias) {
        for (T* at = c + i * p.c_rs; j < n; ++j) at[j] = {from[j], from[im_offset + j]};
      } else if (p.c_cs == 1 && p.alpha_one && kind == Beta::one) {
        for (T* at = c + i * p.c_rs; j < n; ++j)
          at[j] = {at[j].part[0] + from[j], at[j].part[1] + from[im_offset + j]};
      }
    }
    for (; j < n; ++j) {
      T* at = c + i * p.c_rs + j * p.c_cs;
      S v[2] = {tile[i * width + j], S(0)};
      if constexpr (E::planes == 2) {
        v[1] = tile[im_offset + i * width + j];
        if (!p.alpha_one) {
          const S re = v[0] * p.alpha[0] - v[1] * p.alpha[1];
          v[1] = v[0] * p.alpha[1] + v[1] * p.alpha[0];
          v[0] = re;
        }
        if (kind != Beta::zero) {
          const S re = E::load(at, 0), im = E::load(at, 1);
          const S bi = kind == Beta::one ? S(0) : p.beta[1];
          v[0] += re * factor - im * bi;
          v[1] += re * bi + im * factor;
        } else if (bias) {
          v[0] += E::load(bias + j, 0);
          v[1] += E::load(bias + j, 1);
        }
      } else {
        if (!p.alpha_one) v[0] *= p.alpha[0];
        if (kind != Beta::zero)
          v[0] += factor * E::load(at, 0);
        else if (bias)
          v[0] += E::load(bias + j, 0);
      }
      E::store(at, v);
    }
  }
}

const LocalScratch scratch_a, scratch_b, scratch_c, scratch_states;

// Where the results of a sweep go: C itself when it holds sums as they are, else through merge().
template <class T> struct Sink {
  using S = typename Element<T>::S;
  S* sums;  // rows of sums, rs apart; null: merge into c
  int64_t rs;
  const S* bias;
  T* c;
  const T* c_bias;
  Beta kind;
};

// All tiles of m rows and the panels [q0, q1) over one block of depth. A is either in place (its
// own strides) or packed by micro-kernel rows; B has `b_ks` elements from one step to the next, 0
// for packed panels. What is the same for all tiles is found once: they are short.
template <class T, class S>
[[gnu::noinline]] void sweep(const Problem<T>& p, int64_t m, const Panels& panels, int64_t q0,
                             int64_t q1, int64_t depth, const S* a_direct, const S* a_packed,
                             const S* b, int64_t b_ks, const Sink<T>& to, Fetch fetch = {},
                             int64_t fetch_tile = 0) {
  constexpr int planes = Element<T>::planes;
  constexpr int L = lanes<S>;
  alignas(64) S tile[tile_rows<planes> * tile_vectors<planes> * L * planes];
  const bool own = planes == 1 && to.sums != nullptr, added = own && to.kind == Beta::one;
  TileTarget<S> t{.c = tile,
                  .rs = to.rs,
                  .from = nullptr,
                  .from_rs = added ? to.rs : 0,
                  .last = L,
                  .alpha = p.alpha[0],
                  .scaled = own && !p.alpha_one,
                  .fetch = fetch};
  for (int64_t i = 0; i < m;) {
    const int rows = rows_for<planes>(m - i);
    const S* const from = a_packed ? a_packed + i * depth * planes : a_direct + i * p.a_rs * planes;
    const int64_t a_rs = a_packed ? 1 : p.a_rs, a_ks = a_packed ? rows : p.a_cs;
    // Tiles of the panels [q, end), as many vectors wide each.
    auto along = [&](int64_t q, int64_t end, int64_t vectors) __attribute__((noinline)) {
      const int64_t step = b_ks ? b_ks : vectors * L * planes;
      auto merged = [&](int64_t im_offset) {
        const int64_t first = q * panels.width;
        merge<T, S>(p, tile, im_offset, vectors * L, to.c + i * p.c_rs + first * p.c_cs,
                    to.c_bias ? to.c_bias + first : nullptr, rows, panels.columns(q), to.kind);
      };
      if constexpr (planes == 2) {
        const auto micro = micro_complex_for<S>(rows, vectors);
        for (; q < end; ++q) {
          micro(depth, from, a_packed ? 1 : p.a_rs * 2, a_packed ? rows * 2 : p.a_cs * 2,
                a_packed ? rows : 1, b + q * panels.width * depth * 2, step, tile);
          merged(rows * vectors * L);
        }
      } else {
        const auto micro =
            a_packed ? micro_for<S, true>(rows, vectors) : micro_for<S, false>(rows, vectors);
        const S* panel = b + q * panels.width * (b_ks ? 1 : depth);
        const int64_t next = panels.width * (b_ks ? 1 : depth);
        if (own) {
          t.c = to.sums + i * to.rs + q * panels.width;
          t.from = added ? t.c : to.bias ? to.bias + q * panels.width : nullptr;
          const int64_t on = t.from ? panels.width : 0;
          for (; q < end; ++q, panel += next, t.c += panels.width, t.from += on)
            micro(depth, from, a_rs, a_ks, panel, step, t);
        } else {
          t.rs = vectors * L;
          for (; q < end; ++q, panel += next) {
            micro(depth, from, a_rs, a_ks, panel, step, t);
            merged(0);
          }
        }
      }
    };
    const int64_t whole = least(q1, panels.n / panels.width);
    if (q0 < whole) along(q0, whole, tile_vectors<planes>);
    for (int64_t q = most(q0, whole); q < q1; ++q) {
      const int64_t vectors = ceil_div(panels.columns(q), L);
      if (own) t.last = panels.columns(q) - (vectors - 1) * L;
      along(q, q + 1, vectors);
      t.last = L;
    }
    i += rows;
    if (fetch.at) t.fetch.at += fetch_tile;
  }
}

// Whole tiles of rows that are contiguous across rows, side by side. A vector is longer than a tile
// is high: what it has too much the next step overwrites. `beyond` elements may be read after m.
template <class S>
void pack_across(S* dst, const S* a, int64_t a_cs, int64_t m, int64_t beyond, int64_t depth) {
  constexpr int R = tile_rows<1>, L = lanes<S>;
  using V = Vector<S>;
  auto tiles = [&]<int N>(int64_t i) {
    const S* from = a + i;
    S* to = dst + i * depth;
    for (int64_t k = 0; k + 1 < depth; ++k, from += a_cs, to += R) {
      unroll<N>([&]<int t> {
        V x;
        std::memcpy(&x, from + t * R, sizeof x);
        std::memcpy(to + t * R * depth, &x, sizeof x);
      });
    }
    unroll<N>([&]<int t> { std::memcpy(to + t * R * depth, from + t * R, R * sizeof(S)); });
  };
  int64_t i = 0;
  const int64_t end = beyond >= L - R ? m : m - (L - R);
  for (; i + 4 * R <= end; i += 4 * R) tiles.template operator()<4>(i);
  for (; i + R <= end; i += R) tiles.template operator()<1>(i);
  for (; i < m; i += R) {
    for (int64_t k = 0; k < depth; ++k)
      std::memcpy(dst + i * depth + k * R, a + i + k * a_cs, R * sizeof(S));
  }
}

// Rows of A by micro-kernels. What is contiguous across rows is read along them; `beyond` the rows
// there are as many more.
template <class T, class S>
void pack_rows(S* dst, const Problem<T>& p, const T* a, int64_t m, int64_t beyond, int64_t depth) {
  constexpr int planes = Element<T>::planes;
  int64_t first = 0;
  if constexpr (planes == 1 && sizeof(T) == sizeof(S) && tile_rows<1> < lanes<S>) {
    if (p.a_rs == 1) {
      first = m / tile_rows<1> * tile_rows<1>;
      pack_across<S>(dst, reinterpret_cast<const S*>(a), p.a_cs, first, m - first + beyond, depth);
    }
  }
  const int64_t steps = p.a_rs == 1 ? copied_steps : depth;
  for (int64_t k = 0; k < depth; k += steps) {
    const int64_t n = least(steps, depth - k);
    for (int64_t i = first; i < m;) {
      const int rows = rows_for<planes>(m - i);
      pack<T, S>(dst + (i * depth + k * rows) * planes, rows, a + i * p.a_rs + k * p.a_cs, p.a_rs,
                 p.a_cs, rows, n);
      i += rows;
    }
  }
}

// Blocks of B, packed panel by panel. The thread that first needs a panel packs it, so no thread
// waits for all of B. While one panel is multiplied, the lines of the next are prefetched.
template <class T, class S> struct PackedB {
  enum : uint8_t { untouched, claimed, ready };
  const Problem<T>& p;
  const T* b;  // the first step of the first block
  Panels panels;
  int64_t steps, kc, block;  // of all blocks; of one; elements from one block to the next
  S* data;
  uint8_t* states;  // count() for each block
  int64_t team;

  int64_t depth(int64_t at) const { return least(kc, steps - at * kc); }
  const T* source(int64_t at, int64_t q) const {
    return b + at * kc * p.b_rs + q * panels.width * p.b_cs;
  }
  std::atomic_ref<uint8_t> state(int64_t at, int64_t q) const {
    return std::atomic_ref<uint8_t>(states[at * panels.count() + q]);
  }
  // False while another thread is at it.
  bool provide(int64_t at, int64_t q) const {
    auto s = state(at, q);
    uint8_t now = s.load(std::memory_order_acquire);
    if (now == untouched && s.compare_exchange_strong(now, claimed)) {
      constexpr int planes = Element<T>::planes;
      pack<T, S>(data + at * block + q * panels.width * depth(at) * planes, panels.packed(q),
                 source(at, q), p.b_cs, p.b_rs, panels.columns(q), depth(at));
      s.store(now = ready, std::memory_order_release);
    }
    return now == ready;
  }
  bool complete(int64_t at, int64_t q0, int64_t q1) const {
    while (q0 < q1 && state(at, q0).load(std::memory_order_acquire) == ready) ++q0;
    return q0 == q1;
  }
  // Calls f(q, fetch, fetch_tile) for all panels of [q0, q1), each in order by then. Threads begin
  // in different places.
  template <class F> void each(int64_t at, int64_t q0, int64_t q1, F&& f) const {
    const int64_t count = q1 - q0;
    const int64_t first = count * thread_turn(team) / team;
    auto panel = [&](int64_t x) { return q0 + (first + x) % count; };
    for (int64_t x = 0; x < count; ++x) {
      const int64_t q = panel(x);
      while (!provide(at, q)) std::this_thread::yield();
      Fetch fetch;
      int64_t fetch_tile = 0;
      if (const int64_t next = panel(x + 1);
          x + 1 < count && state(at, next).load(std::memory_order_relaxed) == untouched) {
        constexpr auto item = static_cast<int64_t>(sizeof(T));
        fetch.at = reinterpret_cast<const char*>(source(at, next));
        if (p.b_cs == 1) {
          // A line of each step.
          fetch.near = p.b_rs * item, fetch.far = 4 * fetch.near;
          fetch_tile = depth(at) / 4 * fetch.near;
        } else {
          // Four columns for each tile.
          fetch.near = p.b_cs * item, fetch.far = 64;
          fetch_tile = 4 * fetch.near;
        }
      }
      f(q, fetch, fetch_tile);
    }
  }
};

// One row times a matrix whose rows are contiguous: no packing, vectors run along the columns.
template <class S> void row_by_rows(const Problem<S>& p, int64_t begin, int64_t end) {
  constexpr int L = lanes<S>;
  for (int64_t j = begin; j < end; j += 4 * L) {
    const int64_t cols = least(4 * L, end - j), vectors = ceil_div(cols, L);
    TileTarget<S> t;
    t.c = p.c + j * p.c_cs;
    alignas(64) S tile[4 * L];
    const bool own = p.c_cs == 1 && p.beta_kind != Beta::other;
    if (!own) t.c = tile;
    t.rs = t.from_rs = 0;
    t.from = !own || (p.beta_kind == Beta::zero && !p.bias) ? nullptr
             : p.beta_kind == Beta::one                     ? t.c
                                                            : p.bias + j;
    t.last = L;
    t.alpha = p.alpha[0];
    t.scaled = own && !p.alpha_one;
    const int64_t whole = cols / L * L;
    if (vectors == 4 && whole == cols) {
      micro<S, 1, 4, false>(p.k, p.a, 0, p.a_cs, p.b + j, p.b_rs, t);
    } else {
      for (int64_t v = 0; v < whole; v += L) {
        TileTarget<S> one = t;
        one.c += v;
        if (t.from) one.from += v;
        micro<S, 1, 1, false>(p.k, p.a, 0, p.a_cs, p.b + j + v, p.b_rs, one);
      }
      if (whole < cols) {
        const int64_t left = cols - whole;
        Vector<S> sum{};
        const S* row = p.b + j + whole;
        for (int64_t q = 0; q < p.k; ++q, row += p.b_rs)
          sum += p.a[q * p.a_cs] * load_part<S>(row, left);
        if (t.scaled) sum *= t.alpha;
        if (t.from) sum += load_part<S>(t.from + whole, left);
        store_part<S>(t.c + whole, sum, left);
      }
    }
    if (!own)
      merge<S, S>(p, tile, 0, 4 * L, p.c + j * p.c_cs, p.bias ? p.bias + j : nullptr, 1, cols,
                  p.beta_kind);
  }
}

// R rows of A times as many columns of B as make a vector of sums, both contiguous along k; `whole`
// where C has all of these columns.
template <class S, int R, bool whole>
void dots(const Problem<S>& p, int64_t i, int64_t j, int64_t cols) {
  using V = Vector<S>;
  constexpr int L = lanes<S>, C = L / R;
  const S *a[R], *b[C];
  unroll<R>([&]<int r> { a[r] = p.a + (i + r) * p.a_rs; });
  // Columns beyond the last repeat the first one; their sums are dropped.
  unroll<C>([&]<int c> { b[c] = p.b + (j + (whole || c < cols ? c : 0)) * p.b_cs; });
  V sums[L];
  unroll<L>([&]<int l> { sums[l] = V{}; });
  auto add = [&](auto&& load) __attribute__((always_inline)) {
    V x[R];
    unroll<R>([&]<int r> { x[r] = load(a[r]); });
    unroll<C>([&]<int c> {
      const V y = load(b[c]);
      unroll<R>([&]<int r> { sums[r * C + c] += x[r] * y; });
    });
  };
  int64_t q = 0;
  for (; q + L <= p.k; q += L) add([=](const S* from) { return load_lanes<S>(from + q); });
  if (const int64_t left = p.k - q; left > 0)
    add([=](const S* from) { return load_part<S>(from + q, left); });
  const V all = lane_sums<S>(sums);
  const S* bias = p.bias && p.beta_kind == Beta::zero ? p.bias + j : nullptr;
  S* c = p.c + i * p.c_rs + j * p.c_cs;
  S tile[L];
  std::memcpy(tile, &all, sizeof all);
  if (whole && p.c_cs == 1 && p.alpha_one && p.beta_kind != Beta::other) {
    using Row = typename VectorOf<S, C* static_cast<int>(sizeof(S))>::type;
    unroll<R>([&]<int r> {
      Row row, more{};
      S* to = c + r * p.c_rs;
      if (const S* from = p.beta_kind == Beta::one ? to : bias)
        std::memcpy(&more, from, sizeof more);
      std::memcpy(&row, tile + r * C, sizeof row);
      row += more;
      std::memcpy(to, &row, sizeof row);
    });
    return;
  }
  merge<S, S>(p, tile, 0, C, c, bias, R, cols, p.beta_kind);
}
template <class S, int R> void dots_along(const Problem<S>& p, int64_t i, int64_t j, int64_t end) {
  constexpr int C = lanes<S> / R;
  for (; j + C <= end; j += C) dots<S, R, true>(p, i, j, C);
  if (j < end) dots<S, R, false>(p, i, j, end - j);
}
// The same for one row, as in recurrent networks and trees. Conditions that dots() tests for each
// group of columns are tested once.
template <class S> void row_dots(const Problem<S>& p, int64_t begin, int64_t end) {
  using V = Vector<S>;
  constexpr int L = lanes<S>;
  int64_t j = begin;
  if (p.c_cs == 1 && p.alpha_one && p.beta_kind != Beta::other && p.k % L == 0) {
    const S* const start = p.beta_kind == Beta::one ? p.c : p.bias;
    for (; j + L <= end; j += L) {
      const S* b[L];
      unroll<L>([&]<int c> { b[c] = p.b + (j + c) * p.b_cs; });
      V sums[L];
      unroll<L>([&]<int c> { sums[c] = V{}; });
      for (int64_t q = 0; q < p.k; q += L) {
        const V x = load_lanes<S>(p.a + q);
        unroll<L>([&]<int c> { sums[c] += x * load_lanes<S>(b[c] + q); });
      }
      V all = lane_sums<S>(sums);
      if (start) all += load_lanes<S>(start + j);
      std::memcpy(p.c + j, &all, sizeof all);
    }
  }
  if (j < end) dots_along<S, 1>(p, 0, j, end);
}
// For few rows: sums over k run in vector lanes and need no packing. A group of columns stays in
// the cache for all rows.
template <class S> void by_dots(const Problem<S>& p, int64_t begin, int64_t end) {
  constexpr int L = lanes<S>, R = L >= 16 ? 4 : L >= 4 ? 2 : 1;
  if (p.m == 1) return row_dots<S>(p, begin, end);
  for (int64_t j = begin; j < end; j += L) {
    const int64_t stop = least(end, j + L);
    int64_t i = 0;
    for (; i + R <= p.m; i += R) dots_along<S, R>(p, i, j, stop);
    if constexpr (R > 2) {
      if (i + 2 <= p.m) {
        dots_along<S, 2>(p, i, j, stop);
        i += 2;
      }
    }
    for (; i < p.m; ++i) dots_along<S, 1>(p, i, j, stop);
  }
}

// One sum over k of two contiguous vectors: pieces in lanes, what comes of them in double
// precision.
template <class S> using Whole = std::conditional_t<std::is_floating_point_v<S>, double, S>;
template <class S> Whole<S> dot_piece(const S* a, const S* b, int64_t n) {
  using V = Vector<S>;
  constexpr int L = lanes<S>, ways = 8;
  V sums[ways];
  unroll<ways>([&]<int w> { sums[w] = V{}; });
  int64_t q = 0;
  for (; q + ways * L <= n; q += ways * L) {
    unroll<ways>(
        [&]<int w> { sums[w] += load_lanes<S>(a + q + w * L) * load_lanes<S>(b + q + w * L); });
  }
  for (; q + L <= n; q += L) sums[0] += load_lanes<S>(a + q) * load_lanes<S>(b + q);
  if (q < n) sums[0] += load_part<S>(a + q, n - q) * load_part<S>(b + q, n - q);
  unroll<ways - 1>([&]<int w> { sums[0] += sums[w + 1]; });
  S each[L];
  std::memcpy(each, &sums[0], sizeof each);
  Whole<S> sum = 0;
  for (int l = 0; l < L; ++l) sum += static_cast<Whole<S>>(each[l]);
  return sum;
}
template <class S> void one_dot(const Problem<S>& p) {
  // As many terms in each lane whatever the vectors' width.
  constexpr int64_t piece = 256 * lanes<S>, most_parts = 256;
  const int64_t pieces = ceil_div(p.k, piece), parts = least(pieces, most_parts);
  Whole<S> sums[most_parts];
  // Parts do not depend on the threads, nor does the sum.
  auto some = [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      Whole<S> sum = 0;
      for (int64_t i = pieces * part / parts; i < pieces * (part + 1) / parts; ++i)
        sum += dot_piece(p.a + i * piece, p.b + i * piece, least(piece, p.k - i * piece));
      sums[part] = sum;
    }
  };
  parallel_for(parts, 1 + parts * grain_default / p.k, some);
  Whole<S> sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += sums[part];
  S tile[1] = {static_cast<S>(sum)};
  merge<S, S>(p, tile, 0, 1, p.c, p.beta_kind == Beta::zero ? p.bias : nullptr, 1, 1, p.beta_kind);
}

// A grid of blocks of C, one for each thread, along the rows if there are enough of them.
struct Grid {
  int64_t down = 1, across = 1;
  int64_t rows, panels;  // of a block
  Grid(int64_t m, int64_t tile, const Panels& all, int64_t team) {
    const int64_t count = all.count(), tiles = ceil_div(m, tile);
    int64_t best = INT64_MAX;
    for (int64_t d = team; d >= 1; --d) {
      const int64_t e = least(team / d, count);
      // The packing of A counts as a few columns.
      const int64_t cost = ceil_div(tiles, d) * (ceil_div(count, e) * all.width + 8);
      if (cost < best) best = cost, down = d, across = e;
    }
    rows = ceil_div(tiles, down) * tile;
    panels = ceil_div(count, across);
  }
};

template <class T, class S> void packed_product(const Problem<T>& p, bool threads) {
  constexpr int planes = Element<T>::planes;
  constexpr auto size = static_cast<int64_t>(sizeof(S)) * planes;
  constexpr bool plain = planes == 1 && sizeof(T) == sizeof(S);
  constexpr int top = tile_rows<planes>;
  const bool in_place = plain && p.c_cs == 1 && p.beta_kind != Beta::other;
  // Whole lines of 16 elements, so that none is read for two blocks.
  const int64_t kc = ceil_div(ceil_div(p.k, ceil_div(p.k, depth_most / planes)), int64_t{16}) * 16;
  // 16-bit results are rounded once: several blocks of depth are summed up elsewhere.
  const bool gathered = sizeof(T) < sizeof(S) && std::is_floating_point_v<S> && kc < p.k;
  const int64_t team = threads ? num_threads() : 1;
  const int64_t width = panels_of<T>(p.n).width;
  const int64_t fit = most(1, b_block_bytes / (kc * size * width)) * width;
  const int64_t nc = ceil_div(ceil_div(p.n, ceil_div(p.n, fit)), width) * width;
  for (int64_t jc = 0; jc < p.n; jc += nc) {
    const Panels panels = panels_of<T>(least(nc, p.n - jc));
    const int64_t count = panels.count();
    const Grid grid(p.m, top, panels, team);
    const int64_t block = count * width * kc * planes;
    // Packs as many blocks together as the caches hold, so that threads synchronize rarely.
    const int64_t group = most(1, least(b_group_bytes / (block * static_cast<int64_t>(sizeof(S))),
                                        ceil_div(p.k, kc))) *
                          kc;
    S* b_packed = room<S>(scratch_b, group / kc * block);
    S* gather = gathered ? room<S>(scratch_c, p.m * panels.n) : nullptr;
    for (int64_t g0 = 0; g0 < p.k; g0 += group) {
      const int64_t g1 = least(p.k, g0 + group);
      const int64_t blocks = ceil_div(g1 - g0, kc);
      const PackedB<T, S> packed{p,        p.b + g0 * p.b_rs + jc * p.b_cs,
                                 panels,   g1 - g0,
                                 kc,       block,
                                 b_packed, room<uint8_t>(scratch_states, blocks * count),
                                 team};
      std::memset(packed.states, 0, static_cast<size_t>(blocks * count));
      auto block_of = [&](int64_t i0, int64_t i1, int64_t q0, int64_t q1)
          __attribute__((noinline)) {
        S* a_packed = room<S>(scratch_a, mc_block * least(kc, p.k) * planes);
        for (int64_t k0 = g0; k0 < g1; k0 += kc) {
          const int64_t depth = least(kc, g1 - k0);
          const S* b_block = b_packed + (k0 - g0) / kc * block;
          for (int64_t i = i0; i < i1 && !stopped(); i += mc_block) {
            const int64_t m = least(mc_block, i1 - i);
            Sink<T> to;
            to.c = p.c + i * p.c_rs + jc * p.c_cs;
            to.c_bias = p.bias ? p.bias + jc : nullptr;
            to.sums = gathered   ? gather + i * panels.n
                      : in_place ? reinterpret_cast<S*>(to.c)
                                 : nullptr;
            to.rs = gathered ? panels.n : p.c_rs;
            to.bias = plain ? reinterpret_cast<const S*>(to.c_bias) : nullptr;
            to.kind = k0 > 0 ? Beta::one : gathered ? Beta::zero : p.beta_kind;
            // Rows that are contiguous along the depth are read where they lie: a tile's few are
            // as many streams, and packing would turn them.
            const S* a_direct = nullptr;
            if constexpr (plain) {
              if (p.a_cs == 1) a_direct = p.a + i * p.a_rs + k0;
            }
            if (!a_direct)
              pack_rows<T, S>(a_packed, p, p.a + i * p.a_rs + k0 * p.a_cs, m, p.m - i - m, depth);
            const S* a_rows = a_direct ? nullptr : a_packed;
            const int64_t at = (k0 - g0) / kc;
            // Once B is there, a tile's rows of A stay in the cache for all of its panels.
            if (packed.complete(at, q0, q1)) {
              sweep<T, S>(p, m, panels, q0, q1, depth, a_direct, a_rows, b_block, 0, to);
            } else {
              packed.each(at, q0, q1, [&](int64_t q, Fetch fetch, int64_t fetch_tile) {
                sweep<T, S>(p, m, panels, q, q + 1, depth, a_direct, a_rows, b_block, 0, to, fetch,
                            fetch_tile);
              });
            }
            if (gathered && k0 + kc >= p.k) {
              const int64_t first = q0 * width;
              const int64_t cols = least(panels.n, q1 * width) - first;
              Problem<T> last = p;
              last.alpha_one = true;  // it was applied to each block
              merge<T, S>(last, to.sums + first, 0, to.rs, to.c + first * p.c_cs,
                          to.c_bias ? to.c_bias + first : nullptr, m, cols, p.beta_kind);
            }
          }
        }
      };
      // Rows are taken as threads come free; where there are few, each has its columns. Panels of B
      // that one core has packed reach another slowly, which many rows make up for: few rows are
      // multiplied panel by panel.
      if (plain && team > 1 && p.a_cs == 1 && p.m <= shared_rows && count >= 2 * team) {
        parallel_guided(count, 1,
                        [&](int64_t begin, int64_t end) { block_of(0, p.m, begin, end); });
      } else if (grid.down > 1 && grid.across == 1) {
        parallel_guided(ceil_div(p.m, top), 2, [&](int64_t begin, int64_t end) {
          block_of(begin * top, least(p.m, end * top), 0, count);
        });
      } else {
        parallel_for(grid.down * grid.across, 1, [&](int64_t begin, int64_t end) {
          for (int64_t task = begin; task < end; ++task) {
            const int64_t i0 = task / grid.across * grid.rows,
                          q0 = task % grid.across * grid.panels;
            const int64_t q1 = least(count, q0 + grid.panels);
            if (q0 < q1) block_of(i0, least(p.m, i0 + grid.rows), q0, q1);
          }
        });
      }
    }
  }
}

template <class T> void blocked(const Problem<T>& p) {
  using S = typename Element<T>::S;
  constexpr int planes = Element<T>::planes;
  constexpr bool plain = planes == 1 && sizeof(T) == sizeof(S);
  const int64_t work = p.m * p.n * p.k;
  const bool threads = work >= parallel_work;
  if constexpr (plain) {
    if (p.m == 1 && p.n == 1 && p.a_cs == 1 && p.b_rs == 1) return one_dot<S>(p);
    const int64_t grain = threads ? 1 + parallel_work / 2 / (p.k * p.m) : p.n;
    if (p.m == 1 && p.b_cs == 1) {
      return parallel_for(p.n, grain,
                          [&](int64_t begin, int64_t end) { row_by_rows<S>(p, begin, end); });
    }
    if (p.a_cs == 1 && p.b_rs == 1 && (p.m == 1 || p.m * 8 <= p.k)) {
      const int64_t share = work >= parallel_dots ? 1 + parallel_dots / 2 / (p.k * p.m) : p.n;
      return parallel_for(p.n, share,
                          [&](int64_t begin, int64_t end) { by_dots<S>(p, begin, end); });
    }
    constexpr int64_t small_elements = 16384 / static_cast<int64_t>(sizeof(S));
    const bool in_place = p.c_cs == 1 && p.beta_kind != Beta::other;
    const Panels panels = panels_of<T>(p.n);
    const int64_t count = panels.count();
    const int64_t n_packed = (count - 1) * panels.width + panels.packed(count - 1);
    // Rows that are one and the same are packed: to sweep() a distance of 0 says that they are.
    const bool readable = p.b_cs == 1 && p.b_rs != 0 && n_packed == p.n && p.k <= 512;
    // For few rows of A, which read B few times, packing would take longer than the product.
    const bool in_cache = p.k * p.n * static_cast<int64_t>(sizeof(S)) <= second_cache;
    const bool few = readable && p.m <= (in_cache ? 64 : 16);
    const bool as_it_is = few || (readable && p.k * p.n <= 2 * small_elements);
    if (few || (!threads && p.k <= 512 && (as_it_is || n_packed * p.k <= small_elements))) {
      // Small: B is read where it is or from a buffer on the stack, A where it is.
      alignas(64) S packed[small_elements];
      if (!as_it_is) {
        for (int64_t q = 0; q < count; ++q)
          pack<T, S>(packed + q * panels.width * p.k, panels.packed(q),
                     p.b + q * panels.width * p.b_cs, p.b_cs, p.b_rs, panels.columns(q), p.k);
      }
      Sink<T> to;
      to.c = p.c;
      to.c_bias = p.bias;
      to.sums = in_place ? reinterpret_cast<S*>(p.c) : nullptr;
      to.rs = p.c_rs;
      to.bias = reinterpret_cast<const S*>(p.bias);
      to.kind = p.beta_kind;
      const S* b = as_it_is ? reinterpret_cast<const S*>(p.b) : packed;
      return parallel_for(count, threads ? 1 : count, [&](int64_t begin, int64_t end) {
        sweep<T, S>(p, p.m, panels, begin, end, p.k, reinterpret_cast<const S*>(p.a), nullptr, b,
                    as_it_is ? p.b_rs : 0, to);
      });
    }
  }
  packed_product<T, S>(p, threads);
}

template <class T> void run(const GemmTask& t) {
  using S = typename Element<T>::S;
  Problem<T> p;
  p.m = t.m, p.n = t.n, p.k = t.k;
  p.a = reinterpret_cast<const T*>(t.a), p.a_rs = t.a_rs, p.a_cs = t.a_cs;
  p.b = reinterpret_cast<const T*>(t.b), p.b_rs = t.b_rs, p.b_cs = t.b_cs;
  p.c = reinterpret_cast<T*>(t.c), p.c_rs = t.c_rs, p.c_cs = t.c_cs;
  p.bias = reinterpret_cast<const T*>(t.bias);
  p.beta_kind = t.beta_kind, p.alpha_one = t.alpha_one;
  std::memcpy(p.alpha, t.alpha, sizeof(S) * 2);
  std::memcpy(p.beta, t.beta, sizeof(S) * 2);
  // Vectors run along the rows of C: a column-major C, or one much narrower than a vector, is
  // computed transposed.
  const bool columns = p.c_rs == 1 && p.c_cs != 1 && p.m > 1 && p.n > 1;
  const bool much_narrower = p.n < lanes<S> / 2 && p.n < p.m;
  // So is one whose A lies in columns, as in the gradient of a layer with few inputs.
  const bool by_columns = p.a_rs == 1 && p.a_cs != 1 && p.m >= 2 * p.n;
  bool narrow = much_narrower && (p.c_cs != 1 || p.n == 1 || by_columns);
  constexpr int64_t most_copied = 2048;
  alignas(64) std::array<S, most_copied> copied;
  if constexpr (Element<T>::planes == 1 && sizeof(T) == sizeof(S)) {
    // A small B is copied where that makes both operands contiguous along k.
    if (much_narrower && p.a_cs == 1 && p.b_rs != 1 && p.n * 8 <= p.k && p.n * p.k <= most_copied) {
      for (int64_t j = 0; j < p.n; ++j)
        for (int64_t l = 0; l < p.k; ++l)
          copied[static_cast<size_t>(j * p.k + l)] = p.b[l * p.b_rs + j * p.b_cs];
      p.b = copied.data(), p.b_rs = 1, p.b_cs = p.k;
    }
    // A narrow C whose operands are contiguous along k (the last layer of a model with few classes)
    // is computed transposed as well.
    if (p.a_cs == 1 && p.b_rs == 1 && p.n <= 16 && p.n * 8 <= p.k && p.n < p.m) {
      narrow = true;
      if (p.bias && p.beta_kind == Beta::zero) {
        for (int64_t i = 0; i < p.m; ++i)
          for (int64_t j = 0; j < p.n; ++j) p.c[i * p.c_rs + j * p.c_cs] = p.bias[j];
        p.bias = nullptr;
        p.beta_kind = Beta::one;
      }
    }
  }
  if (!p.bias && (columns || narrow)) {
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    std::swap(p.a_rs, p.b_cs);
    std::swap(p.a_cs, p.b_rs);
    std::swap(p.c_rs, p.c_cs);
  }
  blocked<T>(p);
}

// Computes one row as blocked() does for a row too short for threads.
template <class S> void one_row(const SmallGemm& g) {
  Problem<S> p{};
  p.m = 1, p.n = g.n, p.k = g.k;
  p.a = reinterpret_cast<const S*>(g.a), p.a_rs = g.a_rs, p.a_cs = g.a_cs;
  p.b = reinterpret_cast<const S*>(g.b), p.b_rs = g.b_rs, p.b_cs = g.b_cs;
  p.c = reinterpret_cast<S*>(g.c), p.c_rs = g.c_rs, p.c_cs = 1;
  p.bias = reinterpret_cast<const S*>(g.bias);
  p.beta_kind = Beta::zero, p.alpha_one = true;
  if (p.b_cs == 1)
    row_by_rows<S>(p, 0, p.n);
  else
    row_dots<S>(p, 0, p.n);
}

}  // namespace

#if defined(__AVX512F__)
using avx2::gemm_integers;
#else
void gemm_integers(const GemmTask& t);
void gemm_integers(const GemmTask& t) {
  switch (itemsize(t.dtype)) {  // sums wrap around, with a sign or without
    case 1: return run<int8_t>(t);
    case 2: return run<int16_t>(t);
    case 4: return run<uint32_t>(t);
    default: return run<uint64_t>(t);
  }
}
#endif

#ifndef CLEW_INTEGERS_ONLY  // else AVX-512's loops stand beside these
void gemm_row(const SmallGemm& g) {
  if (g.dtype == DType::Float32)
    one_row<float>(g);
  else
    one_row<double>(g);
}

void gemm_blocked(const GemmTask& t) {
  switch (t.dtype) {
    case DType::Bool: return;
    case DType::UInt8:
    case DType::Int8:
    case DType::UInt16:
    case DType::Int16:
    case DType::UInt32:
    case DType::Int32:
    case DType::UInt64:
    case DType::Int64: return gemm_integers(t);
    case DType::Float16: return run<f16>(t);
    case DType::BFloat16: return run<bf16>(t);
    case DType::Float32: return run<float>(t);
    case DType::Float64: return run<double>(t);
    case DType::Complex64: return run<Parts<float>>(t);
    case DType::Complex128: return run<Parts<double>>(t);
    default: fail_stored(t.dtype);
  }
}
#endif

}  // namespace clew::kernels::CLEW_ISA

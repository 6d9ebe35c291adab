// The blocked matrix product: B packed once for all threads, blocks of C spread over them.
// May include: kernels/gemm_isa.h, kernels/gemm_micro.h, base/guided.h.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
#include "base/guided.h"
#include "kernels/gemm_isa.h"
#include "kernels/gemm_micro.h"

namespace clew::kernels::CLEW_ISA {
namespace {

// Depth of a packed block: a panel of A that deep leaves room in the first-level cache.
constexpr int64_t depth_most = 400;
constexpr int64_t mc_block = 4 * tile_rows<1>;  // rows of A packed at a time
constexpr int64_t b_block_bytes = 640 << 10;  // packed B at a time: the second-level cache holds it
constexpr int64_t b_group_bytes = 2 << 20;    // packed at once, block by block
constexpr int64_t copied_steps = 16;          // rows read before the next panel's turn
constexpr int64_t parallel_work = 3 << 19;    // multiply-adds from which threads pay

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

// C(m x n) = alpha * tile + beta * C, or + bias.
template <class T, class S>
void merge(const Problem<T>& p, const S* tile, int64_t im_offset, int64_t width, T* c,
           const T* bias, int64_t m, int64_t n, Beta kind) {
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

thread_local Scratch scratch_a, scratch_b, scratch_c;

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

// Lines of a strided block that are asked for piece by piece while other work goes on.
struct Ahead {
  const char* next = nullptr;
  int64_t line_bytes = 0, lines = 0, left = 0, stride = 0, at = 0, each = 0;
  // `outer` runs of `inner_bytes` contiguous bytes, in `pieces` pieces.
  Ahead() = default;
  Ahead(const void* from, int64_t outer, int64_t stride_bytes, int64_t inner_bytes, int64_t pieces)
      : next(static_cast<const char*>(from)),
        lines(inner_bytes / 64 + 1),
        left(outer),
        stride(stride_bytes),
        each(ceil_div(outer * lines, pieces)) {}
  void step() {
    for (int64_t x = 0; x < each && left > 0; ++x) {
      __builtin_prefetch(next + at * 64, 0, 2);
      if (++at == lines) {
        at = 0;
        next += stride;
        --left;
      }
    }
  }
};

// All tiles of m rows and the panels [q0, q1) over one block of depth. A is either in place (its
// own strides) or packed by micro-kernel rows; B has `b_ks` elements from one step to the next, 0
// for packed panels.
template <class T, class S>
void sweep(const Problem<T>& p, int64_t m, const Panels& panels, int64_t q0, int64_t q1,
           int64_t depth, const S* a_direct, const S* a_packed, const S* b, int64_t b_ks,
           const Sink<T>& to, Ahead ahead = {}) {
  constexpr int planes = Element<T>::planes;
  constexpr int L = lanes<S>;
  alignas(64) S tile[tile_rows<planes> * tile_vectors<planes> * L * planes];
  for (int64_t i = 0; i < m;) {
    const int rows = rows_for<planes>(m - i);
    for (int64_t q = q0; q < q1; ++q) {
      const int64_t cols = panels.columns(q), vectors = ceil_div(cols, L), first = q * panels.width;
      const S* panel = b_ks ? b + first : b + first * depth * planes;
      const int64_t step = b_ks ? b_ks : vectors * L * planes;
      ahead.step();
      if constexpr (planes == 2) {
        const S* from = a_packed ? a_packed + i * depth * 2 : a_direct + i * p.a_rs * 2;
        micro_complex_for<S>(rows, vectors)(depth, from, a_packed ? 1 : p.a_rs * 2,
                                            a_packed ? rows * 2 : p.a_cs * 2, a_packed ? rows : 1,
                                            panel, step, tile);
        merge<T, S>(p, tile, rows * vectors * L, vectors * L, to.c + i * p.c_rs + first * p.c_cs,
                    to.c_bias ? to.c_bias + first : nullptr, rows, cols, to.kind);
      } else {
        const bool own = to.sums != nullptr;
        TileTarget<S> t;
        t.c = own ? to.sums + i * to.rs + first : tile;
        t.rs = own ? to.rs : vectors * L;
        t.from = !own ? nullptr : to.kind == Beta::one ? t.c : to.bias ? to.bias + first : nullptr;
        t.from_rs = own && to.kind == Beta::one ? t.rs : 0;
        t.last = own ? cols - (vectors - 1) * L : L;
        t.alpha = p.alpha[0];
        t.scaled = own && !p.alpha_one;
        if (a_packed)
          micro_for<S, true>(rows, vectors)(depth, a_packed + i * depth, 1, rows, panel, step, t);
        else
          micro_for<S, false>(rows, vectors)(depth, a_direct + i * p.a_rs, p.a_rs, p.a_cs, panel,
                                             step, t);
        if (!own)
          merge<T, S>(p, tile, 0, vectors * L, to.c + i * p.c_rs + first * p.c_cs,
                      to.c_bias ? to.c_bias + first : nullptr, rows, cols, to.kind);
      }
    }
    i += rows;
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

// Blocks of B of kc steps each in panels, `block` elements apart, by all threads.
template <class T, class S>
void pack_blocks(S* dst, const Problem<T>& p, const T* b, const Panels& panels, int64_t steps,
                 int64_t kc, int64_t block, bool threads) {
  constexpr int planes = Element<T>::planes;
  const int64_t count = panels.count();
  auto one = [&](int64_t at, int64_t q, int64_t k, int64_t n) {
    const int64_t width = panels.packed(q), depth = least(kc, steps - at * kc);
    pack<T, S>(dst + at * block + (q * panels.width * depth + k * width) * planes, width,
               b + (at * kc + k) * p.b_rs + q * panels.width * p.b_cs, p.b_cs, p.b_rs,
               panels.columns(q), least(n, depth - k));
  };
  if (p.b_cs == 1) {
    const int64_t pieces = ceil_div(steps, copied_steps);  // kc is a multiple of their size
    parallel_guided(pieces, threads ? 1 + 32768 / (copied_steps * panels.n) : pieces,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t piece = begin; piece < end; ++piece) {
                        const int64_t k = piece * copied_steps;
                        for (int64_t q = 0; q < count; ++q) one(k / kc, q, k % kc, copied_steps);
                      }
                    });
  } else {
    const int64_t pieces = ceil_div(steps, kc) * count;
    parallel_guided(pieces, threads ? 1 + 32768 / (least(kc, steps) * panels.width) : pieces,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t piece = begin; piece < end; ++piece)
                        one(piece / count, piece % count, 0, kc);
                    });
  }
}

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
  // Columns beyond the last stand in for nothing: their sums are dropped.
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
// The same for one row, as recurrent networks and trees have it; what dots() asks for each group of
// columns is asked once.
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
// Few rows: sums over k in lanes need no packing. A group of columns stays in the cache for all
// rows.
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
    // Blocks are packed together as far as caches hold them: threads meet seldom.
    const int64_t group = most(1, least(b_group_bytes / (block * static_cast<int64_t>(sizeof(S))),
                                        ceil_div(p.k, kc))) *
                          kc;
    S* b_packed = room<S>(scratch_b, group / kc * block);
    S* gather = gathered ? room<S>(scratch_c, p.m * panels.n) : nullptr;
    for (int64_t g0 = 0; g0 < p.k; g0 += group) {
      const int64_t g1 = least(p.k, g0 + group);
      pack_blocks<T, S>(b_packed, p, p.b + g0 * p.b_rs + jc * p.b_cs, panels, g1 - g0, kc, block,
                        threads);
      auto block_of = [&](int64_t i0, int64_t i1, int64_t q0, int64_t q1) {
        S* a_packed = room<S>(scratch_a, mc_block * least(kc, p.k) * planes);
        for (int64_t k0 = g0; k0 < g1; k0 += kc) {
          const int64_t depth = least(kc, g1 - k0);
          const S* b_block = b_packed + (k0 - g0) / kc * block;
          for (int64_t i = i0; i < i1; i += mc_block) {
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
            Ahead ahead;
            if (const int64_t more = least(mc_block, i1 - i - m); more > 0) {
              const T* rows = p.a + (i + m) * p.a_rs + k0 * p.a_cs;
              const int64_t item = sizeof(T), pieces = ceil_div(m, top) * (q1 - q0);
              if (p.a_cs == 1)
                ahead = Ahead(rows, more, p.a_rs * item, depth * item, pieces);
              else if (p.a_rs == 1)
                ahead = Ahead(rows, depth, p.a_cs * item, more * item, pieces);
            }
            sweep<T, S>(p, m, panels, q0, q1, depth, a_direct, a_direct ? nullptr : a_packed,
                        b_block, 0, to, ahead);
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
      // Rows are taken as threads come free; where there are few, each has its columns.
      if (grid.down > 1 && grid.across == 1) {
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
    const int64_t grain = threads ? 1 + parallel_work / 2 / (p.k * p.m) : p.n;
    if (p.m == 1 && p.b_cs == 1) {
      return parallel_for(p.n, grain,
                          [&](int64_t begin, int64_t end) { row_by_rows<S>(p, begin, end); });
    }
    if (p.a_cs == 1 && p.b_rs == 1 && (p.m == 1 || p.m * 8 <= p.k)) {
      return parallel_for(p.n, grain,
                          [&](int64_t begin, int64_t end) { by_dots<S>(p, begin, end); });
    }
    constexpr int64_t small_elements = 16384 / static_cast<int64_t>(sizeof(S));
    const bool in_place = p.c_cs == 1 && p.beta_kind != Beta::other;
    const Panels panels = panels_of<T>(p.n);
    const int64_t count = panels.count();
    const int64_t n_packed = (count - 1) * panels.width + panels.packed(count - 1);
    // Rows that are one and the same are packed: to sweep() a distance of 0 says that they are.
    const bool as_it_is =
        p.b_cs == 1 && p.b_rs != 0 && n_packed == p.n && p.k * p.n <= 2 * small_elements;
    if (!threads && p.k <= 512 && (as_it_is || n_packed * p.k <= small_elements)) {
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
      sweep<T, S>(p, p.m, panels, 0, count, p.k, reinterpret_cast<const S*>(p.a), nullptr,
                  as_it_is ? reinterpret_cast<const S*>(p.b) : packed, as_it_is ? p.b_rs : 0, to);
      return;
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
  const bool narrow = p.n < lanes<S> / 2 && p.n < p.m && (p.c_cs != 1 || p.n == 1);
  if (!p.bias && (columns || narrow)) {
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    std::swap(p.a_rs, p.b_cs);
    std::swap(p.a_cs, p.b_rs);
    std::swap(p.c_rs, p.c_cs);
  }
  blocked<T>(p);
}

}  // namespace

void gemm_blocked(const GemmTask& t) {
  switch (t.dtype) {
    case DType::Bool: return;
    case DType::UInt8: return run<uint8_t>(t);
    case DType::Int8: return run<int8_t>(t);
    case DType::UInt16:
    case DType::Int16: return run<int16_t>(t);
    case DType::UInt32:
    case DType::Int32: return run<uint32_t>(t);
    case DType::UInt64:
    case DType::Int64: return run<uint64_t>(t);
    case DType::Float16: return run<f16>(t);
    case DType::BFloat16: return run<bf16>(t);
    case DType::Float32: return run<float>(t);
    case DType::Float64: return run<double>(t);
    case DType::Complex64: return run<Parts<float>>(t);
    case DType::Complex128: return run<Parts<double>>(t);
  }
}

}  // namespace clew::kernels::CLEW_ISA

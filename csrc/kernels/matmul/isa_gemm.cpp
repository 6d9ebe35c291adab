// The blocked matrix product: rows of C over threads, which pack B's panels as they need them.
// May include: base/guided.h, kernels/matmul/gemm_*.h.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
#include <array>

#include "base/guided.h"
#include "kernels/matmul/gemm_dots.h"
#include "kernels/matmul/gemm_packing.h"
#include "kernels/matmul/gemm_sweep.h"

#if defined(__AVX512F__)
// Products of integers are rare and slow to compile, so the AVX2 versions are used here as well,
// but for 64 bits: AVX2 has no product of such.
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
constexpr int64_t shared_rows = 192;          // from so many on threads share packed panels
constexpr int64_t second_cache = 1 << 20;     // bytes that stay near a core
constexpr int64_t parallel_work = 3 << 19;    // multiply-adds from which threads pay
constexpr int64_t parallel_dots = 1 << 19;    // the same for sums along the depth
static_assert(row_work < parallel_dots && row_work < parallel_work);

const LocalScratch scratch_a, scratch_b, scratch_c, scratch_states;

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

void gemm_integers(const GemmTask& t);
#if defined(__AVX512F__)
void gemm_integers(const GemmTask& t) {
  if (itemsize(t.dtype) == 8) return run<uint64_t>(t);
  avx2::gemm_integers(t);
}
#else
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

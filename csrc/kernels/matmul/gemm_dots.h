// Products of few rows, which need no packing: sums along columns or along the depth.
// May include: base/parallel.h, kernels/matmul/gemm_sweep.h. Only isa_gemm.cpp includes it.
// Invariant: sums do not depend on the number of threads.
#pragma once
#include "base/parallel.h"
#include "kernels/matmul/gemm_sweep.h"

namespace clew::kernels::CLEW_ISA {
namespace {

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
  // As many terms in each lane whatever the width of the vectors.
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

}  // namespace
}  // namespace clew::kernels::CLEW_ISA

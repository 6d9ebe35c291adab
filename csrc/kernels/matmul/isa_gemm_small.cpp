// Products of a few rows and columns: no packing of A, no blocks, one pass over the sums.
// May include: kernels/matmul/gemm_isa.h, kernels/matmul/gemm_vector.h.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
#include "kernels/matmul/gemm_isa.h"
#include "kernels/matmul/gemm_vector.h"

namespace clew::kernels::CLEW_ISA {
namespace {

// `rows` rows of C from row i on, one vector of columns from column j on; the last one is a part.
template <int rows, bool part, class S>
[[gnu::always_inline]] inline void tile(const SmallGemm& g, const S* b, int64_t b_rs, int64_t i,
                                        int64_t j) {
  const int64_t a_rs = g.a_rs, a_cs = g.a_cs, c_rs = g.c_rs;
  const auto* a = reinterpret_cast<const S*>(g.a) + i * a_rs;
  auto* c = reinterpret_cast<S*>(g.c) + i * c_rs + j;
  const int64_t width = g.n - j;
  auto load = [&](const S* from) {
    if constexpr (part) return load_part(from, width);
    Vector<S> v;
    std::memcpy(&v, from, sizeof v);
    return v;
  };
  Vector<S> sums[rows] = {};
  const S* row = b + j;
  for (int64_t k = 0; k < g.k; ++k, row += b_rs, a += a_cs) {
    const Vector<S> v = load(row);
    unroll<rows>([&]<int r> { sums[r] += a[r * a_rs] * v; });
  }
  // The bias comes last, as in larger products: equal bits whatever the number of rows.
  if (g.bias) {
    const Vector<S> more = load(reinterpret_cast<const S*>(g.bias) + j);
    unroll<rows>([&]<int r> { sums[r] += more; });
  }
  unroll<rows>([&]<int r> {
    if constexpr (part)
      store_part(c + r * c_rs, sums[r], width);
    else
      std::memcpy(c + r * c_rs, &sums[r], sizeof sums[r]);
  });
}

// As many rows at a time as addresses and sums have registers for; parts of vectors need more.
template <bool part, class S> void column(const SmallGemm& g, const S* b, int64_t b_rs, int64_t j) {
  int64_t i = 0;
  if constexpr (!part)
    for (; i + 8 <= g.m; i += 8) tile<8, part>(g, b, b_rs, i, j);
  for (; i + 4 <= g.m; i += 4) tile<4, part>(g, b, b_rs, i, j);
  for (; i < g.m; ++i) tile<1, part>(g, b, b_rs, i, j);
}

template <class S> using Four = typename VectorOf<S, 4 * sizeof(S)>::type;

// to[k, j] = b[j, k], where b's rows are contiguous and `stride` elements apart.
template <class S> void turn(const S* b, int64_t stride, int64_t n, int64_t depth, S* to) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      Four<S> in[4];
      unroll<4>([&]<int r> { std::memcpy(&in[r], b + (j + r) * stride + k, sizeof in[r]); });
      const Four<S> low = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
      const Four<S> low2 = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
      const Four<S> high = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
      const Four<S> high2 = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
      const Four<S> out[4] = {__builtin_shufflevector(low, low2, 0, 1, 4, 5),
                              __builtin_shufflevector(low, low2, 2, 3, 6, 7),
                              __builtin_shufflevector(high, high2, 0, 1, 4, 5),
                              __builtin_shufflevector(high, high2, 2, 3, 6, 7)};
      unroll<4>([&]<int r> { std::memcpy(to + (k + r) * n + j, &out[r], sizeof out[r]); });
    }
    for (; k < depth; ++k) unroll<4>([&]<int r> { to[k * n + j + r] = b[(j + r) * stride + k]; });
  }
  for (; j < n; ++j)
    for (int64_t k = 0; k < depth; ++k) to[k * n + j] = b[j * stride + k];
}

template <class S> void product(const SmallGemm& g) {
  const auto* b = reinterpret_cast<const S*>(g.b);
  int64_t b_rs = g.b_rs;
  S turned[small_depth * small_columns];
  if (g.b_cs != 1) {
    turn(b, g.b_cs, g.n, g.k, turned);
    b = turned;
    b_rs = g.n;
  }
  int64_t j = 0;
  for (; j + lanes<S> <= g.n; j += lanes<S>) column<false>(g, b, b_rs, j);
  if (j < g.n) column<true>(g, b, b_rs, j);
}

}  // namespace

void gemm_small(const SmallGemm& g) {
  if (g.dtype == DType::Float32)
    product<float>(g);
  else
    product<double>(g);
}

}  // namespace clew::kernels::CLEW_ISA

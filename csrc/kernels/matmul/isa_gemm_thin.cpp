// Many small matrices times one column each: no packing, no blocks, nothing set up for a product.
// May include: kernels/matmul/gemm_isa.h, kernels/matmul/gemm_vector.h.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
#include "kernels/matmul/gemm_isa.h"
#include "kernels/matmul/gemm_vector.h"

namespace clew::kernels::CLEW_ISA {
namespace {

template <class S>
[[gnu::always_inline]] inline S dot(const S* a, int64_t a_step, const S* b, int64_t b_step,
                                    int64_t k) {
  constexpr int64_t few = 8;
  int64_t j = 0;
  if (k < few || a_step != 1 || b_step != 1) {
    S even{}, odd{};
    for (; j + 2 <= k; j += 2) {
      even += a[j * a_step] * b[j * b_step];
      odd += a[(j + 1) * a_step] * b[(j + 1) * b_step];
    }
    if (j < k) even += a[j * a_step] * b[j * b_step];
    return even + odd;
  }
  Vector<S> sums{};
  for (; j + lanes<S> <= k; j += lanes<S>) sums += load(a + j) * load(b + j);
  if (j < k) sums += load_part(a + j, k - j) * load_part(b + j, k - j);
  return join_all_lanes<S>(sums, [](auto x, auto y) { return x + y; });
}

template <class S> void products(const ThinBatch& g) {
  const auto *a = reinterpret_cast<const S*>(g.a), *b = reinterpret_cast<const S*>(g.b);
  auto* c = reinterpret_cast<S*>(g.c);
  for (int64_t q = 0; q < g.count; ++q, a += g.a_step, b += g.b_step, c += g.c_step) {
    if (g.m == 1 || g.a_rs != 1) {
      for (int64_t i = 0; i < g.m; ++i) c[i * g.c_rs] = dot(a + i * g.a_rs, g.a_cs, b, g.b_rs, g.k);
      continue;
    }
    // Columns that lie in one piece: each times its number.
    for (int64_t i = 0; i < g.m; i += lanes<S>) {
      const int64_t some = least(lanes<S>, g.m - i);
      Vector<S> sums{};
      for (int64_t j = 0; j < g.k; ++j) {
        const S* column = a + j * g.a_cs + i;
        sums += (some == lanes<S> ? load(column) : load_part(column, some)) * b[j * g.b_rs];
      }
      for (int64_t l = 0; l < some; ++l) c[(i + l) * g.c_rs] = sums[l];
    }
  }
}

}  // namespace

void gemm_thin(const ThinBatch& g) {
  if (g.dtype == DType::Float32)
    products<float>(g);
  else
    products<double>(g);
}

}  // namespace clew::kernels::CLEW_ISA

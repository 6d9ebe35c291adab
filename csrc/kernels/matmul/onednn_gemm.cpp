// Matrix products through oneDNN: sgemm for float32, matmul primitives for 16-bit floats.
// May include: base, kernels; oneapi/dnnl/dnnl.h (only onednn_* files do).
// Invariant: any failure of oneDNN ends in `false`, so the caller's own kernel takes over.
#include "kernels/matmul/library_gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <bit>
#include <cmath>

#include "base/long_work.h"
#include "base/signals.h"
#include "kernels/core/onednn_cache.h"

namespace clew::kernels::onednn {

dnnl_engine_t engine() {
  // Never destroyed: a thread may be computing when the process ends.
  static const dnnl_engine_t e = [] {
    dnnl_engine_t made = nullptr;
    check(dnnl_engine_create(&made, dnnl_cpu, 0));
    return made;
  }();
  return e;
}

dnnl_stream_t stream() {
  thread_local Handle<dnnl_stream_t, dnnl_stream_destroy> s = [] {
    Handle<dnnl_stream_t, dnnl_stream_destroy> made;
    check(dnnl_stream_create(made.out(), engine(), dnnl_stream_default_flags));
    return made;
  }();
  return s.get();
}

Attr attributes(float alpha, float beta) {
  Attr attr;
  check(dnnl_primitive_attr_create(attr.out()));
  check(dnnl_primitive_attr_set_scratchpad_mode(attr.get(), dnnl_scratchpad_mode_user));
  if (alpha != 1 || beta != 0) {
    Handle<dnnl_post_ops_t, dnnl_post_ops_destroy> ops;
    check(dnnl_post_ops_create(ops.out()));
    if (alpha != 1) check(dnnl_post_ops_append_eltwise(ops.get(), dnnl_eltwise_linear, alpha, 0));
    if (beta != 0) check(dnnl_post_ops_append_sum(ops.get(), beta, 0, dnnl_data_type_undef));
    check(dnnl_primitive_attr_set_post_ops(attr.get(), ops.get()));
  }
  return attr;
}

namespace {

struct MatmulKey {
  int32_t dtype, transposed;  // bits: a, b
  uint32_t alpha, beta;       // bits of floats: keys are compared and hashed as bytes
  int64_t m, n, k, lda, ldb, ldc;
  bool operator==(const MatmulKey&) const = default;
};

dnnl_memory_desc_t matrix_desc(dnnl_data_type_t type, int64_t rows, int64_t cols, int64_t ld,
                               bool transposed) {
  const dnnl_dims_t dims = {rows, cols};
  const dnnl_dims_t strides = {transposed ? 1 : ld, transposed ? ld : 1};
  dnnl_memory_desc_t desc = nullptr;
  check(dnnl_memory_desc_create_with_strides(&desc, 2, dims, type, strides));
  return desc;
}

Primitive make_matmul(const MatmulKey& key) {
  const auto type = static_cast<dnnl_data_type_t>(key.dtype);
  Desc a(matrix_desc(type, key.m, key.k, key.lda, key.transposed & 1)),
      b(matrix_desc(type, key.k, key.n, key.ldb, key.transposed >> 1));
  Desc c(matrix_desc(type, key.m, key.n, key.ldc, false));
  const Attr attr = attributes(std::bit_cast<float>(key.alpha), std::bit_cast<float>(key.beta));
  dnnl_primitive_desc_t pd = nullptr;
  check(dnnl_matmul_primitive_desc_create(&pd, engine(), a.get(), b.get(), nullptr, c.get(),
                                          attr.get()));
  return Primitive(pd);
}

}  // namespace

}  // namespace clew::kernels::onednn

namespace clew::kernels::library {

using namespace onednn;

const bool is_onednn = true;

// For float32 the overhead is the generation of its kernels during the first call (60 ms); below
// the limit the blocked kernel takes at most a tenth longer, which is 50 microseconds.
int64_t least_work(DType d) { return d == DType::Float32 ? 1 << 26 : 1 << 20; }

bool has_units_for(DType d) {
  static const unsigned isa = dnnl_get_effective_cpu_isa();
  const unsigned asked = d == DType::BFloat16  ? dnnl_cpu_isa_avx512_core_bf16
                         : d == DType::Float16 ? dnnl_cpu_isa_avx512_core_fp16
                                               : 0;
  return asked && (isa & asked) == asked;
}

// ... from which a kernel for one pair of factors is worth making.
constexpr int64_t own_kernel_work = int64_t{1} << 27;

bool takes(const Gemm& g) {
  if (g.dtype != DType::Float32 && g.dtype != DType::BFloat16 && g.dtype != DType::Float16)
    return false;
  if (g.c_cs != 1 || g.c_rs < g.n || g.alpha.is_complex() || g.beta.is_complex()) return false;
  char layout;
  if (!leading(g.m, g.k, g.a_rs, g.a_cs, layout) || !leading(g.k, g.n, g.b_rs, g.b_cs, layout))
    return false;
  // Of 16-bit floats each pair of factors needs a kernel of its own.
  const bool usual = g.alpha.equals(1) && (g.beta.equals(0) || g.beta.equals(1));
  return g.dtype == DType::Float32 || usual ||
         (g.m * g.n >= own_kernel_work / g.k && std::isfinite(g.alpha.to<float>()) &&
          std::isfinite(g.beta.to<float>()));
}

bool gemm(const Gemm& g) {
  if (!takes(g)) return false;
  char ta = 'N', tb = 'N';
  const int64_t lda = leading(g.m, g.k, g.a_rs, g.a_cs, ta);
  const int64_t ldb = leading(g.k, g.n, g.b_rs, g.b_cs, tb);
  const OneThread here;
  if (g.dtype == DType::Float32) {
    const auto *a = reinterpret_cast<const float*>(g.a), *b = reinterpret_cast<const float*>(g.b);
    auto* c = reinterpret_cast<float*>(g.c);
    const int64_t rows = rows_of_call(g);
    for (int64_t i = 0; i < g.m && !stopped(); i += rows) {
      // Some of the library's loops keep data where a signal's frame would be put.
      const WithoutSignals during;
      if (dnnl_sgemm(ta, tb, std::min(rows, g.m - i), g.n, g.k, g.alpha.to<float>(), a + i * g.a_rs,
                     lda, b, ldb, g.beta.to<float>(), c + i * g.c_rs, g.c_rs) != dnnl_success)
        return false;
    }
    end_if_stopped();
    return true;
  }
  const MatmulKey key{g.dtype == DType::BFloat16 ? dnnl_bf16 : dnnl_f16,
                      (ta == 'T') | (tb == 'T') << 1,
                      std::bit_cast<uint32_t>(g.alpha.to<float>()),
                      std::bit_cast<uint32_t>(g.beta.to<float>()),
                      g.m,
                      g.n,
                      g.k,
                      lda,
                      ldb,
                      g.c_rs};
  static auto& cache = *new Cache<MatmulKey>;
  try {
    const PrimitiveRef p = cache.get(key, make_matmul);
    if (!p) return false;
    p->run({{DNNL_ARG_SRC, const_cast<char*>(g.a)},
            {DNNL_ARG_WEIGHTS, const_cast<char*>(g.b)},
            {DNNL_ARG_DST, g.c}});
    return true;
  } catch (const Unsupported&) {
    return false;
  }
}

}  // namespace clew::kernels::library

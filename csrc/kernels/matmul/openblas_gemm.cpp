// Matrix products by the OpenBLAS that NumPy has loaded, in a build without oneDNN.
// May include: base, kernels/core/lapack.h.
// Invariant: where no OpenBLAS was found every answer is no, so the caller's own kernel does the
// job.
#include "base/long_work.h"
#include "kernels/core/lapack.h"
#include "kernels/matmul/library_gemm.h"

namespace clew::kernels::library {

const bool is_onednn = false;

bool has_units_for(DType) { return false; }

int64_t least_work(DType) { return 1 << 18; }

bool takes(const Gemm& g) {
  if (!lapack::multiplies()) return false;
  if (itemsize(g.dtype) < 4 || !(is_floating(g.dtype) || is_complex(g.dtype))) return false;
  if (g.c_cs != 1 || g.c_rs < g.n) return false;
  if (!is_complex(g.dtype) && (g.alpha.is_complex() || g.beta.is_complex())) return false;
  char layout;
  return leading(g.m, g.k, g.a_rs, g.a_cs, layout) && leading(g.k, g.n, g.b_rs, g.b_cs, layout);
}

bool gemm(const Gemm& g) {
  if (!takes(g)) return false;
  char ta = 'N', tb = 'N';
  const int64_t lda = leading(g.m, g.k, g.a_rs, g.a_cs, ta);
  const int64_t ldb = leading(g.k, g.n, g.b_rs, g.b_cs, tb);
  const lapack::Threads here(1);
  const int64_t rows = rows_of_call(g);
  auto run = [&]<class T> {
    const auto *a = reinterpret_cast<const T*>(g.a), *b = reinterpret_cast<const T*>(g.b);
    auto* c = reinterpret_cast<T*>(g.c);
    // The library's matrices lie in columns: seen so, C is transposed, and C^T = B^T A^T.
    for (int64_t i = 0; i < g.m && !stopped(); i += rows)
      lapack::gemm<T>(tb, ta, g.n, std::min(rows, g.m - i), g.k, g.alpha.to<T>(), b, ldb,
                      a + i * g.a_rs, lda, g.beta.to<T>(), c + i * g.c_rs, g.c_rs);
  };
  switch (g.dtype) {
    case DType::Float32: run.operator()<float>(); break;
    case DType::Float64: run.operator()<double>(); break;
    case DType::Complex64: run.operator()<c64>(); break;
    default: run.operator()<c128>();
  }
  end_if_stopped();
  return true;
}

}  // namespace clew::kernels::library

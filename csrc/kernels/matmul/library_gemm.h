// Large matrix products by a library behind plain functions: oneDNN, or OpenBLAS in a build
// without. May include: base, kernels/matmul/gemm.h. Invariant: false means that nothing was
// written: the library cannot or should not do the job.
#pragma once
#include "kernels/matmul/gemm.h"

namespace clew::kernels::library {

// Whether the library is oneDNN.
extern const bool is_onednn;

// Products of the library's dtypes whose operands are row- or column-major and whose C is
// row-major.
bool takes(const Gemm& g);
// Such a product, by the calling thread alone.
bool gemm(const Gemm& g);
// Whether this processor multiplies the 16-bit dtype natively, and the library knows how.
bool has_units_for(DType d);
// Multiply-adds from which the library's overhead is negligible.
int64_t least_work(DType d);

// The leading dimension of a matrix that is row-major ('N') or column-major ('T'); 0 when it is
// neither.
inline int64_t leading(int64_t rows, int64_t cols, int64_t rs, int64_t cs, char& layout) {
  if ((cs == 1 || cols == 1) && (rs >= std::max<int64_t>(1, cols) || rows == 1)) {
    layout = 'N';
    return rows == 1 ? std::max<int64_t>(1, cols) : rs;
  }
  if ((rs == 1 || rows == 1) && (cs >= std::max<int64_t>(1, rows) || cols == 1)) {
    layout = 'T';
    return cols == 1 ? std::max<int64_t>(1, rows) : cs;
  }
  return 0;
}

// Multiply-adds of one call of the library, some tenths of a second: a call cannot be interrupted.
constexpr int64_t call_work = int64_t{1} << 33;
// Rows of C that one call does.
inline int64_t rows_of_call(const Gemm& g) {
  return std::max<int64_t>(256, call_work / (g.n * g.k) / 16 * 16);
}

}  // namespace clew::kernels::library

// Softmax along one axis and its gradient; the choice of the row loops' instruction set.
// May include: base, kernels.
// Invariant: the maximum is subtracted before exp(), so nothing overflows.
#include "kernels/softmax.h"

#include <cmath>

#include "kernels/instruction_set.h"
#include "kernels/reduce_lines.h"
#include "kernels/softmax_rows.h"

namespace clew::kernels {

namespace baseline {
extern const RowOps<float> rows_float;
extern const RowOps<double> rows_double;
}  // namespace baseline
namespace avx2 {
extern const RowOps<float> rows_float;
extern const RowOps<double> rows_double;
}  // namespace avx2
namespace avx512 {
extern const RowOps<float> rows_float;
extern const RowOps<double> rows_double;
}  // namespace avx512

namespace {

template <class C> const RowOps<C>& choose() {
  constexpr bool single = std::is_same_v<C, float>;
#ifndef CLEW_ONLY_BASELINE
  InstructionSet isa = instruction_set();
  if (isa == InstructionSet::avx512) {
    if constexpr (single)
      return avx512::rows_float;
    else
      return avx512::rows_double;
  }
  if (isa == InstructionSet::avx2) {
    if constexpr (single)
      return avx2::rows_float;
    else
      return avx2::rows_double;
  }
#endif
  if constexpr (single)
    return baseline::rows_float;
  else
    return baseline::rows_double;
}

}  // namespace

template <class C> const RowOps<C>& row_ops() {
  static const RowOps<C>& chosen = choose<C>();
  return chosen;
}
template const RowOps<float>& row_ops<float>();
template const RowOps<double>& row_ops<double>();

void softmax(const NdView& dst, const NdView& src, int dim, bool log) {
  dispatch(dst.dtype, FloatTypes{}, [&]<class T>() {
    using C = compute_t<T>;
    const RowOps<C>& ops = row_ops<C>();
    for_lines<T, 2>({dst, src}, dim, [&](C* const* rows, int64_t n) {
      C top = ops.max(rows[1], n);
      if (log) {
        double total = ops.exp_sum(rows[1], n, top);
        ops.affine(rows[0], rows[1], n, C(1),
                   static_cast<C>(-(static_cast<double>(top) + std::log(total))));
      } else {
        double total = ops.exp_store(rows[0], rows[1], n, top);
        ops.affine(rows[0], rows[0], n, static_cast<C>(1 / total), C(0));
      }
    });
  });
}

void softmax_backward(const NdView& dst, const NdView& grad, const NdView& out, int dim, bool log) {
  dispatch(dst.dtype, FloatTypes{}, [&]<class T>() {
    using C = compute_t<T>;
    const RowOps<C>& ops = row_ops<C>();
    for_lines<T, 3>({dst, grad, out}, dim, [&](C* const* rows, int64_t n) {
      if (log) {
        ops.log_softmax_grad(rows[0], rows[1], rows[2], n, static_cast<C>(ops.sum(rows[1], n)));
      } else {
        ops.softmax_grad(rows[0], rows[1], rows[2], n,
                         static_cast<C>(ops.dot(rows[1], rows[2], n)));
      }
    });
  });
}

}  // namespace clew::kernels

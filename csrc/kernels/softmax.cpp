// Softmax along one axis and its gradient; the choice of the row loops' instruction set.
// May include: base, kernels.
// Invariant: the maximum is subtracted before exp(), so nothing overflows.
#include "kernels/softmax.h"

#include <cmath>
#include <memory>

#include "kernels/instruction_set.h"
#include "kernels/reduce_lines.h"
#include "kernels/softmax_columns.h"
#include "kernels/softmax_rows.h"

namespace clew::kernels {

namespace baseline {
extern const RowOps<float> rows_float;
extern const RowOps<double> rows_double;
extern const ColumnSoftmax<float> columns_float;
extern const ColumnSoftmax<double> columns_double;
}  // namespace baseline
namespace avx2 {
extern const RowOps<float> rows_float;
extern const RowOps<double> rows_double;
extern const ColumnSoftmax<float> columns_float;
extern const ColumnSoftmax<double> columns_double;
}  // namespace avx2
namespace avx512 {
extern const RowOps<float> rows_float;
extern const RowOps<double> rows_double;
extern const ColumnSoftmax<float> columns_float;
extern const ColumnSoftmax<double> columns_double;
}  // namespace avx512

namespace {

template <class C> const RowOps<C>& choose_rows() {
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

template <class C> const ColumnSoftmax<C>& choose_columns() {
  constexpr bool single = std::is_same_v<C, float>;
#ifndef CLEW_ONLY_BASELINE
  InstructionSet isa = instruction_set();
  if (isa == InstructionSet::avx512) {
    if constexpr (single)
      return avx512::columns_float;
    else
      return avx512::columns_double;
  }
  if (isa == InstructionSet::avx2) {
    if constexpr (single)
      return avx2::columns_float;
    else
      return avx2::columns_double;
  }
#endif
  if constexpr (single)
    return baseline::columns_float;
  else
    return baseline::columns_double;
}

// Calls f(offsets, width, room) for tiles of neighbouring lines along `dim`, in parallel. False
// when the lines do not lie side by side in all operands. `room` is column_room() of a tile, if
// it is wanted.
template <class C, bool room_wanted, int K, class F>
bool for_columns(const Lines<K>& lines, F&& f) {
  if (lines.axes.empty() || lines.axes.back().size < 8) return false;
  for (int k = 0; k < K; ++k)
    if (lines.spacing(k) != 1 || lines.step[k] == 1) return false;
  int64_t n = lines.length[0], inner = lines.axes.back().size;
  // Rows far apart are read in long pieces, unless that leaves threads without work, or the copy of
  // a piece would not stay in the cache.
  bool large = n * inner * static_cast<int64_t>(sizeof(C)) >= (int64_t{4} << 20);
  bool enough = lines.count >= 2 * column_tile * num_threads();
  int64_t width = large && enough && !room_wanted ? column_tile : column_tile / 2;
  int64_t tiles = (inner + width - 1) / width;
  int64_t grain = std::max<int64_t>(1, grain_default / 4 / std::max<int64_t>(n * width, 1));
  parallel_for(lines.count / inner * tiles, grain, [&](int64_t begin, int64_t end) {
    std::unique_ptr<C[]> room;
    if (room_wanted) room.reset(new C[static_cast<size_t>(column_room(n, width))]);
    for (int64_t u = begin; u < end; ++u) {
      int64_t first = u % tiles * width;
      f(lines.place(u / tiles * inner + first), std::min(width, inner - first), room.get());
    }
  });
  return true;
}

}  // namespace

template <class C> const RowOps<C>& row_ops() {
  static const RowOps<C>& chosen = choose_rows<C>();
  return chosen;
}
template const RowOps<float>& row_ops<float>();
template const RowOps<double>& row_ops<double>();
template <class C> const ColumnSoftmax<C>& column_softmax() {
  static const ColumnSoftmax<C>& chosen = choose_columns<C>();
  return chosen;
}
template const ColumnSoftmax<float>& column_softmax<float>();
template const ColumnSoftmax<double>& column_softmax<double>();

void softmax(const NdView& dst, const NdView& src, int dim, bool log) {
  dispatch(dst.dtype, FloatTypes{}, [&]<class T>() {
    using C = compute_t<T>;
    if constexpr (std::is_same_v<T, C>) {
      Lines<2> lines({dst, src}, dim);
      if (lines.count == 0) return;
      bool done =
          for_columns<C, true>(lines, [&](const std::array<int64_t, 2>& at, int64_t w, C* room) {
            column_softmax<C>().softmax(dst.ptr<C>() + at[0], lines.step[0], src.ptr<C>() + at[1],
                                        lines.step[1], lines.length[0], w, log, room);
          });
      if (done) return;
    }
    const RowOps<C>& ops = row_ops<C>();
    for_lines<T, 2>({dst, src}, dim, [&](C* const* rows, int64_t n) {
      C top = ops.max(rows[1], n);
      if (log) {
        double total = ops.exp_sum_before(rows[0], rows[1], n, top);
        ops.centred(rows[0], rows[1], n, top, C(1), static_cast<C>(-std::log(total)));
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
    if constexpr (std::is_same_v<T, C>) {
      Lines<3> lines({dst, grad, out}, dim);
      if (lines.count == 0) return;
      bool done =
          for_columns<C, false>(lines, [&](const std::array<int64_t, 3>& at, int64_t w, C*) {
            column_softmax<C>().gradient(dst.ptr<C>() + at[0], lines.step[0], grad.ptr<C>() + at[1],
                                         lines.step[1], out.ptr<C>() + at[2], lines.step[2],
                                         lines.length[0], w, log);
          });
      if (done) return;
    }
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

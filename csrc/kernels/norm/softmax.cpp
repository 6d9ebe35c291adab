// Softmax along one axis and its gradient; the choice of the row loops' instruction set.
// May include: base, kernels.
// Invariant: the maximum is subtracted before exp(), so nothing overflows.
#include "kernels/norm/softmax.h"

#include <cmath>
#include <memory>

#include "base/scratch.h"
#include "kernels/core/instruction_set.h"
#include "kernels/core/loop_tables.h"
#include "kernels/norm/softmax_columns.h"
#include "kernels/norm/softmax_rows.h"
#include "kernels/reduce/reduce_lines.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const RowOps<float> rows_float; extern const RowOps<double> rows_double;
                 extern const ColumnSoftmax<float> columns_float;
                 extern const ColumnSoftmax<double> columns_double;)

namespace {

template <class C> const RowOps<C>& choose_rows() {
  return of_type<C>(CLEW_CHOSEN(rows_float), CLEW_CHOSEN(rows_double));
}

template <class C> const ColumnSoftmax<C>& choose_columns() {
  return of_type<C>(CLEW_CHOSEN(columns_float), CLEW_CHOSEN(columns_double));
}

// Calls f(offsets, width, room) for tiles of neighbouring lines along `dim`, in parallel. False
// when the lines do not lie side by side in all operands. `room` is column_room() of a tile, if
// it is wanted.
template <class C, bool room_wanted, int K, class F>
bool for_columns(const Lines<K>& lines, F&& f) {
  if (lines.axes.empty() || lines.axes.back().size < 8) return false;
  for (int k = 0; k < K; ++k)
    if (lines.spacing(k) != 1 || (lines.step[k] == 1 && lines.length[k] != 1)) return false;
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

const LocalScratch tile_rooms[3];

// Neighbouring columns in compute type: where they lie, or for 16-bit floats a copy.
template <class T> struct Tile {
  using C = compute_t<T>;
  static constexpr bool copied = !std::is_same_v<T, C>;
  C* data;
  int64_t step;

  Tile(int room, const T* at, int64_t at_step, int64_t length, int64_t width)
      : data(nullptr),
        step(at_step),
        room_(room),
        at_(const_cast<T*>(at)),
        at_step_(at_step),
        length_(length),
        width_(width) {
    if constexpr (copied) {
      data = tile_rooms[room].of<C>(length * width);
      step = width;
    } else {
      data = at_;
    }
  }
  ~Tile() {
    if constexpr (copied) tile_rooms[room_].trim(4);  // megabytes
  }
  Tile(const Tile&) = delete;
  Tile& operator=(const Tile&) = delete;

  void load() const {
    if constexpr (copied) each_row<C, T>(data, step, at_, at_step_);
  }
  void store() const {
    if constexpr (copied) each_row<T, C>(at_, at_step_, data, step);
  }

 private:
  template <class To, class From>
  void each_row(To* to, int64_t to_step, From* from, int64_t from_step) const {
    const Loop loop = cast_loop_of(dtype_of<From>(), dtype_of<To>());
    const int64_t steps[] = {sizeof(To), sizeof(From)};
    for (int64_t r = 0; r < length_; ++r) {
      char* const row[] = {reinterpret_cast<char*>(to + r * to_step),
                           reinterpret_cast<char*>(from + r * from_step)};
      loop(row, steps, width_, nullptr);
    }
  }

  int room_;
  T* at_;
  int64_t at_step_, length_, width_;
};

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
    Lines<2> lines({dst, src}, dim);
    if (lines.count == 0) return;
    const int64_t length = lines.length[0];
    bool done =
        for_columns<C, true>(lines, [&](const std::array<int64_t, 2>& at, int64_t w, C* room) {
          const Tile<T> y(0, dst.ptr<T>() + at[0], lines.step[0], length, w),
              x(1, src.ptr<const T>() + at[1], lines.step[1], length, w);
          x.load();
          column_softmax<C>().softmax(y.data, y.step, x.data, x.step, length, w, log, room);
          y.store();
        });
    if (done) return;
    const RowOps<C>& ops = row_ops<C>();
    if constexpr (std::is_same_v<T, C>) {
      // Short rows one after the other: a few at a time, as if there were no more.
      const bool adjoin = lines.step[0] == 1 && lines.step[1] == 1 && lines.axes.size() == 1 &&
                          lines.spacing(0) == length && lines.spacing(1) == length;
      if (adjoin && length > 0 && length <= ops.few_width && dst.data != src.data) {
        auto run = [&](int64_t begin, int64_t end) {
          ops.softmax_few(dst.ptr<T>() + begin * length, src.ptr<const T>() + begin * length,
                          end - begin, length, log);
        };
        return parallel_for(lines.count, grain_default / 4 / length, run);
      }
    }
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
    Lines<3> lines({dst, grad, out}, dim);
    if (lines.count == 0) return;
    const int64_t length = lines.length[0];
    bool done = for_columns<C, false>(lines, [&](const std::array<int64_t, 3>& at, int64_t w, C*) {
      const Tile<T> dx(0, dst.ptr<T>() + at[0], lines.step[0], length, w),
          g(1, grad.ptr<const T>() + at[1], lines.step[1], length, w),
          y(2, out.ptr<const T>() + at[2], lines.step[2], length, w);
      g.load();
      y.load();
      column_softmax<C>().gradient(dx.data, dx.step, g.data, g.step, y.data, y.step, length, w,
                                   log);
      dx.store();
    });
    if (done) return;
    const RowOps<C>& ops = row_ops<C>();
    for_lines<T, 3>({dst, grad, out}, dim, [&](C* const* rows, int64_t n) {
      ops.softmax_grad(rows[0], rows[1], rows[2], n, log);
    });
  });
}

}  // namespace clew::kernels

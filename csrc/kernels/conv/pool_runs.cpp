// Pooling of planes with regular windows: the inputs of a piece of rows are sorted by the remainder
// of their column, so that a tap of neighbouring windows is a run that fits into vectors.
// May include: base, kernels/core, kernels/conv/pool_loops.h.
// Invariant: a window is computed by one thread in one order, and what spreads over a plane belongs
// to one thread, so results do not depend on the number of threads.
#include "kernels/conv/pool_runs.h"

#include <cmath>

#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/conv/pool_loops.h"
#include "kernels/core/instruction_set.h"
#include "kernels/core/loop_tables.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const PoolLoops pool_loops;)

namespace {

constexpr int64_t most_taps = 1024, most_inputs = 1 << 18;
// Windows of a piece, roughly: its inputs and results stay in the nearest cache.
constexpr int64_t piece_windows = 2048, piece_columns = 1024;
// Shorter rows are computed together with what lies between them.
constexpr int64_t short_row = 32;
// Planes that are copied by a list of their elements.
constexpr int64_t short_columns = 16, small_inputs = 1024;
constexpr size_t kept_megabytes = 8;

const LocalScratch inputs_scratch, results_scratch, places_scratch, wide_scratch;

// Rows [row, row + rows) of windows, from `column` on, n in each, of output depth a. Rows count
// from the first one of the group's first plane.
struct Piece {
  int64_t group, a, row, rows, column, n;
};

// A piece keeps every stride-th column from `first` on.
struct Stretch {
  int64_t first, begin, end;
};

// How the planes of a call are cut into pieces. A group is a plane, or all planes where windows
// never reach from one into the next.
class Plan {
  const PoolShape& s_;

 public:
  const PoolDim &d0, &d1, &d2;
  int64_t span1, phases, reach;  // rows a window touches; remainders of columns; columns beyond
  bool joined;                   // the planes are one group
  bool tiled;                    // and no column lies between windows, or in two of them
  int64_t groups, in_rows, out_rows;  // of a group
  int64_t columns, pitch, rows;       // of a piece
  bool across;                        // its rows are one run
  int64_t lines, block, inputs, out_step;
  bool full;   // all windows lie inside, as far as their means count
  bool small;  // a plane is a piece, and its rows are short
  static constexpr int64_t known_stretches = 4;
  Stretch known[known_stretches];  // of a piece that has all columns

  explicit Plan(const PoolShape& s) : s_(s), d0(s.dim[0]), d1(s.dim[1]), d2(s.dim[2]) {
    span1 = (d1.kernel - 1) * d1.step + 1;
    const int64_t span2 = (d2.kernel - 1) * d2.step;
    phases = std::min(d2.stride, span2 + 1);
    reach = span2 / d2.stride;
    joined = d0.in == 1 && d0.out == 1 && d0.start(0) == 0 && d0.end(0) == 1 && d1.pad == 0 &&
             d1.in == d1.stride * d1.out && span1 <= d1.stride;
    groups = joined ? 1 : s.planes;
    in_rows = joined ? s.planes * d1.in : d1.in;
    out_rows = joined ? s.planes * d1.out : d1.out;
    columns = std::min(d2.out, piece_columns);
    pitch = columns + reach;
    tiled = joined && d2.pad == 0 && reach == 0 && d2.in == d2.stride * d2.out && columns == d2.out;
    rows = std::clamp<int64_t>(piece_windows / (d1.stride * pitch), 1, out_rows);
    across = rows > 1 && columns < short_row;
    lines = (rows - 1) * d1.stride + (tiled ? d1.stride : span1);
    block = lines * pitch + run_slack;
    inputs = std::min(d0.kernel, d0.in) * phases * block;
    out_step = across ? d1.stride * pitch : columns + run_slack;
    for (int64_t q = 0; q < std::min(phases, known_stretches); ++q) known[q] = stretch(0, q);
    full = true;
    for (const PoolDim& d : s.dim) {
      const int64_t most = (d.kernel - 1) * d.step + 1;
      full = full && d.count(0) == most && d.count(d.out - 1) == most;
    }
    small = !joined && columns <= short_columns && inputs <= small_inputs && pieces_of_group() == 1;
  }
  // Whether windows of this kind are for these loops at all.
  static bool fits(const PoolShape& s) {
    double taps = 1, inputs = 1;
    for (const PoolDim& d : s.dim) taps *= static_cast<double>(d.kernel);
    if (s.channels != 0 || taps > static_cast<double>(most_taps)) return false;
    for (int i = 0; i < 3; ++i) {
      const PoolDim& d = s.dim[i];
      if (d.stride <= 0 || d.step > most_inputs || d.stride > most_inputs) return false;
      inputs *= static_cast<double>(i == 0 ? d.kernel : (d.kernel - 1) * d.step + d.stride + 1);
    }
    return inputs <= static_cast<double>(most_inputs) / 4 && s.out_points() > 0 &&
           s.in_points() < INT32_MAX / 2 && Plan(s).inputs <= most_inputs;
  }

  int64_t bands() const { return (out_rows + rows - 1) / rows; }
  int64_t pieces_across() const { return (d2.out + columns - 1) / columns; }
  int64_t pieces() const { return groups * pieces_of_group(); }
  int64_t pieces_of_group() const { return d0.out * bands() * pieces_across(); }
  Piece piece(int64_t i) const {
    const int64_t column = i % pieces_across() * columns,
                  row = i / pieces_across() % bands() * rows, above = i / pieces_across() / bands();
    return {above / d0.out,
            above % d0.out,
            row,
            std::min(rows, out_rows - row),
            column,
            std::min(columns, d2.out - column)};
  }
  void next(Piece& p) const {
    if ((p.column += columns) >= d2.out) {
      p.column = 0;
      if ((p.row += rows) >= out_rows) {
        p.row = 0;
        if (++p.a == d0.out) p.a = 0, ++p.group;
      }
    }
    p.rows = std::min(rows, out_rows - p.row);
    p.n = std::min(columns, d2.out - p.column);
  }
  int64_t work() const { return std::max<int64_t>(1, rows * columns * d1.kernel * d2.kernel); }

  // The columns of remainder q that a piece keeps: [begin, end) lie inside.
  Stretch stretch(int64_t column, int64_t q) const {
    const int64_t first = column * d2.stride - d2.pad + q;
    const int64_t begin = std::min(pitch, first >= 0 ? 0 : (-first + d2.stride - 1) / d2.stride);
    const int64_t end = first >= d2.in ? 0 : (d2.in - 1 - first) / d2.stride + 1;
    return {first, begin, std::clamp(end, begin, pitch)};
  }
  // The taps of windows at depth a, and their places beside the first one of a window in its slice.
  template <class P> int64_t list_taps(int64_t a, int64_t* at, P* places) const {
    int64_t t = 0, slot = 0;
    for (int64_t d = d0.start(a); d < d0.end(a); d += d0.step, slot += phases * block) {
      for (int64_t j = 0; j < d1.kernel; ++j) {
        for (int64_t k = 0; k < d2.kernel; ++k) {
          const int64_t line = j * d1.step, column = k * d2.step;
          at[t] = slot + column % d2.stride * block + line * pitch + column / d2.stride;
          places[t++] = static_cast<P>((d * d1.in + line) * d2.in + column);
        }
      }
    }
    return t;
  }
  PoolRuns runs(const Piece& p, int64_t taps, const int64_t* at) const {
    if (across) return {1, (p.rows - 1) * out_step + p.n, 0, 0, taps, at};
    return {p.rows, p.n, d1.stride * pitch, out_step, taps, at};
  }

  // Calls f(offset in a group's planes, columns, where they are kept) for the stretches of inputs
  // of a piece, stride columns apart, and rest(where, n) for what is kept and lies outside.
  template <class F, class G> void each_stretch(const Piece& p, F&& f, G&& rest) const {
    int64_t slot = 0;
    for (int64_t d = d0.start(p.a); d < d0.end(p.a); d += d0.step, slot += phases * block) {
      for (int64_t q = 0; q < phases; ++q) {
        const int64_t to = slot + q * block;
        if (tiled) {
          f(p.row * d1.stride * d2.in + q, p.rows * d1.stride * p.n, to);
          continue;
        }
        const Stretch inside =
            columns == d2.out && q < known_stretches ? known[q] : stretch(p.column, q);
        const int64_t begin = inside.begin, end = inside.end;
        const int64_t from = inside.first + begin * d2.stride;
        const int64_t n = (p.rows - 1) * d1.stride + span1;
        for (int64_t r = 0; r < n; ++r) {
          if (span1 < d1.stride && r % d1.stride >= span1) continue;
          const int64_t row = p.row * d1.stride - d1.pad + r, line = to + r * pitch;
          if (row < 0 || row >= in_rows) {
            rest(line, pitch);
            continue;
          }
          rest(line, begin);
          if (end > begin) f((d * in_rows + row) * d2.in + from, end - begin, line + begin);
          rest(line + end, pitch - end);
        }
      }
    }
  }
  // Calls f(i, plane, b, offset of its results in the whole output) for the rows of a piece.
  template <class F> void each_row(const Piece& p, F&& f) const {
    int64_t plane = p.group + (joined ? p.row / d1.out : 0), b = joined ? p.row % d1.out : p.row;
    for (int64_t i = 0; i < p.rows; ++i) {
      f(i, b, ((plane * d0.out + p.a) * d1.out + b) * d2.out + p.column);
      if (++b == d1.out) b = 0, ++plane;
    }
  }
  // How many rows of inputs the means of row b of windows count, unless all are alike.
  int64_t rows_counted(const Piece& p, int64_t b) const {
    return s_.divisor != 0 || full ? 0 : d0.count(p.a) * d1.count(b);
  }
  double divisor(const Piece& p, int64_t b, int64_t o) const {
    return static_cast<double>(s_.divisor != 0 ? s_.divisor
                                               : d0.count(p.a) * d1.count(b) * d2.count(o));
  }
};

template <class A> const RunLoops<A>& loops_of() {
  const PoolLoops& chosen = CLEW_CHOSEN(pool_loops);
  if constexpr (std::is_same_v<A, float>)
    return chosen.runs_float;
  else if constexpr (std::is_same_v<A, double>)
    return chosen.runs_double;
  else
    return run_loops<A>;
}
template <class A> auto greatest_of() {
  const PoolLoops& chosen = CLEW_CHOSEN(pool_loops);
  if constexpr (std::is_same_v<A, float>)
    return chosen.greatest_float;
  else if constexpr (std::is_same_v<A, double>)
    return chosen.greatest_double;
  else
    return greatest_of_runs<A>;
}

template <class From, class To> void cast(const From* x, int64_t n, To* y) {
  char* const rows[] = {reinterpret_cast<char*>(y), reinterpret_cast<char*>(const_cast<From*>(x))};
  const int64_t steps[] = {sizeof(To), sizeof(From)};
  cast_loop_of(dtype_of<From>(), dtype_of<To>())(rows, steps, n, nullptr);
}

// What a thread keeps from one piece to the next: the taps,
template <class P> struct TapList {
  int64_t a = -1, count = 0;
  int64_t at[most_taps];
  P places[most_taps];
  PoolRuns runs(const Plan& plan, const Piece& p) {
    if (p.a != a) count = plan.list_taps(a = p.a, at, places);
    return plan.runs(p, count, at);
  }
};
// and what the sums of a row of windows are divided by.
template <class R> struct DivisorList {
  int64_t rows = -1, column = -1;
  R by[piece_columns];
  const R* of(const Plan& plan, const Piece& p, int64_t b) {
    const int64_t counted = plan.rows_counted(p, b);
    if (counted != rows || p.column != column) {
      rows = counted, column = p.column;
      for (int64_t o = 0; o < p.n; ++o) by[o] = static_cast<R>(plan.divisor(p, b, column + o));
    }
    return by;
  }
};

// Where the inputs of a small plane are kept: its rows are so short that a copy of each takes
// longer than to copy elements. What lies outside is filled in once.
struct SmallPlane {
  int64_t count = 0;
  int32_t from[small_inputs], to[small_inputs];
  // The list, and rest(where, n) for what lies outside when it is made.
  template <class F> void make(const Plan& plan, const Piece& p, F&& rest) {
    if (count > 0) return;
    plan.each_stretch(
        p,
        [&](int64_t place, int64_t n, int64_t kept) {
          for (int64_t j = 0; j < n; ++j, ++count) {
            from[count] = static_cast<int32_t>(place + j * plan.d2.stride);
            to[count] = static_cast<int32_t>(kept + j);
          }
        },
        rest);
  }
};

// The inputs of a piece, sorted, as A.
template <class A, class T>
void sort_inputs(const Plan& plan, const Piece& p, const T* x, A outside, SmallPlane& small,
                 A* inputs) {
  const auto fill = [&](int64_t to, int64_t n) { std::fill_n(inputs + to, n, outside); };
  if (plan.small) {
    small.make(plan, p, fill);
    for (int64_t m = 0; m < small.count; ++m)
      inputs[small.to[m]] = static_cast<A>(x[small.from[m]]);
    return;
  }
  const auto every = loops_of<A>().every;
  const int64_t stride = plan.d2.stride;
  plan.each_stretch(
      p,
      [&](int64_t from, int64_t n, int64_t to) {
        if constexpr (std::is_same_v<A, T>) {
          every(x + from, stride, n, inputs + to);
        } else {
          const int64_t all = (n - 1) * stride + 1;
          A* wide = wide_scratch.of<A>(all);
          cast(x + from, all, wide);
          every(wide, stride, n, inputs + to);
        }
      },
      fill);
}
void trim() {
  for (const LocalScratch* s : {&inputs_scratch, &results_scratch, &places_scratch, &wide_scratch})
    s->trim(kept_megabytes);
}

template <class P> struct Kept {
  TapList<P> taps;
  SmallPlane small;
};
template <class R> struct KeptOfMeans : Kept<int64_t> { DivisorList<R> divisors; };

// Calls f(what a thread keeps, piece) for all pieces, in parallel.
template <class K, class F> void each_piece(const Plan& plan, F&& f) {
  parallel_for(plan.pieces(), std::max<int64_t>(1, grain_default / plan.work()),
               [&](int64_t begin, int64_t end) {
                 K kept;
                 Piece p = plan.piece(begin);
                 for (int64_t i = begin; i < end && !stopped(); ++i, plan.next(p)) f(kept, p);
                 trim();
               });
}
// Results of a piece, with what lies between its rows.
int64_t room_of(const Plan& plan) { return plan.rows * plan.out_step + run_slack; }

}  // namespace

bool max_pool_runs(const PoolShape& s, const void* x, void* values, int64_t* indices) {
  if (!Plan::fits(s)) return false;
  const Plan plan(s);
  const int64_t in = s.in_points();
  dispatch(s.dtype, PoolTypes{}, [&]<class T> {
    using A = compute_t<T>;
    using P = place_t<T>;
    each_piece<Kept<P>>(plan, [&](Kept<P>& kept, const Piece& p) {
      A* inputs = inputs_scratch.of<A>(plan.inputs);
      sort_inputs<A>(plan, p, static_cast<const T*>(x) + p.group * in, lowest<A>(), kept.small,
                     inputs);
      A* value = results_scratch.of<A>(room_of(plan));
      P* place = places_scratch.of<P>(room_of(plan));
      greatest_of<A>()(kept.taps.runs(plan, p), inputs, kept.taps.places, value, place);
      const PoolDim &d0 = s.dim[0], &d1 = s.dim[1], &d2 = s.dim[2];
      plan.each_row(p, [&](int64_t i, int64_t b, int64_t row) {
        const A* from = value + i * plan.out_step;
        const P* of = place + i * plan.out_step;
        T* to = static_cast<T*>(values) + row;
        const int64_t base = (b * d1.stride - d1.pad) * d2.in + p.column * d2.stride - d2.pad;
        int64_t* index = indices + row;
        P lowest_place = 0;
#pragma GCC ivdep
        for (int64_t o = 0; o < p.n; ++o) {
          to[o] = static_cast<T>(from[o]);
          index[o] = base + o * d2.stride + of[o];
          lowest_place |= of[o];
        }
        const bool none = lowest_place < 0;
        if (!none) return;
        const int64_t corner = (d0.start(p.a) * d1.in + d1.start(b)) * d2.in;
        for (int64_t o = 0; o < p.n; ++o)
          if (of[o] < 0) index[o] = corner + d2.start(p.column + o);
      });
    });
  });
  return true;
}

bool mean_pool_runs(const PoolShape& s, const void* x, void* y) {
  if (!Plan::fits(s)) return false;
  const Plan plan(s);
  const int64_t in = s.in_points();
  dispatch(s.dtype, MeanPoolTypes{}, [&]<class T> {
    using A = accumulate_t<T>;
    using R = divisor_t<A>;
    using Kept = KeptOfMeans<R>;
    each_piece<Kept>(plan, [&](Kept& kept, const Piece& p) {
      A* inputs = inputs_scratch.of<A>(plan.inputs);
      sort_inputs<A>(plan, p, static_cast<const T*>(x) + p.group * in, A(0), kept.small, inputs);
      A* sum = results_scratch.of<A>(room_of(plan));
      loops_of<A>().sums(kept.taps.runs(plan, p), inputs, sum);
      plan.each_row(p, [&](int64_t i, int64_t b, int64_t row) {
        const R* by = kept.divisors.of(plan, p, b);
        A* mean = sum + i * plan.out_step;
        T* to = static_cast<T*>(y) + row;
        if constexpr (std::is_same_v<A, T>) {
          for (int64_t o = 0; o < p.n; ++o) to[o] = mean[o] / by[o];
        } else {
          for (int64_t o = 0; o < p.n; ++o) mean[o] /= by[o];
          cast(mean, p.n, to);
        }
      });
    });
  });
  return true;
}

bool mean_pool_backward_runs(const PoolShape& s, const void* gy, void* gx) {
  if (!Plan::fits(s)) return false;
  const Plan plan(s);
  const int64_t in = s.in_points();
  dispatch(s.dtype, InexactTypes{}, [&]<class T> {
    using A = accumulate_t<T>;
    using R = divisor_t<A>;
    using Kept = KeptOfMeans<R>;
    const auto spread = [&](Kept& kept, const Piece& p, A* to, int64_t first) {
      A* part = results_scratch.of<A>(room_of(plan));
      if (plan.across) std::fill_n(part, (p.rows - 1) * plan.out_step + p.n, A(0));
      plan.each_row(p, [&](int64_t i, int64_t b, int64_t row) {
        const R* by = kept.divisors.of(plan, p, b);
        const T* from = static_cast<const T*>(gy) + row;
        A* line = part + i * plan.out_step;
        for (int64_t o = 0; o < p.n; ++o) line[o] = static_cast<A>(from[o]) / by[o];
      });
      A* sums = inputs_scratch.of<A>(plan.inputs);
      std::fill_n(sums, plan.inputs, A(0));
      loops_of<A>().spread(kept.taps.runs(plan, p), part, sums);
      if (plan.small) {
        const SmallPlane& small = kept.small;
        kept.small.make(plan, p, [](int64_t, int64_t) {});
        for (int64_t m = 0; m < small.count; ++m) to[small.from[m] - first] += sums[small.to[m]];
        return;
      }
      plan.each_stretch(
          p,
          [&](int64_t place, int64_t n, int64_t from) {
            loops_of<A>().add_every(sums + from, s.dim[2].stride, n, to + (place - first));
          },
          [](int64_t, int64_t) {});
    };
    // Where windows of two pieces share inputs, a thread has a whole plane.
    const int64_t units = plan.joined ? plan.bands() : plan.groups;
    const int64_t each = plan.pieces() / units;
    const int64_t work = std::max(in * s.planes / units, plan.work() * each);
    parallel_for(units, std::max<int64_t>(1, grain_default / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   Kept kept;
                   Piece p = plan.piece(begin * each);
                   for (int64_t u = begin; u < end && !stopped(); ++u) {
                     const int64_t place =
                         plan.joined ? p.row * s.dim[1].stride * s.dim[2].in : u * in;
                     const int64_t n = plan.joined ? p.rows * s.dim[1].stride * s.dim[2].in : in;
                     T* out = static_cast<T*>(gx) + place;
                     A* to;
                     if constexpr (std::is_same_v<A, T>)
                       to = out;
                     else
                       to = wide_scratch.of<A>(n);
                     std::fill_n(to, n, A(0));
                     for (int64_t i = 0; i < each; ++i, plan.next(p))
                       spread(kept, p, to, plan.joined ? place : 0);
                     if constexpr (!std::is_same_v<A, T>) cast(to, n, out);
                   }
                   trim();
                 });
  });
  return true;
}

}  // namespace clew::kernels

// run_loop: walks several strided operands of one shape and hands inner rows to a Loop.
// May include: base, kernels.
// Invariant: the split over threads depends on shape, strides and thread count only, never on
// values.
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "base/ndview.h"
#include "kernels/core/transpose.h"

namespace clew::kernels {

namespace {

constexpr int max_operands = 8;
constexpr int64_t repeated_most = 512;  // elements of repeated rows, written out

// The dims that are left after size-1 dims are gone and neighbours are merged; [0] is the
// innermost.
struct LoopWalk {
  int ndim = 0;
  int count = 0;
  int64_t sizes[max_dims];
  int64_t steps[max_dims][max_operands];  // bytes

  // Whether dim a should lie inside dim b: decided by the first operand whose strides differ.
  bool inside(int a, int b) const {
    for (int k = 0; k < count; ++k) {
      int64_t x = std::abs(steps[a][k]);
      int64_t y = std::abs(steps[b][k]);
      if (x == 0 || y == 0) continue;
      if (x != y) return x < y;
    }
    return false;
  }
  void swap_dims(int a, int b) {
    std::swap(sizes[a], sizes[b]);
    for (int k = 0; k < count; ++k) std::swap(steps[a][k], steps[b][k]);
  }
  void sort() {
    // Insertion sort; `inside` is no total order when strides are 0, and this stays put in doubt.
    for (int i = 1; i < ndim; ++i) {
      for (int j = i; j > 0 && inside(j, j - 1); --j) swap_dims(j, j - 1);
    }
  }
  void coalesce() {
    int last = 0;
    for (int d = 1; d < ndim; ++d) {
      bool merge = true;
      for (int k = 0; k < count; ++k) merge &= steps[d][k] == steps[last][k] * sizes[last];
      if (merge) {
        sizes[last] *= sizes[d];
      } else if (++last != d) {
        sizes[last] = sizes[d];
        for (int k = 0; k < count; ++k) steps[last][k] = steps[d][k];
      }
    }
    ndim = last + 1;
  }
  // A row of a few elements costs more to start than to run: a much longer dim goes inside instead,
  // the one whose elements lie nearest, and the short one next to it. True where that was done.
  bool prefer_long_rows() {
    if (sizes[0] >= 8) return false;
    int best = 0;
    int64_t nearest = INT64_MAX;
    for (int d = 1; d < ndim; ++d) {
      if (sizes[d] < 8 * sizes[0]) continue;
      int64_t apart = 0;
      for (int k = 0; k < count; ++k) apart += std::abs(steps[d][k]);
      if (apart >= nearest) continue;
      nearest = apart;
      best = d;
    }
    if (best == 0) return false;
    swap_dims(0, best);
    swap_dims(1, best);
    return true;
  }
  // Whether dims 0 and 1 are one row for all operands but inputs that have a short row there, again
  // and again: x - y of [n, 1, 16] and [n, 16], or x + bias of 16.
  bool repeats_rows(const size_t* items) const {
    if (ndim < 2 || sizes[0] >= repeated_most / 8 || sizes[1] < 8) return false;
    bool any = false;
    for (int k = 0; k < count; ++k) {
      if (steps[0][k] != static_cast<int64_t>(items[k])) return false;
      if (steps[1][k] == steps[0][k] * sizes[0]) continue;
      if (k == 0 || steps[1][k] != 0) return false;
      any = true;
    }
    return any;
  }
  // Elements along dim 0 whose lines stay in the nearest cache while dim 1 is gone over.
  int64_t piece() const {
    int64_t step = 1;
    for (int k = 0; k < count; ++k) step = std::max(step, std::abs(steps[0][k]));
    return step <= 64 ? std::max<int64_t>(256, 8192 / step) : 64;
  }
  // Cuts dim 0, which must be a multiple of `length`, into pieces; dim 1 lies between them.
  void cut(int64_t length) {
    for (int d = ndim; d > 2; --d) {
      sizes[d] = sizes[d - 1];
      std::copy_n(steps[d - 1], count, steps[d]);
    }
    sizes[2] = sizes[0] / length;
    sizes[0] = length;
    for (int k = 0; k < count; ++k) steps[2][k] = steps[0][k] * length;
    ++ndim;
  }
  // Whether input k runs across the rows, and along dim d: each of its elements in a row is on a
  // cache line of its own, which the next rows need again.
  bool crosses(int k, int d, const size_t* items) const {
    return std::abs(steps[0][k]) >= 64 && steps[d][k] == static_cast<int64_t>(items[k]);
  }
  // Makes the dim along which some input crosses the rows dim 1. False where there is none, or too
  // little to do.
  bool find_crossed(const size_t* items) {
    if (sizes[0] < 64 || steps[0][0] != static_cast<int64_t>(items[0])) return false;
    for (int d = 1; d < ndim; ++d) {
      for (int k = 1; sizes[d] >= 16 && k < count; ++k) {
        if (!crosses(k, d, items)) continue;
        swap_dims(1, d);
        return true;
      }
    }
    return false;
  }
};

DType bytes_of(size_t item) {
  switch (item) {
    case 1: return DType::UInt8;
    case 2: return DType::Int16;
    case 4: return DType::Int32;
    case 8: return DType::Int64;
    default: return DType::Complex128;
  }
}

// Goes over dims 0 and 1 in tiles, for which the inputs that cross the rows are turned first.
void run_crossed(Loop loop, const LoopWalk& w, char* const* data, const size_t* items,
                 const Scalar* params) {
  constexpr int64_t most_rows = 64, most_columns = 512;
  const int64_t across = (w.sizes[0] + most_columns - 1) / most_columns;
  const int64_t down = (w.sizes[1] + most_rows - 1) / most_rows;
  int64_t tiles = across * down;
  for (int d = 2; d < w.ndim; ++d) tiles *= w.sizes[d];
  parallel_for(tiles, 1, [&](int64_t begin, int64_t end) {
    std::unique_ptr<char[]> rooms[max_operands];
    for (int k = 1; k < w.count; ++k) {
      if (w.crosses(k, 1, items)) rooms[k].reset(new char[most_rows * most_columns * items[k]]);
    }
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t column = tile % across * most_columns, row = tile / across % down * most_rows;
      const int64_t sizes[2] = {std::min(most_rows, w.sizes[1] - row),
                                std::min(most_columns, w.sizes[0] - column)};
      char* at[max_operands];
      int64_t along[max_operands], next[max_operands];
      for (int k = 0; k < w.count; ++k) {
        at[k] = data[k] + column * w.steps[0][k] + row * w.steps[1][k];
        int64_t rest = tile / (across * down);
        for (int d = 2; d < w.ndim; ++d) {
          at[k] += rest % w.sizes[d] * w.steps[d][k];
          rest /= w.sizes[d];
        }
        along[k] = w.steps[0][k];
        next[k] = w.steps[1][k];
        if (!rooms[k]) continue;
        const auto item = static_cast<int64_t>(items[k]);
        const int64_t from[2] = {next[k] / item, along[k] / item}, to[2] = {sizes[1], 1};
        const DType bytes = bytes_of(items[k]);
        const NdView turned{rooms[k].get(), sizes, to, 2, bytes};
        if (!copy_transposed(turned, {at[k], sizes, from, 2, bytes})) {
          for (int64_t i = 0; i < sizes[0]; ++i) {
            for (int64_t j = 0; j < sizes[1]; ++j)
              std::memcpy(turned.data + (i * sizes[1] + j) * item,
                          at[k] + i * next[k] + j * along[k], items[k]);
          }
        }
        at[k] = turned.data;
        along[k] = item;
        next[k] = sizes[1] * item;
      }
      for (int64_t i = 0; i < sizes[0]; ++i) {
        loop(at, along, sizes[1], params);
        for (int k = 0; k < w.count; ++k) at[k] += next[k];
      }
    }
  });
}

// Goes over dims 0 and 1 in long rows, for which the short ones of some inputs are written out
// several times.
void run_repeated(Loop loop, const LoopWalk& w, char* const* data, const size_t* items,
                  const Scalar* params) {
  constexpr int64_t stops = (int64_t{1} << 22) / repeated_most;
  const int64_t length = w.sizes[0], together = std::min(repeated_most / length, w.sizes[1]);
  const int64_t pieces = (w.sizes[1] + together - 1) / together;
  int64_t total = pieces;
  for (int d = 2; d < w.ndim; ++d) total *= w.sizes[d];
  auto run = [&](int64_t begin, int64_t end) {
    std::unique_ptr<char[]> rooms[max_operands];
    for (int k = 1; k < w.count; ++k)
      if (w.steps[1][k] == 0)
        rooms[k].reset(new char[static_cast<size_t>(together * length) * items[k]]);
    char* at[max_operands];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces * together;
      for (int k = 0; (i == begin || first == 0) && k < w.count; ++k) {
        char* from = data[k];
        int64_t rest = i / pieces;
        for (int d = 2; d < w.ndim; ++d) {
          from += rest % w.sizes[d] * w.steps[d][k];
          rest /= w.sizes[d];
        }
        at[k] = rooms[k] ? rooms[k].get() : from + first * w.steps[1][k];
        const size_t row = static_cast<size_t>(length) * items[k];
        for (int64_t r = 0; rooms[k] && r < together; ++r)
          std::memcpy(at[k] + static_cast<size_t>(r) * row, from, row);
      }
      if ((i - begin) % stops == stops - 1) stop_point();
      const int64_t rows = std::min(together, w.sizes[1] - first);
      loop(at, w.steps[0], rows * length, params);
      for (int k = 0; k < w.count; ++k) at[k] += rows * w.steps[1][k];
    }
  };
  parallel_for(total, std::max<int64_t>(1, grain_default / (together * length)), run);
}

// What a thread does before it looks whether the work should end.
constexpr int64_t stretch_elements = int64_t{1} << 22;

// The number of operands is known when this is compiled, so that a step costs as many additions.
template <int count>
void run_range(Loop loop, const LoopWalk& w, char* const* data, int64_t begin, int64_t end,
               const Scalar* params) {
  const int64_t length = w.sizes[0], rows = w.ndim > 1 ? w.sizes[1] : 1;
  int64_t index[max_dims];
  char* at[count];
  for (int k = 0; k < count; ++k) at[k] = data[k];
  int64_t rest = begin;
  for (int d = 0; d < w.ndim; ++d) {
    index[d] = rest % w.sizes[d];
    rest /= w.sizes[d];
    for (int k = 0; k < count; ++k) at[k] += index[d] * w.steps[d][k];
  }
  const auto next_row = [&] {
    for (int k = 0; k < count; ++k) at[k] += w.steps[1][k];
  };
  int64_t left = end - begin;
  int64_t row = w.ndim > 1 ? index[1] : 0;
  if (index[0] > 0) {  // the rest of a row
    const int64_t n = std::min(left, length - index[0]);
    loop(at, w.steps[0], n, params);
    left -= n;
    if (left == 0) return;
    for (int k = 0; k < count; ++k) at[k] -= index[0] * w.steps[0][k];
    next_row();
    ++row;
  }
  while (true) {
    for (int64_t whole = std::min(rows - row, left / length); whole > 0; --whole) {
      loop(at, w.steps[0], length, params);
      left -= length;
      if (left == 0) return;
      next_row();
      ++row;
    }
    if (row < rows) return loop(at, w.steps[0], left, params);  // the beginning of a row
    for (int k = 0; k < count; ++k) at[k] -= rows * w.steps[1][k];
    row = 0;
    for (int d = 2; d < w.ndim; ++d) {
      for (int k = 0; k < count; ++k) at[k] += w.steps[d][k];
      if (++index[d] < w.sizes[d]) break;
      for (int k = 0; k < count; ++k) at[k] -= w.sizes[d] * w.steps[d][k];
      index[d] = 0;
    }
  }
}

using RunRange = decltype(&run_range<1>);
RunRange run_range_of(int count) {
  static constexpr auto all = []<int... k>(std::integer_sequence<int, k...>) {
    return std::array<RunRange, max_operands>{run_range<k + 1>...};
  }
  (std::make_integer_sequence<int, max_operands>());
  return all[static_cast<size_t>(count - 1)];
}

}  // namespace

void run_loop(Loop loop, int count, char* const* data, const int64_t* const* strides,
              const size_t* itemsizes, const int64_t* sizes, int ndim, const Scalar* params) {
  if (count > max_operands || ndim > max_dims) fail_internal("run_loop: too many operands or dims");
  LoopWalk w;
  w.count = count;
  int64_t numel = 1;
  for (int d = ndim - 1; d >= 0; --d) {
    numel *= sizes[d];
    if (sizes[d] == 1) continue;
    w.sizes[w.ndim] = sizes[d];
    for (int k = 0; k < count; ++k) {
      w.steps[w.ndim][k] = strides[k][d] * static_cast<int64_t>(itemsizes[k]);
    }
    ++w.ndim;
  }
  if (numel == 0) return;
  if (w.ndim == 0) {
    // One element: item-size steps let the loop take its contiguous path.
    int64_t steps[max_operands];
    for (int k = 0; k < count; ++k) steps[k] = static_cast<int64_t>(itemsizes[k]);
    loop(data, steps, 1, params);
    return;
  }
  bool turned = false;
  if (w.ndim > 1) {
    w.sort();
    w.coalesce();
    if (w.repeats_rows(itemsizes) && numel >= 4 * repeated_most)
      return run_repeated(loop, w, data, itemsizes, params);
    if (w.ndim > 1) turned = w.prefer_long_rows();
  }
  // An output that is written more than once (stride 0) must not be shared between threads.
  int64_t grain = grain_default;
  for (int d = 0; d < w.ndim; ++d) {
    if (w.steps[d][0] == 0) grain = numel;
  }
  if (w.ndim == 1 && numel <= grain) {
    loop(data, w.steps[0], numel, params);
    return;
  }
  if (numel >= grain_default && grain == grain_default && w.ndim > 1 && w.find_crossed(itemsizes))
    return run_crossed(loop, w, data, itemsizes, params);
  const RunRange run_range = run_range_of(count);
  auto run = [&](const LoopWalk& walk, char* const* at, int64_t elements) {
    parallel_for(elements, grain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b += stretch_elements) {
        stop_point();
        run_range(loop, walk, at, b, std::min(end, b + stretch_elements), params);
      }
    });
  };
  const int64_t piece = turned && w.ndim < max_dims ? w.piece() : 0;
  if (piece == 0 || w.sizes[0] < 2 * piece) return run(w, data, numel);
  LoopWalk last = w;
  last.sizes[0] = w.sizes[0] % piece;
  w.sizes[0] -= last.sizes[0];
  const int64_t rest = numel / (w.sizes[0] + last.sizes[0]) * last.sizes[0];
  char* at[max_operands];
  for (int k = 0; k < count; ++k) at[k] = data[k] + w.sizes[0] * w.steps[0][k];
  w.cut(piece);
  run(w, data, numel - rest);
  if (rest) run(last, at, rest);
}

}  // namespace clew::kernels

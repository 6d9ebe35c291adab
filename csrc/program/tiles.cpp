// The pass over tiles: what one call leaves the next finds in the nearest cache.
// May include: program, graph, tensor, kernels.
// Invariant: every element goes through the loops that it would go through alone, so it gets the
// same bits.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/reduce/reduce.h"
#include "program/group.h"

namespace clew::program {

namespace {

using Extent = Source::Extent;

constexpr int64_t tile_bytes = 192 * 1024;  // what a tile of all operands may take

const LocalScratch tile_scratch;

}  // namespace

// What one thread works with.
struct Group::Scratch {
  char* full = nullptr;
  char* by_row = nullptr;
  std::vector<kernels::ColumnSums> sums;
};

void Group::merge_dims() {
  // Innermost first in the order of the results' memory.
  SmallVec<int, 8> order;
  for (int d = 0; d < sizes_.size(); ++d)
    if (sizes_[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return strides_[a] < strides_[b]; });
  const auto has_steps = [](const Source& s) {
    return !s.temporary && (s.extent == Extent::full || s.extent == Extent::spread) && !s.late;
  };
  std::vector<Dims> strides(sources_.size());
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& s = sources_[i];
    if (!has_steps(s)) continue;
    strides[i] = s.extent == Extent::full
                     ? strides_
                     : broadcast_strides(s.of->shape->sizes, s.of->shape->strides, sizes_);
  }
  int64_t inner = 1;
  for (const int d : order) {
    // A row stays apart from the rows around it.
    bool joins = ndim_ > 0 && inner != columns_;
    for (size_t i = 0; joins && i < sources_.size(); ++i) {
      const Source& s = sources_[i];
      if (has_steps(s)) joins = strides[i][d] * s.item == s.steps[ndim_ - 1] * extent_[ndim_ - 1];
    }
    inner *= sizes_[d];
    if (joins) {
      extent_[ndim_ - 1] *= sizes_[d];
      continue;
    }
    extent_[ndim_] = sizes_[d];
    for (size_t i = 0; i < sources_.size(); ++i) {
      Source& s = sources_[i];
      if (has_steps(s)) s.steps[ndim_] = strides[i][d] * s.item;
    }
    ++ndim_;
  }
}

// Where s has element `from` of a row of the merged dims.
char* Group::place(const Source& s, int64_t row, int64_t from) const {
  if (s.extent == Extent::full && columns_) return s.data + row * columns_ * s.item;
  char* at = s.data + from * s.steps[0];
  for (int d = 1; d < ndim_; ++d) {
    at += row % extent_[d] * s.steps[d];
    row /= extent_[d];
  }
  return at;
}

void Group::run_loop(const Step& step, int64_t row, int64_t rows, int64_t from, int64_t length,
                     const Scratch& at) const {
  char* data[most_operands];
  int64_t inner[most_operands];
  int64_t down[most_operands];  // from row to row; of spread ones it differs
  bool whole = true;
  for (int j = 0; j < step.count; ++j) {
    const Source& s = sources_[static_cast<size_t>(step.source[j])];
    switch (s.extent) {
      case Extent::constant:
        data[j] = s.data;
        inner[j] = down[j] = 0;
        break;
      case Extent::row:
        data[j] = s.slot >= 0 ? at.by_row + s.slot * row_slot_bytes_ : s.data + row * s.item;
        inner[j] = step.by_rows ? s.item : 0;
        down[j] = s.item;
        whole = whole && (step.by_rows || rows == 1);
        break;
      case Extent::full:
        if (s.slot >= 0) {
          data[j] = at.full + s.slot * slot_bytes_;
          inner[j] = s.item;
          down[j] = length * s.item;
          break;
        }
        data[j] = place(s, row, from);
        inner[j] = s.item;
        down[j] = length * s.item;
        break;
      case Extent::spread:
        data[j] = place(s, row, from);
        inner[j] = s.steps[0];
        down[j] = -1;
        whole = whole && rows == 1;
        break;
    }
  }
  if (step.by_rows) return step.loop(data, inner, rows, step.params);
  if (whole) return step.loop(data, inner, rows * length, step.params);
  for (int64_t r = 0; r < rows; ++r) {
    char* now[most_operands];
    for (int j = 0; j < step.count; ++j)
      now[j] = down[j] >= 0 ? data[j] + r * down[j]
                            : place(sources_[static_cast<size_t>(step.source[j])], row + r, from);
    step.loop(now, inner, length, step.params);
  }
}

void Group::run_reduction(const Step& step, int64_t row, int64_t rows, Scratch& at) const {
  const Source& in = sources_[static_cast<size_t>(step.source[1])];
  const Source& out = sources_[static_cast<size_t>(step.source[0])];
  char* from = in.slot >= 0 ? at.full + in.slot * slot_bytes_ : in.data + row * columns_ * in.item;
  if (step.columns >= 0) return at.sums[static_cast<size_t>(step.columns)].add(from, rows);
  char* to = out.slot >= 0 ? at.by_row + out.slot * row_slot_bytes_ : out.data + row * out.item;
  const int64_t sizes[2] = {rows, columns_}, strides[2] = {columns_, 1};
  const int64_t out_sizes[2] = {rows, 1}, out_strides[2] = {1, 1};
  step.passes.run(step.attrs, {to, out_sizes, out_strides, 2, out.of->dtype},
                  {from, sizes, strides, 2, in.of->dtype});
}

// Rows [row, row + rows) of the merged dims, of each the elements from `from` on.
void Group::run_tile(int64_t row, int64_t rows, int64_t from, int64_t length, Scratch& at) const {
  if (!in_place_) stop_point();
  for (const Step& step : steps_) {
    if (step.loop)
      run_loop(step, row, rows, from, length, at);
    else
      run_reduction(step, row, rows, at);
  }
}

// Tiles of elements, whatever rows they are of.
void Group::run_lines(int64_t tile) {
  const int64_t length = ndim_ ? extent_[0] : 1, lines = numel_ / length;
  const int64_t across = (length + tile - 1) / tile;
  const int64_t height = across > 1 ? 1 : std::max<int64_t>(1, tile / length);
  const int64_t down = (lines + height - 1) / height;
  slot_bytes_ = (std::max(tile, height * length) * widest_ + 63) / 64 * 64;
  parallel_for(
      down * across, std::max<int64_t>(1, grain_default / tile), [&](int64_t begin, int64_t end) {
        Scratch at;
        at.full = static_cast<char*>(tile_scratch.get(static_cast<size_t>(slots_ * slot_bytes_)));
        for (int64_t t = begin; t < end; ++t) {
          const int64_t line = t / across * height, from = t % across * tile;
          run_tile(line, std::min(height, lines - line), from, std::min(tile, length - from), at);
        }
      });
}

// Tiles of whole rows. Sums over rows are cut among the threads as the reduction alone would be.
void Group::run_rows(int64_t tile) {
  const int64_t rows = this->rows();
  constexpr int64_t batch = kernels::ColumnSums::batch;
  int64_t height = std::max<int64_t>(1, tile / columns_);
  if (sums_) height = std::max<int64_t>(1, height / batch) * batch;
  slot_bytes_ = (height * columns_ * widest_ + 63) / 64 * 64;
  row_slot_bytes_ = (height * widest_ + 63) / 64 * 64;
  const auto bytes = static_cast<size_t>(slots_ * slot_bytes_ + row_slots_ * row_slot_bytes_);
  const auto run = [&](int64_t begin, int64_t end, Scratch& at) {
    at.full = static_cast<char*>(tile_scratch.get(bytes));
    at.by_row = at.full + slots_ * slot_bytes_;
    const Alone alone;
    for (int64_t row = begin; row < end; row += height)
      run_tile(row, std::min(height, end - row), 0, columns_, at);
  };
  if (!sums_) {
    const int64_t grain = std::max<int64_t>(1, grain_default / (height * columns_));
    parallel_for((rows + height - 1) / height, grain, [&](int64_t begin, int64_t end) {
      Scratch at;
      run(begin * height, std::min(rows, end * height), at);
    });
    return;
  }
  const int64_t pieces = kernels::ColumnSums::pieces(rows, columns_);
  std::vector<Scratch> parts(static_cast<size_t>(pieces));
  for (Scratch& part : parts)
    for (const Step& step : steps_)
      if (step.columns >= 0)
        part.sums.emplace_back(sources_[static_cast<size_t>(step.source[1])].of->dtype, columns_);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      run(k * rows / pieces, (k + 1) * rows / pieces, parts[static_cast<size_t>(k)]);
  });
  for (const Step& step : steps_) {
    if (step.columns < 0) continue;
    kernels::ColumnSums& total = parts[0].sums[static_cast<size_t>(step.columns)];
    for (size_t k = 1; k < parts.size(); ++k)
      total.join(parts[k].sums[static_cast<size_t>(step.columns)]);
    const double divisor = step.passes.mean ? static_cast<double>(rows) : 0;
    total.finish(sources_[static_cast<size_t>(step.source[0])].data, divisor);
  }
}

void Group::run() {
  merge_dims();
  int64_t bytes = slots_ * widest_;
  for (const Source& s : sources_)
    if (s.of && !s.temporary && s.extent != Extent::row && !s.late && s.steps[0] != 0)
      bytes += s.item;
  const int64_t tile =
      std::clamp<int64_t>(tile_bytes / std::max<int64_t>(bytes, 1) / 64 * 64, 512, 65536);
  if (columns_)
    run_rows(tile);
  else
    run_lines(tile);
}

size_t run_tiles(const Program& p, size_t first) {
  Group group(p, first);
  const size_t end = group.gather();
  if (end < first + 2) return first;
  group.place_sources();
  group.run();
  return end;
}

}  // namespace clew::program

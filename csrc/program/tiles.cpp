// The pass over tiles: what one call leaves the next finds in the nearest cache.
// May include: program, graph, tensor, kernels.
// Invariant: every element goes through the loops that it would go through alone, so it gets the
// same bits.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "base/long_work.h"
#include "base/parallel.h"
#include "kernels/reduce/reduce.h"
#include "program/tile_scratch.h"

namespace clew::program {

namespace {

using Extent = Source::Extent;

constexpr int64_t tile_bytes = 160 * 1024;  // what a tile of all operands may take

}  // namespace

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

void Group::run_reduction(const Step& step, const Band& band, Scratch& at) const {
  const Source& in = sources_[static_cast<size_t>(step.source[1])];
  const Source& out = sources_[static_cast<size_t>(step.source[0])];
  char* from = in.slot >= 0 ? at.full + in.slot * slot_bytes_ + band.before * in.item
                            : in.data + band.row * columns_ * in.item;
  if (step.sum >= 0) return at.sums[static_cast<size_t>(step.sum)].add(from, band.rows);
  char* to = out.slot >= 0 ? at.by_row + out.slot * row_slot_bytes_ + first_row(band) * out.item
                           : out.data + band.row * out.item;
  const int64_t sizes[2] = {band.rows, columns_}, strides[2] = {columns_, 1};
  const int64_t out_sizes[2] = {band.rows, 1}, out_strides[2] = {1, 1};
  step.passes.run(step.attrs, {to, out_sizes, out_strides, 2, out.of->dtype},
                  {from, sizes, strides, 2, in.of->dtype});
}

// Another thread may have written to the index since it was looked at.
void Group::run_indexed(const Step& step, const Band& band, const Scratch& at) const {
  const auto source = [&](int j) -> const Source& {
    return sources_[static_cast<size_t>(step.source[j])];
  };
  const auto* index = reinterpret_cast<const int64_t*>(part(source(2), band, 0, 0, at));
  const auto at_row = [&](int64_t r) {
    const int64_t k = index[r];
    if (k < 0 || k >= columns_) fail("another thread changed an index while it was used");
    return k;
  };
  char* to = part(source(0), band, 0, 0, at);
  if (step.passes.over == Passes::Over::picked) {
    const auto item = static_cast<size_t>(source(1).item);
    const char* from = part(source(1), band, 0, 0, at);
    for (int64_t r = 0; r < band.rows; ++r)
      std::memcpy(to + static_cast<size_t>(r) * item,
                  from + static_cast<size_t>(r * columns_ + at_row(r)) * item, item);
    return;
  }
  const char* add = part(source(3), band, 0, 0, at);
  dispatch(source(0).of->dtype, TypeList<float, double>{}, [&]<class T>() {
    const T base = *reinterpret_cast<const T*>(source(1).data);
    T* rows = reinterpret_cast<T*>(to);
    for (int64_t r = 0; r < band.rows; ++r, rows += columns_) {
      std::fill_n(rows, columns_, base);
      rows[at_row(r)] += reinterpret_cast<const T*>(add)[r];
    }
  });
}

// The bands of a tile are contiguous in scratch; in memory they are as far apart as their places.
void Group::run_total(const Step& step, std::span<const Band> bands, Scratch& at) const {
  const Source& in = sources_[static_cast<size_t>(step.source[1])];
  kernels::TotalSum& total = at.totals[static_cast<size_t>(step.sum)];
  const Band& first = bands[0];
  const char* from =
      in.slot >= 0 ? at.full + in.slot * slot_bytes_ : place(in, first.row, first.from);
  if (bands.size() == 1) return total.add(from, first.elements());
  const int64_t apart =
      in.slot >= 0 ? bands[1].before : (place(in, bands[1].row, bands[1].from) - from) / in.item;
  total.add_places(from, apart, first.elements());
}

// Adds a tile to the sum of everything, or of the rows.
void Group::run_sum(const Step& step, std::span<const Band> bands, Scratch& at) const {
  if (step.passes.over == Passes::Over::all) return run_total(step, bands, at);
  for (const Band& band : bands) run_reduction(step, band, at);
}

void Group::run_tile(std::span<const Band> bands, Scratch& at) const {
  if (!in_place_) stop_point();
  for (const Segment& g : segments_) {
    const Step& step = steps_[static_cast<size_t>(g.first)];
    if (step.sum >= 0) {
      run_sum(step, bands, at);
      continue;
    }
    for (const Band& band : bands) {
      if (g.by_chunks)
        run_segment(g, band, at);
      else if (step.loop)
        run_by_rows(step, band, at);
      else if (step.passes.over >= Passes::Over::picked)
        run_indexed(step, band, at);
      else
        run_reduction(step, band, at);
    }
  }
  for (const int16_t k : deferred_) run_sum(steps_[static_cast<size_t>(k)], bands, at);
}

// Tiles of elements, whatever rows they are of.
void Group::run_lines(int64_t tile) {
  const int64_t length = ndim_ ? extent_[0] : 1, lines = numel_ / length;
  const int64_t across = (length + tile - 1) / tile;
  const int64_t height = across > 1 ? 1 : std::max<int64_t>(1, tile / length);
  const int64_t down = (lines + height - 1) / height;
  size_scratch(std::max(tile, height * length));
  parallel_for(down * across, std::max<int64_t>(1, grain_default / tile),
               [&](int64_t begin, int64_t end) {
                 Scratch at;
                 at.take(*this);
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t line = t / across * height, from = t % across * tile;
                   const Band band{line, std::min(height, lines - line), from,
                                   std::min(tile, length - from)};
                   run_tile({&band, 1}, at);
                 }
               });
}

// Joins the sums of everything that the threads have, in order.
void Group::finish_totals(std::vector<Scratch>& parts) const {
  for (const Step& step : steps_) {
    if (step.passes.over != Passes::Over::all) continue;
    kernels::TotalSum& total = parts[0].totals[static_cast<size_t>(step.sum)];
    for (size_t k = 1; k < parts.size(); ++k)
      total.join(parts[k].totals[static_cast<size_t>(step.sum)]);
    const double divisor = step.passes.mean ? static_cast<double>(numel_) : 0;
    total.finish(sources_[static_cast<size_t>(step.source[0])].data, divisor);
  }
}

// Tiles of whole rows. Sums over rows are cut among the threads as the reduction alone would be.
void Group::run_rows(int64_t tile) {
  const int64_t rows = this->rows();
  constexpr int64_t batch = kernels::ColumnSums::batch;
  int64_t height = std::max<int64_t>(1, tile / columns_), unit = batch;
  if (totals_) {
    const int64_t rest = kernels::TotalSum::cut(total_dtype_, numel_).rest;
    unit = std::lcm(batch, std::lcm(columns_, rest) / columns_);
  }
  if (sums_) height = std::max<int64_t>(1, height / unit) * unit;
  size_scratch(height * columns_);
  const auto run = [&](int64_t begin, int64_t end, Scratch& at) {
    at.take(*this);
    const Alone alone;
    for (int64_t row = begin; row < end; row += height) {
      const Band band{row, std::min(height, end - row), 0, columns_};
      run_tile({&band, 1}, at);
    }
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
  for (Scratch& part : parts) {
    for (const Step& step : steps_)
      if (step.passes.over == Passes::Over::rows)
        part.sums.emplace_back(sources_[static_cast<size_t>(step.source[1])].of->dtype, columns_);
    for (int k = 0; k < totals_; ++k) part.totals.emplace_back(total_dtype_);
  }
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      run(k * rows / pieces, (k + 1) * rows / pieces, parts[static_cast<size_t>(k)]);
  });
  finish_totals(parts);
  for (const Step& step : steps_) {
    if (step.passes.over != Passes::Over::rows) continue;
    kernels::ColumnSums& sum = parts[0].sums[static_cast<size_t>(step.sum)];
    for (size_t k = 1; k < parts.size(); ++k)
      sum.join(parts[k].sums[static_cast<size_t>(step.sum)]);
    const double divisor = step.passes.mean ? static_cast<double>(rows) : 0;
    sum.finish(sources_[static_cast<size_t>(step.source[0])].data, divisor);
  }
}

// Elements [begin, end) in the order in which their sum reads them.
void Group::run_piece(int64_t begin, int64_t end, int64_t tile, Scratch& at) const {
  const Alone alone;
  const kernels::TotalSum::Cut cut = kernels::TotalSum::cut(total_dtype_, end - begin);
  const auto band = [&](int64_t element, int64_t count, int64_t before) {
    if (!columns_) return Band{0, 1, element, count, before};
    return Band{element / columns_, count / columns_, 0, columns_, before};
  };
  const auto part = [&](int64_t multiple, int64_t places) {
    if (columns_) multiple = std::lcm(multiple, columns_);
    return std::max<int64_t>(1, tile / places / multiple) * multiple;
  };
  if (cut.each > 0) {
    const int64_t step = part(cut.block, cut.places);
    std::vector<Band> bands(static_cast<size_t>(cut.places));
    for (int64_t i = 0; i < cut.each; i += step) {
      const int64_t count = std::min(step, cut.each - i);
      for (int64_t k = 0; k < cut.places; ++k)
        bands[static_cast<size_t>(k)] = band(begin + k * cut.each + i, count, k * count);
      run_tile(bands, at);
    }
    begin += cut.places * cut.each;
  }
  const int64_t step = part(cut.rest, 1);
  for (int64_t i = begin; i < end; i += step) {
    const Band one = band(i, std::min(step, end - i), 0);
    run_tile({&one, 1}, at);
  }
}

// Sums of everything are cut among the threads, and read, as the reduction alone does.
void Group::run_totals(int64_t tile) {
  const kernels::TotalSum::Cut cut = kernels::TotalSum::cut(total_dtype_, numel_);
  // A tile is a multiple of these, of `places` bands, or of the rest.
  const int64_t unit = std::max<int64_t>(columns_, 1);
  size_scratch(std::max({tile, cut.places * std::lcm(cut.block, unit), std::lcm(cut.rest, unit)}));
  const int64_t pieces = kernels::TotalSum::pieces(numel_);
  std::vector<Scratch> parts(static_cast<size_t>(pieces));
  for (Scratch& part : parts)
    for (int k = 0; k < totals_; ++k) part.totals.emplace_back(total_dtype_);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      Scratch& at = parts[static_cast<size_t>(k)];
      at.take(*this);
      run_piece(k * numel_ / pieces, (k + 1) * numel_ / pieces, tile, at);
    }
  });
  finish_totals(parts);
}

void Group::run() {
  merge_dims();
  for (Segment& g : segments_)
    if (g.by_chunks) plan_chunks(g);
  int64_t bytes = (slots_ + brief_slots_) * widest_;
  for (const Source& s : sources_)
    if (s.of && !s.temporary && s.extent != Extent::row && !s.late && s.steps[0] != 0)
      bytes += s.item;
  const int64_t tile =
      std::clamp<int64_t>(tile_bytes / std::max<int64_t>(bytes, 1) / 64 * 64, 512, 65536);
  if (totals_ && !sums_)
    run_totals(tile);
  else if (columns_)
    run_rows(tile);
  else
    run_lines(tile);
  for (const Takeover& t : takeovers_) t.result->take_bytes_of(t.from);
}

size_t run_tiles(Program& p, size_t first, Pass& told) {
  if (!Group::begins(p, first)) return first;
  Group group(p, first);
  const size_t end = group.gather();
  if (end < p.size()) told.why_ended = group.why_not(p.call(end));
  if (end < first + 2 + group.put_off().size()) return first;
  group.place_sources();
  // Every tile goes through all calls, because an interrupted write in place could not be
  // continued.
  std::optional<Whole> whole;
  if (group.is_whole()) whole.emplace();
  group.run();
  // If one is interrupted, the pass runs again, and reads what they have read.
  for (const size_t k : group.put_off()) p.run_one(p.call(k), false);
  told.bytes_saved = group.bytes_saved();
  return end;
}

}  // namespace clew::program

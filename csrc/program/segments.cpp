// Which steps go through a tile together, where temporary values lie, and how a chunk is run.
// May include: program, kernels/core.
// Invariant: a value in a brief slot is used in one segment only, so each chunk of it is
// overwritten by the next; one in another slot stays until the segment that uses it last has ended.
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/scratch.h"
#include "program/tile_scratch.h"

namespace clew::program {

namespace {

using Extent = Source::Extent;

int64_t cache_bytes(int name, int64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}
// Most of the nearest cache, which a chunk of all operands may take.
int64_t chunk_bytes() {
  static const int64_t bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 * 1024) * 5 / 6;
  return bytes;
}
// Operands that are larger come from memory, or from a cache that is far.
int64_t near_bytes() {
  static const int64_t bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1024 * 1024) * 2;
  return bytes;
}
constexpr int64_t least_chunk = 256, most_chunk = 4096;

bool is_whole_in_memory(const Source& s) { return s.slot < 0 && s.extent == Extent::full; }

const LocalScratch tile_scratch;

}  // namespace

// Whether what a step reads is written again later in the group.
bool Group::is_rewritten(size_t k) const {
  return std::any_of(steps_.begin() + static_cast<std::ptrdiff_t>(k) + 1, steps_.end(),
                     [&](const Step& later) { return later.source[0] == steps_[k].source[1]; });
}

void Group::cut_segments() {
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    const auto at = static_cast<int16_t>(k);
    if (step.sum >= 0 && !is_rewritten(k)) {
      deferred_.push_back(at);
      continue;
    }
    const bool by_chunks = step.loop && !step.by_rows;
    // A deferred step may lie between two of one segment.
    if (by_chunks && !segments_.empty() && segments_.back().by_chunks)
      segments_.back().end = static_cast<int16_t>(k + 1);
    else
      segments_.push_back({at, static_cast<int16_t>(k + 1), by_chunks});
  }
}

// A deferred step reads at the end of the tile, after all segments.
void Group::give_slots() {
  struct Use {
    int16_t first_segment = -1, last_step = -1;
  };
  std::vector<Use> uses(sources_.size());
  const auto used = [&](int16_t segment, size_t k) {
    for (int j = 0; j < steps_[k].count; ++j) {
      const auto i = static_cast<size_t>(steps_[k].source[j]);
      if (uses[i].first_segment < 0) uses[i].first_segment = segment;
      uses[i].last_step = static_cast<int16_t>(k);
      sources_[i].last = segment;
    }
  };
  const auto runs = [&](size_t k) { return steps_[k].loop || steps_[k].sum < 0; };
  for (size_t n = 0; n < segments_.size(); ++n)
    for (auto k = static_cast<size_t>(segments_[n].first);
         k < static_cast<size_t>(segments_[n].end); ++k)
      if (runs(k) || !segments_[n].by_chunks) used(static_cast<int16_t>(n), k);
  for (const int16_t k : deferred_)
    used(static_cast<int16_t>(segments_.size()), static_cast<size_t>(k));
  std::vector<int16_t> idle[2], brief_idle;  // of whole tiles, of rows
  for (size_t n = 0; n < segments_.size(); ++n) {
    const Segment& g = segments_[n];
    for (auto k = static_cast<size_t>(g.first); k < static_cast<size_t>(g.end); ++k) {
      if (!runs(k) && g.by_chunks) continue;
      const Step& step = steps_[k];
      Source& target = sources_[static_cast<size_t>(step.source[0])];
      if (target.temporary && target.slot < 0) {
        const auto i = static_cast<size_t>(step.source[0]);
        target.brief = g.by_chunks && uses[i].first_segment == target.last;
        const bool row = target.extent == Extent::row;
        auto& free = target.brief ? brief_idle : idle[row];
        int& count = target.brief ? brief_slots_ : row ? row_slots_ : slots_;
        if (free.empty()) {
          target.slot = static_cast<int16_t>(count++);
        } else {
          target.slot = free.back();
          free.pop_back();
        }
      }
      if (!g.by_chunks) continue;
      // Brief ones are free again after the last step that uses them.
      for (int j = 0; j < step.count; ++j) {
        Source& s = sources_[static_cast<size_t>(step.source[j])];
        const int16_t last = uses[static_cast<size_t>(step.source[j])].last_step;
        if (!s.brief || s.last < 0 || last != static_cast<int16_t>(k)) continue;
        brief_idle.push_back(s.slot);
        s.last = -1;  // once, though it may be named twice
      }
    }
    for (Source& s : sources_) {
      if (s.slot < 0 || s.brief || s.last != static_cast<int16_t>(n)) continue;
      idle[s.extent == Extent::row].push_back(s.slot);
      s.last = -1;
    }
  }
}

// Gives results the bytes of operands that are used no more when they are written first. What a
// step reads at a place is read before a later step writes there, in every chunk; and a loop may
// write over its operands, as out= may be one of them.
void Group::take_over_bytes() {
  struct Use {
    int16_t first_write = -1, last_read = -1;
  };
  std::vector<Use> uses(sources_.size());
  for (size_t k = 0; k < steps_.size(); ++k) {
    const auto at = static_cast<int16_t>(k);
    for (int j = 1; j < steps_[k].count; ++j)
      uses[static_cast<size_t>(steps_[k].source[j])].last_read = at;
    Use& target = uses[static_cast<size_t>(steps_[k].source[0])];
    if (target.first_write < 0) target.first_write = at;
  }
  for (const int16_t k : deferred_)
    uses[static_cast<size_t>(steps_[static_cast<size_t>(k)].source[1])].last_read = INT16_MAX;
  const auto is_whole = [&](const Source& s) {
    return s.of && !s.temporary && s.extent == Extent::full && s.of->offset == 0 &&
           s.storage->nbytes == static_cast<size_t>(numel_ * s.item);
  };
  for (size_t i = 0; numel_ <= most_overwritten && i < sources_.size(); ++i) {
    const Source& target = sources_[i];
    if (!target.written || !is_whole(target) || target.storage->data) continue;
    for (size_t k = 0; k < sources_.size(); ++k) {
      const Source& from = sources_[k];
      if (from.written || !is_whole(from) || from.item != target.item ||
          uses[k].last_read > uses[i].first_write ||
          (uses[k].last_read == uses[i].first_write &&
           !steps_[static_cast<size_t>(uses[i].first_write)].loop) ||
          !is_spent(*from.storage, from.uses))
        continue;
      if (std::any_of(takeovers_.begin(), takeovers_.end(),
                      [&](const Takeover& t) { return t.from == from.storage; }))
        continue;
      takeovers_.push_back({target.storage, from.storage});
      in_place_ = true;
      break;
    }
  }
}

// Which results anybody else will see; where they lie; when scratch is free again.
void Group::place_sources() {
  for (Source& s : sources_) {
    if (!s.of || !s.written) continue;
    // A storage that already has bytes is overwritten: it cannot become scratch.
    const int64_t elements = s.extent == Extent::row ? rows() : numel_;
    s.temporary = !s.late && s.storage->refs == s.uses && !s.storage->data && s.of->offset == 0 &&
                  s.storage->nbytes == static_cast<size_t>(elements * s.item);
    if (s.temporary) bytes_saved_ += elements * s.item;
  }
  cut_segments();
  give_slots();
  take_over_bytes();
  for (Source& s : sources_) {
    widest_ = std::max(widest_, s.item);
    if (!s.of || s.temporary) continue;
    const auto taken = std::find_if(takeovers_.begin(), takeovers_.end(),
                                    [&](const Takeover& t) { return t.result == s.storage; });
    if (taken != takeovers_.end()) {
      s.data = taken->from->at(0);
      continue;
    }
    if (s.written) give_bytes(s.storage);
    s.data = s.storage->at(s.of->offset);
  }
}

// How many elements a chunk has, and which operands lie elsewhere for each.
void Group::plan_chunks(Segment& g) {
  std::vector<bool> counted(sources_.size());
  int64_t bytes = brief_slots_ * widest_, memory = 0;
  for (int16_t k = g.first; k < g.end; ++k) {
    Step& step = steps_[static_cast<size_t>(k)];
    if (!step.loop) continue;
    for (int j = 0; j < step.count; ++j) {
      const auto i = static_cast<size_t>(step.source[j]);
      const Source& s = sources_[i];
      if (s.extent == Extent::constant || s.brief) continue;
      g.moves.push_back({step.source[j], k, static_cast<int16_t>(j)});
      step.within_rows =
          step.within_rows || s.extent == Extent::row || (s.extent == Extent::spread && ndim_ > 1);
      g.within_rows = g.within_rows || step.within_rows;
      if (!counted[i] && s.extent != Extent::row) bytes += s.item;
      if (!counted[i] && is_whole_in_memory(s)) memory += s.item * numel_;
      counted[i] = true;
    }
  }
  std::sort(g.moves.begin(), g.moves.end(),
            [](const Segment::Move& a, const Segment::Move& b) { return a.source < b.source; });
  g.chunk =
      std::clamp(chunk_bytes() / std::max<int64_t>(bytes, 1) / 64 * 64, least_chunk, most_chunk);
  g.fetches = memory > near_bytes();
}

// Scratch for tiles of so many elements.
void Group::size_scratch(int64_t elements) {
  const auto lines = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  slot_bytes_ = lines(elements * widest_);
  row_slot_bytes_ = columns_ ? lines(elements / columns_ * widest_) : 0;
  for (const Segment& g : segments_)
    brief_bytes_ = std::max(brief_bytes_, lines(std::min(g.chunk, elements) * widest_));
}

void Group::Scratch::take(const Group& g) {
  full = static_cast<char*>(tile_scratch.get(static_cast<size_t>(g.slots_ * g.slot_bytes_ +
                                                                 g.row_slots_ * g.row_slot_bytes_ +
                                                                 g.brief_slots_ * g.brief_bytes_)));
  by_row = full + g.slots_ * g.slot_bytes_;
  brief = by_row + g.row_slots_ * g.row_slot_bytes_;
  operands.resize(g.steps_.size());
  for (const Segment& segment : g.segments_) {
    if (!segment.by_chunks) continue;
    for (auto k = static_cast<size_t>(segment.first); k < static_cast<size_t>(segment.end); ++k) {
      const Step& step = g.steps_[k];
      for (int j = 0; step.loop && j < step.count; ++j) {
        const Source& s = g.sources_[static_cast<size_t>(step.source[j])];
        operands[k].data[j] = s.brief ? brief + s.slot * g.brief_bytes_ : s.data;
        int64_t &inner = operands[k].inner[j], &down = operands[k].down[j];
        switch (s.extent) {
          case Extent::constant: inner = down = 0; break;
          case Extent::row: inner = 0, down = s.item; break;
          case Extent::full: inner = s.item, down = g.line() * s.item; break;
          case Extent::spread: inner = s.steps[0], down = g.ndim_ == 2 ? s.steps[1] : -1; break;
        }
      }
    }
  }
}

// Where s has element `from` of a row of the merged dims.
char* Group::place(const Source& s, int64_t row, int64_t from) const {
  if (s.extent == Extent::full) return s.data + (row * line() + from) * s.item;
  char* at = s.data + from * s.steps[0];
  for (int d = 1; d < ndim_; ++d) {
    at += row % extent_[d] * s.steps[d];
    row /= extent_[d];
  }
  return at;
}

// Where s has element `from` of the r-th row of a band; element `from` of a full one may lie in a
// later row.
char* Group::part(const Source& s, const Band& band, int64_t r, int64_t from,
                  const Scratch& at) const {
  if (s.extent == Extent::row)
    return s.slot >= 0 ? at.by_row + s.slot * row_slot_bytes_ + (first_row(band) + r) * s.item
                       : s.data + (band.row + r) * s.item;
  if (s.slot < 0) return place(s, band.row + r, band.from + from);
  return at.full + s.slot * slot_bytes_ + (band.before + r * band.length + from) * s.item;
}

// Runs a loop row by row, where an operand does not go on from one row to the next as others do.
void Group::run_rows_of_chunk(const Step& step, const Band& band, const Band& chunk,
                              const Operands& at) const {
  for (int64_t r = 0; r < chunk.rows; ++r) {
    char* data[most_operands];
    for (int j = 0; j < step.count; ++j)
      data[j] = at.down[j] >= 0 ? at.data[j] + r * at.down[j]
                                : place(sources_[static_cast<size_t>(step.source[j])],
                                        band.row + chunk.row + r, band.from + chunk.from);
    step.loop(data, at.inner, chunk.length, step.params);
  }
}

// Memory that the next chunk uses is fetched while this one computes, some lines after each step:
// loops over chunks are too short for the processor to fetch ahead by itself.
void Group::run_chunk(const Segment& g, const Band& band, const Band& chunk, Scratch& at) const {
  const int64_t count = chunk.elements();
  int16_t source = -1;
  char* data = nullptr;
  at.ahead.clear();
  int64_t lines = 0;
  for (const Segment::Move& m : g.moves) {
    if (m.source != source) {
      source = m.source;
      const Source& s = sources_[static_cast<size_t>(source)];
      data = part(s, band, chunk.row, chunk.from, at);
      if (g.fetches && is_whole_in_memory(s)) {
        at.ahead.push_back({data + count * s.item, count * s.item});
        lines += count * s.item / 64;
      }
    }
    at.operands[static_cast<size_t>(m.step)].data[m.operand] = data;
  }
  const int64_t each = lines / (g.end - g.first) + 1;
  size_t next = 0;
  int64_t done = 0;
  for (auto k = static_cast<size_t>(g.first); k < static_cast<size_t>(g.end); ++k) {
    const Step& step = steps_[k];
    const Operands& own = at.operands[k];
    if (step.loop && step.within_rows && chunk.rows > 1)
      run_rows_of_chunk(step, band, chunk, own);
    else if (step.loop)
      step.loop(own.data, own.inner, count, step.params);
    for (int64_t l = 0; l < each && next < at.ahead.size(); ++l) {
      __builtin_prefetch(at.ahead[next].from + done);
      done += 64;
      if (done >= at.ahead[next].bytes) {
        ++next;
        done = 0;
      }
    }
  }
}

void Group::run_segment(const Segment& g, const Band& band, Scratch& at) const {
  if (!g.within_rows) {
    const int64_t n = band.elements();
    for (int64_t i = 0; i < n; i += g.chunk)
      run_chunk(g, band, {0, 1, i, std::min(g.chunk, n - i)}, at);
    return;
  }
  const int64_t across = std::min(g.chunk, band.length);
  const int64_t down = across == band.length ? std::max<int64_t>(1, g.chunk / across) : 1;
  for (int64_t r = 0; r < band.rows; r += down)
    for (int64_t i = 0; i < band.length; i += across)
      run_chunk(g, band, {r, std::min(down, band.rows - r), i, std::min(across, band.length - i)},
                at);
}

// A loop over an element a row.
void Group::run_by_rows(const Step& step, const Band& band, const Scratch& at) const {
  char* data[most_operands];
  int64_t inner[most_operands];
  for (int j = 0; j < step.count; ++j) {
    const Source& s = sources_[static_cast<size_t>(step.source[j])];
    const bool constant = s.extent == Extent::constant;
    data[j] = constant ? s.data : part(s, band, 0, 0, at);
    inner[j] = constant ? 0 : s.item;
  }
  step.loop(data, inner, band.rows, step.params);
}

}  // namespace clew::program

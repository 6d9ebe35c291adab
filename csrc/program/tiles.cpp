// Elementwise calls that follow each other, carried out together tile by tile: what one leaves the
// next finds in the nearest cache. May include: program, graph, tensor, kernels/core.
// Invariant: every element goes through the loops that it would go through alone, so it gets the
// same bits.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/parallel.h"
#include "base/scratch.h"
#include "graph/elementwise.h"
#include "kernels/elementwise/pointwise.h"
#include "program/program.h"

namespace clew::program {

namespace {

constexpr int most_operands = 5;
constexpr int64_t least_elements = 4096;    // below that a pass each costs no more
constexpr int64_t tile_bytes = 192 * 1024;  // what a tile of all operands may take
constexpr size_t most_calls = 64;

const LocalScratch tile_scratch;

// An operand of the group: memory, or a piece of scratch that lives for one tile.
struct Source {
  const Operand* of = nullptr;
  Storage* storage = nullptr;
  bool written = false;    // by a call of the group
  bool temporary = false;  // nobody sees it but calls of the group
  int16_t slot = -1;
  int16_t last = -1;  // the last step that uses it
  uint32_t uses = 0;  // of its storage by calls of the group
  int64_t item = 0;
  char* data = nullptr;
  bool flat = false;             // lies as the result does
  int64_t steps[max_dims] = {};  // bytes along the group's dims, innermost first
};

struct Step {
  kernels::Loop loop = nullptr;
  const Scalar* params = nullptr;
  int count = 0;
  int16_t source[most_operands] = {};  // [0] is written
};

class Group {
 public:
  Group(const Program& p, size_t first) : p_(p), first_(first) {}
  // The first call that does not belong to it.
  size_t gather();
  void place_sources();
  void run();

 private:
  const Program& p_;
  size_t first_;
  Dims sizes_, strides_;  // of the results: dense, in some order of dims
  int64_t numel_ = 0;
  std::vector<Source> sources_;
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<std::array<Scalar, most_operands>>> numbers_;
  std::vector<std::unique_ptr<std::array<char, 16>>> constants_;
  // What is left of the dims when neighbours are merged, innermost first.
  int ndim_ = 0;
  int64_t extent_[max_dims] = {};

  bool takes(const Call& c);
  int find(const Operand& o) const;
  bool touches_written(const Operand& o) const;
  void merge_dims();
  int16_t constant(const Scalar& v, DType d);
  int16_t cast(int16_t from, DType to);
  void run_tile(int64_t row, int64_t rows, int64_t from, int64_t length, char* scratch) const;
  int64_t slot_bytes_ = 0;
  int slots_ = 0;
  // A write in place cannot be begun again: such a group is done whole, whatever signals come.
  bool in_place_ = false;
};

int Group::find(const Operand& o) const {
  for (size_t i = 0; i < sources_.size(); ++i)
    if (sources_[i].of && sources_[i].of->same_place(o)) return static_cast<int>(i);
  return -1;
}

// Whether the group writes into o's memory elsewhere than at o's own elements.
bool Group::touches_written(const Operand& o) const {
  for (const Source& s : sources_)
    if (s.written && s.storage == o.storage && !(s.of && s.of->same_place(o))) return true;
  return false;
}

// Whether the call can be done in the same pass; adds its step where it can.
bool Group::takes(const Call& c) {
  if (c.how != Waits::loops) return false;
  const kernels::Loop plain = (*c.op->loops)[c.compute];
  if (!plain) return false;  // alone, it says what is wrong
  const Operand& result = p_.results(c)[0];
  if (numel_ == 0) {
    sizes_ = result.shape->sizes;
    strides_ = result.shape->strides;
    numel_ = result.shape->numel;
    if (numel_ < least_elements || !is_non_overlapping_and_dense(sizes_, strides_)) return false;
  } else if (result.shape->sizes != sizes_ || result.shape->strides != strides_) {
    return false;
  }
  // What it writes must not be read or written by the group in another way.
  for (const Source& s : sources_)
    if (s.storage == result.storage && !(s.of && s.of->same_place(result))) return false;
  const std::span<const Operand> in = p_.inputs(c);
  Step step;
  step.loop = plain;
  step.params = static_cast<const Scalar*>(c.attrs);
  step.count = static_cast<int>(in.size()) + 1;
  if (step.count > most_operands) return false;
  // What it may say of a number it says alone.
  if (c.op->check_number && !is_inexact(c.compute)) return false;
  for (const Operand& o : in) {
    if (touches_written(o)) return false;
    // A number that the group has yet to compute is not there when the pass begins.
    if (o.shape->numel == 1 && numel_ != 1 && o.storage->device == Device::Pending &&
        !o.storage->data)
      return false;
    if (o.dtype != c.compute && o.shape->numel != 1 && !kernels::cast_loop_of(o.dtype, c.compute))
      return false;
  }
  const kernels::Loop beside = c.op->loops->beside_number(c.compute);
  std::unique_ptr<std::array<Scalar, most_operands>> numbers;
  for (size_t i = 0; i < in.size(); ++i) {
    const Operand& o = in[i];
    int16_t source;
    if (o.shape->numel == 1 && o.dtype != c.compute) {
      const Scalar v = item(o.tensor());
      if (beside && o.shape->sizes.empty()) {
        if (!numbers) numbers = std::make_unique<std::array<Scalar, most_operands>>();
        (*numbers)[i] = v;
        step.loop = beside;
        step.params = numbers->data();
        source = constant(Scalar(0.0), c.compute);
      } else {
        source = constant(v, c.compute);
      }
    } else {
      int at = find(o);
      if (at < 0) {
        at = static_cast<int>(sources_.size());
        Source s;
        s.of = &o;
        s.storage = o.storage;
        s.item = static_cast<int64_t>(itemsize(o.dtype));
        sources_.push_back(s);
      }
      ++sources_[static_cast<size_t>(at)].uses;
      source = static_cast<int16_t>(at);
      if (o.dtype != c.compute) source = cast(source, c.compute);
    }
    step.source[i + 1] = source;
  }
  if (numbers) numbers_.push_back(std::move(numbers));
  int at = find(result);
  if (at < 0) {
    at = static_cast<int>(sources_.size());
    Source s;
    s.of = &result;
    s.storage = result.storage;
    s.item = static_cast<int64_t>(itemsize(result.dtype));
    sources_.push_back(s);
  }
  sources_[static_cast<size_t>(at)].written = true;
  ++sources_[static_cast<size_t>(at)].uses;
  step.source[0] = static_cast<int16_t>(at);
  steps_.push_back(step);
  in_place_ = in_place_ || c.in_place;
  return true;
}

int16_t Group::constant(const Scalar& v, DType d) {
  constants_.push_back(std::make_unique<std::array<char, 16>>());
  char* at = constants_.back()->data();
  dispatch(d, AllTypes{}, [&]<class T>() {
    const T value = v.to<T>();
    std::memcpy(at, &value, sizeof value);
  });
  Source s;
  s.data = at;
  s.item = static_cast<int64_t>(itemsize(d));
  sources_.push_back(s);
  return static_cast<int16_t>(sources_.size() - 1);
}

// A step that converts a source, tile by tile, too.
int16_t Group::cast(int16_t from, DType to) {
  Source s;
  s.temporary = true;
  s.written = true;
  s.item = static_cast<int64_t>(itemsize(to));
  sources_.push_back(s);
  Step step;
  step.loop = kernels::cast_loop_of(sources_[static_cast<size_t>(from)].of->dtype, to);
  step.count = 2;
  step.source[0] = static_cast<int16_t>(sources_.size() - 1);
  step.source[1] = from;
  steps_.push_back(step);
  return step.source[0];
}

size_t Group::gather() {
  size_t end = first_;
  while (end < p_.size() && end - first_ < most_calls && takes(p_.call(end))) ++end;
  return end;
}

// Which results anybody else will see; where they lie; when scratch is free again.
void Group::place_sources() {
  for (Source& s : sources_) {
    if (!s.of || !s.written) continue;
    // Bytes that are there were there before the group, which writes over them.
    s.temporary = s.storage->refs == s.uses && !s.storage->data && s.of->offset == 0 &&
                  s.storage->nbytes == static_cast<size_t>(numel_) * static_cast<size_t>(s.item);
  }
  for (size_t k = 0; k < steps_.size(); ++k)
    for (int j = 0; j < steps_[k].count; ++j)
      sources_[static_cast<size_t>(steps_[k].source[j])].last = static_cast<int16_t>(k);
  std::vector<int16_t> idle;
  for (size_t k = 0; k < steps_.size(); ++k) {
    Source& target = sources_[static_cast<size_t>(steps_[k].source[0])];
    if (target.temporary && target.slot < 0) {
      if (idle.empty()) {
        target.slot = static_cast<int16_t>(slots_++);
      } else {
        target.slot = idle.back();
        idle.pop_back();
      }
    }
    for (int j = 0; j < steps_[k].count; ++j) {
      Source& s = sources_[static_cast<size_t>(steps_[k].source[j])];
      if (s.slot >= 0 && s.last == static_cast<int16_t>(k)) {
        idle.push_back(s.slot);
        s.last = -1;  // once, though it may be named twice
      }
    }
  }
  for (Source& s : sources_) {
    if (!s.of || s.temporary) continue;
    if (s.written) give_bytes(s.storage);
    s.data = s.storage->at(s.of->offset);
  }
}

void Group::merge_dims() {
  // Outermost first in the order of the results' memory.
  SmallVec<int, 8> order;
  for (int d = 0; d < sizes_.size(); ++d)
    if (sizes_[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return strides_[a] < strides_[b]; });  // innermost first
  std::vector<Dims> strides(sources_.size());
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& s = sources_[i];
    if (s.of && !s.temporary)
      strides[i] = broadcast_strides(s.of->shape->sizes, s.of->shape->strides, sizes_);
  }
  for (const int d : order) {
    bool joins = ndim_ > 0;
    for (size_t i = 0; joins && i < sources_.size(); ++i) {
      const Source& s = sources_[i];
      if (s.of && !s.temporary)
        joins = strides[i][d] * s.item == s.steps[ndim_ - 1] * extent_[ndim_ - 1];
    }
    if (joins) {
      extent_[ndim_ - 1] *= sizes_[d];
      continue;
    }
    extent_[ndim_] = sizes_[d];
    for (size_t i = 0; i < sources_.size(); ++i) {
      Source& s = sources_[i];
      if (s.of && !s.temporary) s.steps[ndim_] = strides[i][d] * s.item;
    }
    ++ndim_;
  }
  for (Source& s : sources_) {
    if (!s.of || s.temporary) continue;
    int64_t expected = s.item;
    s.flat = true;
    for (int d = 0; d < ndim_; ++d) {
      s.flat = s.flat && s.steps[d] == expected;
      expected *= extent_[d];
    }
  }
}

// Rows [row, row + rows) of the merged dims, of each the elements from `from` on.
void Group::run_tile(int64_t row, int64_t rows, int64_t from, int64_t length, char* scratch) const {
  const auto start = [&](const Source& s, int64_t at_row) {
    char* at = s.data + from * s.steps[0];
    int64_t rest = at_row;
    for (int d = 1; d < ndim_; ++d) {
      at += rest % extent_[d] * s.steps[d];
      rest /= extent_[d];
    }
    return at;
  };
  for (const Step& step : steps_) {
    char* data[most_operands];
    int64_t inner[most_operands];
    bool whole = true;
    for (int j = 0; j < step.count; ++j) {
      const Source& s = sources_[static_cast<size_t>(step.source[j])];
      if (s.slot >= 0) {
        data[j] = scratch + s.slot * slot_bytes_;
        inner[j] = s.item;
      } else if (!s.of) {
        data[j] = s.data;
        inner[j] = 0;
      } else {
        data[j] = start(s, row);
        inner[j] = s.steps[0];
        whole = whole && (s.flat || rows == 1);
      }
    }
    if (whole) {
      step.loop(data, inner, rows * length, step.params);
      continue;
    }
    for (int64_t r = 0; r < rows; ++r) {
      char* at[most_operands];
      for (int j = 0; j < step.count; ++j) {
        const Source& s = sources_[static_cast<size_t>(step.source[j])];
        at[j] = s.slot >= 0 ? data[j] + r * length * s.item : !s.of ? data[j] : start(s, row + r);
      }
      step.loop(at, inner, length, step.params);
    }
  }
}

void Group::run() {
  merge_dims();
  int64_t bytes = 0;
  int64_t widest = 1;
  for (const Source& s : sources_) {
    if (s.of && !s.temporary && s.steps[0] != 0) bytes += s.item;
    widest = std::max(widest, s.item);
  }
  bytes += slots_ * widest;
  const int64_t tile =
      std::clamp<int64_t>(tile_bytes / std::max<int64_t>(bytes, 1) / 64 * 64, 512, 65536);
  const int64_t length = ndim_ ? extent_[0] : 1;
  const int64_t rows = numel_ / length;
  slot_bytes_ = (tile * widest + 63) / 64 * 64;
  if (length >= tile || rows == 1) {
    const int64_t across = (length + tile - 1) / tile;
    parallel_for(
        rows * across, std::max<int64_t>(1, grain_default / tile), [&](int64_t begin, int64_t end) {
          char* scratch =
              static_cast<char*>(tile_scratch.get(static_cast<size_t>(slots_ * slot_bytes_)));
          for (int64_t t = begin; t < end; ++t) {
            if (!in_place_) stop_point();
            const int64_t from = t % across * tile;
            run_tile(t / across, 1, from, std::min(tile, length - from), scratch);
          }
        });
    return;
  }
  const int64_t height = tile / length;
  parallel_for((rows + height - 1) / height, std::max<int64_t>(1, grain_default / tile),
               [&](int64_t begin, int64_t end) {
                 char* scratch = static_cast<char*>(
                     tile_scratch.get(static_cast<size_t>(slots_ * slot_bytes_)));
                 for (int64_t t = begin; t < end; ++t) {
                   if (!in_place_) stop_point();
                   run_tile(t * height, std::min(height, rows - t * height), 0, length, scratch);
                 }
               });
}

}  // namespace

size_t run_tiles(const Program& p, size_t first) {
  Group group(p, first);
  const size_t end = group.gather();
  if (end < first + 2) return first;
  group.place_sources();
  group.run();
  return end;
}

}  // namespace clew::program

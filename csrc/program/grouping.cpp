// Which calls one pass over tiles can carry out, and where their operands lie.
// May include: program, graph, kernels.
// Invariant: the passes give each element the operations that the calls would give it alone, in the
// same order.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/parallel.h"
#include "graph/elementwise.h"
#include "kernels/indexing/index.h"
#include "kernels/reduce/reduce.h"
#include "program/group.h"

namespace clew::program {

namespace {

using Extent = Source::Extent;

constexpr int64_t least_elements = 4096;  // below that a pass each costs no more
constexpr size_t most_calls = 96;
// Rows outside of these bounds are reduced in other ways, or do not fit into the cache.
constexpr int64_t least_columns = 64, most_columns = 65536, most_summed_columns = 2048;
constexpr int64_t least_reduced = 16384;
constexpr int64_t most_part = 65536;
constexpr int64_t most_line = 8192;
constexpr size_t most_put_off = 4;

// Whether `strides` over dims [from, end) are those of neighbours, or all zero.
bool is_line(const Dims& sizes, const Dims& strides, int from) {
  int64_t expected = 1;
  bool dense = true, still = true;
  for (int d = sizes.size() - 1; d >= from; --d) {
    if (sizes[d] == 1) continue;
    dense = dense && strides[d] == expected;
    still = still && strides[d] == 0;
    expected *= sizes[d];
  }
  return dense || still;
}

// The first of the trailing dims that together have so many elements; -1 where none have.
int split_at(const Dims& sizes, int64_t columns) {
  int d = sizes.size();
  int64_t n = 1;
  while (d > 0 && n < columns) n *= sizes[--d];
  return n == columns ? d : -1;
}

}  // namespace

bool Group::begins_with(const Shape& s) {
  if (s.numel < least_elements || !is_non_overlapping_and_dense(s.sizes, s.strides)) return false;
  sizes_ = s.sizes;
  strides_ = s.strides;
  numel_ = s.numel;
  in_order_ = s.contiguous;
  return true;
}

// Elements in order may be grouped into other dims.
bool Group::is_full(const Shape& s) const {
  return s.numel == numel_ &&
         ((in_order_ && s.contiguous) || (s.sizes == sizes_ && s.strides == strides_));
}

// Whether calls may work on rows of so many elements.
bool Group::works_on_rows(int64_t columns) const {
  if (columns_) return columns == columns_;
  if (columns < least_columns || columns > most_columns || numel_ <= least_reduced ||
      numel_ % columns != 0 || numel_ / columns < num_threads())
    return false;
  const int at = split_at(sizes_, columns);
  if (at < 0 || !in_order_) return false;
  for (const Source& s : sources_) {
    if (s.extent != Extent::spread || s.late) continue;
    const Shape& own = *s.of->shape;
    if (!is_line(sizes_, broadcast_strides(own.sizes, own.strides, sizes_), at)) return false;
  }
  return totals_ == 0 || totals_fit(columns, total_dtype_);
}

// Whether sums of everything can be cut between rows wherever the reduction alone cuts them.
bool Group::totals_fit(int64_t columns, DType d) const {
  const int64_t pieces = kernels::TotalSum::pieces(numel_);
  for (int64_t k = 0; k < pieces; ++k) {
    const int64_t begin = k * numel_ / pieces, end = (k + 1) * numel_ / pieces;
    const kernels::TotalSum::Cut cut = kernels::TotalSum::cut(d, end - begin);
    if (begin % columns != 0 || end % columns != 0 || cut.each % columns != 0) return false;
    // Parts of a piece are multiples of both, and no larger than needed.
    if (std::lcm(columns, std::max(cut.block, cut.rest)) > most_part) return false;
  }
  return true;
}

// Whether the same pieces of rows, read in their order, give sums over rows and sums of everything.
bool Group::totals_go_by_rows(int64_t columns, DType d) const {
  const int64_t pieces = kernels::TotalSum::pieces(numel_);
  if (pieces != kernels::ColumnSums::pieces(numel_ / columns, columns)) return false;
  return kernels::TotalSum::cut(d, (numel_ + pieces - 1) / pieces).places == 1;
}

// Whether what is broadcast is one number throughout.
bool Group::is_still() const {
  return std::all_of(sources_.begin(), sources_.end(), [&](const Source& s) {
    return s.extent != Extent::spread || s.late ||
           broadcast_strides(s.of->shape->sizes, s.of->shape->strides, sizes_) ==
               Dims(sizes_.size(), 0);
  });
}

// The group's elements per element of the shape if it has one element for each row of the group;
// otherwise 0.
int64_t Group::columns_of(const Shape& s) const {
  if (!s.contiguous || s.numel == 0 || s.numel == numel_) return 0;
  if (columns_) return s.numel == rows() ? columns_ : 0;
  if (s.sizes.size() != sizes_.size()) return 0;
  int d = sizes_.size();
  int64_t columns = 1;
  while (d > 0 && s.sizes[d - 1] == 1) columns *= sizes_[--d];
  for (int k = 0; k < d; ++k)
    if (s.sizes[k] != sizes_[k]) return 0;
  return columns;
}

// Whether o, broadcast to `result`, has one value for each of the group's rows. It may be expanded
// already, as the gradient of a mean is.
bool Group::is_a_value_a_row(const Operand& o, const Shape& result) const {
  const Shape& own = *o.shape;
  if (!columns_) return false;
  const Dims spread = broadcast_strides(own.sizes, own.strides, result.sizes);
  int64_t expected = 1, columns = 1;
  for (int d = result.sizes.size() - 1; d >= 0; --d) {
    const int64_t n = result.sizes[d];
    if (n == 1) continue;
    if (columns < columns_) {
      if (spread[d] != 0) return false;
      columns *= n;
    } else {
      if (spread[d] != expected) return false;
      expected *= n;
    }
  }
  return columns == columns_;
}

// The sources over a storage, newest first; -1 after the last.
int Group::first_over(const Storage* s) const { return over(s, newest_[bucket(s)]); }
int Group::next_over(const Storage* s, int i) const {
  return over(s, sources_[static_cast<size_t>(i)].before);
}
int Group::over(const Storage* s, int i) const {
  while (i >= 0 && sources_[static_cast<size_t>(i)].storage != s)
    i = sources_[static_cast<size_t>(i)].before;
  return i;
}

int Group::find(const Operand& o, Extent extent) const {
  for (int i = first_over(o.storage); i >= 0; i = next_over(o.storage, i)) {
    const Source& s = sources_[static_cast<size_t>(i)];
    if (s.extent != extent || s.of->offset != o.offset || s.of->dtype != o.dtype) continue;
    // Full ones lie as the group does, those of rows one after the other.
    if (extent != Extent::spread || s.of->same_place(o)) return i;
  }
  return -1;
}

// Whether o is complete when the pass begins, that is, the group does not write to its storage.
bool Group::may_read(const Operand& o) const {
  for (int i = first_over(o.storage); i >= 0; i = next_over(o.storage, i))
    if (sources_[static_cast<size_t>(i)].written) return false;
  return std::none_of(put_off_.begin(), put_off_.end(),
                      [&](size_t k) { return p_.results(p_.call(k))[0].storage == o.storage; });
}

// Whether no other source of the group uses o's storage.
bool Group::may_write(const Operand& o, Extent extent) const {
  for (const size_t k : put_off_) {
    const Call& c = p_.call(k);
    if (p_.results(c)[0].storage == o.storage) return false;
    for (const Operand& read : p_.inputs(c))
      if (read.storage == o.storage) return false;
  }
  const int own = find(o, extent);
  for (int i = first_over(o.storage); i >= 0; i = next_over(o.storage, i))
    if (i != own) return false;
  return own < 0 || !sources_[static_cast<size_t>(own)].late;
}

int16_t Group::source_of(const Operand& o, Extent extent) {
  int at = find(o, extent);
  if (at < 0) {
    at = static_cast<int>(sources_.size());
    Source s;
    s.of = &o;
    s.storage = o.storage;
    s.extent = extent;
    s.item = static_cast<int64_t>(itemsize(o.dtype));
    s.before = std::exchange(newest_[bucket(o.storage)], static_cast<int16_t>(at));
    sources_.push_back(s);
  }
  ++sources_[static_cast<size_t>(at)].uses;
  return static_cast<int16_t>(at);
}

void Group::written(Step& step, const Operand& result, Extent extent) {
  step.source[0] = source_of(result, extent);
  sources_[static_cast<size_t>(step.source[0])].written = true;
}

int16_t Group::constant(const Scalar& v, DType d) {
  constants_.push_back(std::make_unique<std::array<char, 16>>());
  char* at = constants_.back()->data();
  dispatch(d, AllTypes{}, [&]<class T>() {
    const T value = v.to<T>();
    std::memcpy(at, &value, sizeof value);
  });
  Source s;
  s.extent = Extent::constant;
  s.data = at;
  s.item = static_cast<int64_t>(itemsize(d));
  sources_.push_back(s);
  return static_cast<int16_t>(sources_.size() - 1);
}

// Adds a step that converts a source to another dtype, tile by tile.
int16_t Group::cast(int16_t from, DType to) {
  const Source& before = sources_[static_cast<size_t>(from)];
  Step step;
  step.loop = kernels::cast_loop_of(before.of->dtype, to);
  step.count = 2;
  step.by_rows = before.extent == Extent::row;
  Source s;
  s.extent = step.by_rows ? Extent::row : Extent::full;
  s.temporary = true;
  s.written = true;
  s.item = static_cast<int64_t>(itemsize(to));
  sources_.push_back(s);
  step.source[0] = static_cast<int16_t>(sources_.size() - 1);
  step.source[1] = from;
  steps_.push_back(step);
  return step.source[0];
}

bool Group::takes_loop(const Call& c) {
  const kernels::Loop plain = (*c.op->loops)[c.compute];
  if (!plain) return false;  // alone, it says what is wrong
  const std::span<const Operand> in = p_.inputs(c);
  const Operand& result = p_.results(c)[0];
  const Shape& shape = *result.shape;
  Step step;
  step.loop = plain;
  step.params = static_cast<const Scalar*>(c.attrs);
  step.count = static_cast<int>(in.size()) + 1;
  if (step.count > most_operands) return false;
  // An operation that may raise for a number runs alone.
  if ((c.op->check_number || c.op->divides) && !is_inexact(c.compute)) return false;
  if (numel_ == 0 && !begins_with(shape)) return false;
  int64_t columns = 0;
  if (!is_full(shape)) {
    columns = columns_of(shape);
    if (!columns || !works_on_rows(columns)) return false;
    step.by_rows = true;
  }
  const Extent extent = step.by_rows ? Extent::row : Extent::full;
  if (!may_write(result, extent)) return false;
  std::array<Extent, most_operands> extents{};
  for (size_t i = 0; i < in.size(); ++i) {
    const Operand& o = in[i];
    Extent& e = extents[i];
    if (o.shape->numel == 1 && (shape.numel != 1 || o.dtype != c.compute)) {
      // A number that the group has yet to compute is not there when the pass begins.
      if (o.storage->is_pending() && !o.storage->data) return false;
      e = Extent::constant;
      if (!may_read(o)) return false;
      continue;
    }
    if (step.by_rows) {
      if (o.shape->sizes != shape.sizes || !o.shape->contiguous) return false;
      e = Extent::row;
    } else if (is_full(*o.shape)) {
      e = Extent::full;
    } else if (is_a_value_a_row(o, shape)) {
      e = Extent::row;
    } else {
      e = Extent::spread;
      if (shape.sizes != sizes_) return false;
      const Dims strides = broadcast_strides(o.shape->sizes, o.shape->strides, sizes_);
      if (columns_ && !is_line(sizes_, strides, split_at(sizes_, columns_))) return false;
      if (totals_ && !columns_ && strides != Dims(sizes_.size(), 0)) return false;
    }
    const int known = find(o, e);
    if (e == Extent::spread || known < 0 ? !may_read(o) : sources_[static_cast<size_t>(known)].late)
      return false;
    if (o.dtype != c.compute && !kernels::cast_loop_of(o.dtype, c.compute)) return false;
  }
  if (step.by_rows) columns_ = columns;
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
      source = source_of(o, extents[i]);
      if (o.dtype != c.compute) source = cast(source, c.compute);
    }
    step.source[i + 1] = source;
  }
  if (numbers) numbers_.push_back(std::move(numbers));
  written(step, result, extent);
  steps_.push_back(step);
  in_place_ = in_place_ || c.in_place;
  return true;
}

// A kernel that goes through rows of its input, or makes rows.
bool Group::takes_kernel(const Call& c) {
  if (c.how != Waits::kernel || !c.op->passes || c.results != 1) return false;
  Tensors in;
  for (const Operand& o : p_.inputs(c)) in.push_back(o.tensor());
  const Passes passes = c.op->passes(clew::Call{*c.op, in, c.attrs});
  switch (passes.over) {
    case Passes::Over::nothing: return false;
    case Passes::Over::picked:
    case Passes::Over::placed: return takes_indexed(c, passes);
    default: return takes_reduction(c, passes);
  }
}

// The number of each row's element lies in memory that is complete. It is looked at now, so that
// the call runs alone, and says what is wrong, where one does not fit.
bool Group::takes_indexed(const Call& c, const Passes& passes) {
  const std::span<const Operand> in = p_.inputs(c);
  const Operand& result = p_.results(c)[0];
  const bool picked = passes.over == Passes::Over::picked;
  const Operand &full = picked ? in[0] : result, &index = in[1];
  if (!full.shape->contiguous || !result.shape->contiguous) return false;
  if (numel_ == 0 ? !begins_with(*full.shape) : !is_full(*full.shape)) return false;
  const int64_t columns = full.shape->sizes.back();
  if (!works_on_rows(columns) || full.shape->numel != index.shape->numel * columns) return false;
  if (!may_write(result, picked ? Extent::row : Extent::full) || !may_read(index)) return false;
  if (picked) {
    const int known = find(full, Extent::full);
    if (find(result, Extent::row) >= 0) return false;
    if (known < 0 ? !may_read(full) : sources_[static_cast<size_t>(known)].late) return false;
  } else {
    if (find(result, Extent::full) >= 0 || !may_read(in[0]) || !in[2].shape->contiguous)
      return false;
    const int known = find(in[2], Extent::row);
    if (known < 0 ? !may_read(in[2]) : sources_[static_cast<size_t>(known)].late) return false;
  }
  if (index.storage->is_pending() ||
      kernels::find_bad_index(index.tensor().nd(), columns, false) >= 0)
    return false;
  columns_ = columns;
  Step step;
  step.passes = passes;
  step.count = picked ? 3 : 4;
  if (picked) {
    step.source[1] = source_of(full, Extent::full);
  } else {
    step.source[1] = source_of(in[0], Extent::spread);
    step.source[3] = source_of(in[2], Extent::row);
  }
  step.source[2] = source_of(index, Extent::row);
  written(step, result, picked ? Extent::row : Extent::full);
  steps_.push_back(step);
  return true;
}

// A reduction whose kernel, given some rows, does with each what it does given all.
bool Group::takes_reduction(const Call& c, const Passes& passes) {
  const Operand& from = p_.inputs(c)[0];
  const Operand& result = p_.results(c)[0];
  if (numel_ == 0 ? !begins_with(*from.shape) : !is_full(*from.shape)) return false;
  if (!result.shape->contiguous || !from.shape->contiguous) return false;
  if (from.dtype != result.dtype) return false;
  if (passes.over == Passes::Over::all) return takes_total(c, passes);
  int64_t columns = 1;
  const Dims& dims = from.shape->sizes;
  for (int d = dims.size() - passes.dims; d < dims.size(); ++d) columns *= dims[d];
  const bool over_rows = passes.over == Passes::Over::rows;
  if (over_rows && (columns > most_summed_columns || !kernels::ColumnSums::adds(from.dtype)))
    return false;
  if (!works_on_rows(columns)) return false;
  if (over_rows && totals_ && !totals_go_by_rows(columns, total_dtype_)) return false;
  const Extent extent = over_rows ? Extent::spread : Extent::row;
  if (!may_write(result, extent) || find(result, extent) >= 0) return false;
  const int known = find(from, Extent::full);
  if (known < 0 ? !may_read(from) : sources_[static_cast<size_t>(known)].late) return false;
  columns_ = columns;
  Step step;
  step.passes = passes;
  step.attrs = c.attrs;
  step.count = 2;
  step.source[1] = source_of(from, Extent::full);
  written(step, result, extent);
  if (over_rows) {
    sources_[static_cast<size_t>(step.source[0])].late = true;
    step.sum = sums_++;
  }
  steps_.push_back(step);
  in_place_ = in_place_ || c.in_place;
  return true;
}

// The sum or mean of everything.
bool Group::takes_total(const Call& c, const Passes& passes) {
  const Operand& from = p_.inputs(c)[0];
  const Operand& result = p_.results(c)[0];
  if (!kernels::TotalSum::adds(from.dtype) || numel_ <= least_reduced) return false;
  if (sums_ && !totals_go_by_rows(columns_, from.dtype)) return false;
  if (totals_ && from.dtype != total_dtype_) return false;
  if (!may_write(result, Extent::spread) || find(result, Extent::spread) >= 0) return false;
  const int known = find(from, Extent::full);
  if (known < 0 ? !may_read(from) : sources_[static_cast<size_t>(known)].late) return false;
  if (columns_ || is_still()) {
    if (!totals_fit(std::max<int64_t>(columns_, 1), from.dtype)) return false;
  } else {
    // Lines along which nothing is broadcast, or all is: the longest that tiles can be made of,
    // because a call of a loop takes one of them.
    int64_t columns = 1, longest = 0;
    for (int d = sizes_.size() - 1; d > 0; --d) {
      columns *= sizes_[d];
      if (longest > 0 && columns > most_line) break;
      if (works_on_rows(columns) && totals_fit(columns, from.dtype)) longest = columns;
    }
    if (longest == 0) return false;
    columns_ = longest;
  }
  Step step;
  step.passes = passes;
  step.count = 2;
  step.source[1] = source_of(from, Extent::full);
  written(step, result, Extent::spread);
  sources_[static_cast<size_t>(step.source[0])].late = true;
  step.sum = totals_++;
  total_dtype_ = from.dtype;
  steps_.push_back(step);
  in_place_ = in_place_ || c.in_place;
  return true;
}

bool Group::takes(const Call& c) { return c.how == Waits::loops ? takes_loop(c) : takes_kernel(c); }

// A call on some values a row, such as the mean of the rows' losses, which no further call of the
// group needs and which cannot fail.
bool Group::may_be_put_off(const Call& c) const {
  const bool safe = c.how == Waits::loops ? is_inexact(c.compute)
                                          : c.how == Waits::kernel && c.op->passes && c.inputs == 1;
  if (!columns_ || put_off_.size() == most_put_off || !safe || c.results != 1 || c.in_place)
    return false;
  for (const Operand& o : p_.inputs(c))
    if (o.shape->numel > rows()) return false;
  return p_.results(c)[0].shape->numel <= rows();
}

bool Group::begins(const Program& p, size_t first) {
  const Call& c = p.call(first);
  const auto takes_part = [](const Call& k) {
    return k.how == Waits::loops || (k.how == Waits::kernel && k.op->passes);
  };
  if (first + 1 == p.size() || !takes_part(c)) return false;
  const Call& next = p.call(first + 1);
  if (!takes_part(next)) return false;
  const auto most = [&](const Call& k) {
    return std::max(p.results(k)[0].shape->numel, p.inputs(k)[0].shape->numel);
  };
  return std::min(most(c), most(next)) >= least_elements;
}

size_t Group::gather() {
  const size_t expected = std::min<size_t>(32, p_.size() - first_);
  steps_.reserve(expected);
  sources_.reserve(2 * expected);  // they are large to move
  size_t end = first_;
  for (; end < p_.size() && end - first_ < most_calls; ++end) {
    if (takes(p_.call(end))) continue;
    if (!may_be_put_off(p_.call(end))) break;
    put_off_.push_back(end);
  }
  while (!put_off_.empty() && put_off_.back() + 1 == end) {
    put_off_.pop_back();
    --end;
  }
  return end;
}

const char* Group::why_not(const Call& c) const {
  if (numel_ == 0) return "it is too small to gain from it, or lies with gaps";
  if (steps_.size() >= most_calls) return "the pass is long enough";
  if (c.how != Waits::loops && !c.op->passes) return "it works on whole tensors";
  if (c.how != Waits::loops) return "it reduces other dims than rows of the pass";
  const Shape& s = *p_.results(c)[0].shape;
  if (!is_full(s) && !columns_of(s)) return "it has another shape";
  return "it needs values that are complete only after the pass, or lies in another order";
}

}  // namespace clew::program

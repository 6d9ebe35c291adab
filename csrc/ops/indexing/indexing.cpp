// Advanced indexing: reading and writing the elements that index tensors and masks name.
// May include: ops, graph, tensor, kernels.
// Invariant: one op reads (_index) and one writes (_index_put); each is the other's gradient.
#include "ops/calls/indexing.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "graph/batch.h"
#include "graph/deferral.h"
#include "graph/inplace.h"
#include "kernels/core/loop_tables.h"
#include "kernels/indexing/index.h"
#include "kernels/indexing/index_few.h"
#include "ops/batch_rules.h"
#include "ops/calls/apart.h"
#include "ops/calls/comparison.h"
#include "ops/calls/shape.h"
#include "tensor/kernel_frame.h"

namespace clew {

namespace {

struct IndexPutAttrs {
  Dims dims;
  bool accumulate = false;
  static constexpr auto members() {
    return std::tuple(&IndexPutAttrs::dims, &IndexPutAttrs::accumulate);
  }
};

// The dims that are not indexed, before and after the place of the indexed ones, and the block
// those span.
struct Frame {
  Dims before, after;
  int64_t total = 1;
  int axis() const { return before.size(); }
};
Frame frame_of(const Dims& sizes, const Dims& dims, std::string_view op) {
  Frame f;
  require(!dims.empty(), op, ": at least one dimension must be indexed");
  bool adjacent = true;
  for (int i = 0; i < dims.size(); ++i) {
    require(dims[i] >= 0 && dims[i] < sizes.size() && (i == 0 || dims[i] > dims[i - 1]), op,
            ": dims must increase and lie within the ", sizes.size(),
            " dimensions of the input; got ", dims);
    adjacent = adjacent && (i == 0 || dims[i] == dims[i - 1] + 1);
    f.total *= sizes[static_cast<int>(dims[i])];
  }
  int next = 0;
  for (int d = 0; d < sizes.size(); ++d) {
    if (next < dims.size() && dims[next] == d)
      ++next;
    else
      (adjacent && next == 0 ? f.before : f.after).push_back(d);
  }
  return f;
}
Dims picked(const Dims& all, const Dims& which) {
  Dims out;
  for (int64_t d : which) out.push_back(all[static_cast<int>(d)]);
  return out;
}
// before, middle, after: sizes or strides of a tensor shaped like the result.
Dims framed(const Frame& f, const Dims& all, std::span<const int64_t> middle) {
  Dims out = picked(all, f.before);
  for (int64_t m : middle) out.push_back(m);
  for (int64_t d : f.after) out.push_back(all[static_cast<int>(d)]);
  return out;
}

// Where the places lie in x's memory: places[k] * scale elements, each place below `limit`.
struct Resolved {
  std::vector<int64_t> own;
  const int64_t* places = nullptr;
  int64_t scale = 1;
  int64_t limit = 0;
};
[[noreturn]] void fail_place(int64_t place, const Dims& dims, int64_t total, std::string_view op) {
  fail_index(op, ": index ", place, " is out of bounds for dimension ", dims[0], " with size ",
             total);
}
void check_places(const Tensor& places, const Dims& dims, int64_t total, std::string_view op) {
  int64_t bad = kernels::find_bad_index(places.nd(), total, false);
  if (bad >= 0) fail_place(kernels::index_value(places.nd(), bad), dims, total, op);
}
// Places that are used as they are may be left to the loop to check.
void resolve(Resolved& r, const Tensor& x, const Tensor& places, const Dims& dims, int64_t total,
             std::string_view op, bool check = true) {
  // Dims that lie in memory like one dimension need no decoding.
  int64_t step = x.stride(static_cast<int>(dims.back()));
  int64_t expect = step;
  bool regular = true;
  for (int i = dims.size() - 1; i >= 0; --i) {
    int d = static_cast<int>(dims[i]);
    regular = regular && x.stride(d) == expect;
    expect *= x.size(d);
  }
  r.limit = total;
  r.scale = step;
  if (regular && places.is_contiguous()) {
    if (check) check_places(places, dims, total, op);
    r.places = places.data<int64_t>();
    return;
  }
  r.own.assign(static_cast<size_t>(places.numel()), 0);
  r.places = r.own.data();
  if (const auto bad = kernels::copy_indices(r.own.data(), places.nd(), total))
    fail_place(bad.value, dims, total, op);
  if (regular) return;
  r.scale = 1;
  r.limit = INT64_MAX;
  for (int64_t& place : r.own) {
    int64_t left = place;
    place = 0;
    for (int i = dims.size() - 1; i >= 0; --i) {
      int d = static_cast<int>(dims[i]);
      place += left % x.size(d) * x.stride(d);
      left /= x.size(d);
    }
  }
}

void require_places(const Tensor& places, std::string_view op) {
  if (places.dtype() != DType::Int64) fail_index(op, ": index must be int64; got ", places);
}

// Of a dense tensor whose indexed dims lie side by side, with few elements at n places; else none.
constexpr int64_t few_elements = 4096;
bool find_blocks(kernels::DenseBlocks& b, const Tensor& x, const Dims& dims, int64_t n) {
  const Dims& sizes = x.sizes();
  if (x.is_meta() || !x.is_contiguous() || x.numel() == 0 || dims.empty() ||
      n > kernels::few_places || dims[0] < 0 || dims.back() >= sizes.size())
    return false;
  for (int i = 1; i < dims.size(); ++i)
    if (dims[i] != dims[i - 1] + 1) return false;
  const auto begin = static_cast<int>(dims[0]), end = static_cast<int>(dims.back()) + 1;
  for (int d = 0; d < begin; ++d) b.outer *= sizes[d];
  for (int d = begin; d < end; ++d) b.total *= sizes[d];
  for (int d = end; d < sizes.size(); ++d) b.inner *= sizes[d];
  b.item = itemsize(x.dtype());
  return b.outer <= few_elements && b.inner <= few_elements &&
         b.outer * b.inner * n <= few_elements;
}
bool is_dense(const Tensor& t) { return t.is_contiguous() && !t.is_meta(); }

// ---- reading ------------------------------------------------------------------------------------

void index_shape(const Call& c, OutSpecs& out) {
  require_places(c.in[1], c.name());
  const Tensor& x = c.in[0];
  Frame f = frame_of(x.sizes(), c.as<IndexAttrs>().dims, c.name());
  const Dims& middle = c.in[1].sizes();
  out.add(x.dtype(), framed(f, x.sizes(), {middle.data(), static_cast<size_t>(middle.size())}));
}
void index_cpu(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  const Tensor& places = c.in[1];
  const Dims& dims = c.as<IndexAttrs>().dims;
  Frame f = frame_of(x.sizes(), dims, c.name());
  Resolved r;
  resolve(r, x, places, dims, f.total, c.name(), !is_fresh(outs[0]) || outs[0].numel() == 0);
  int64_t n = places.numel();
  int64_t zero = 0;
  Dims sizes = framed(f, x.sizes(), {&n, 1});
  Dims strides = contiguous_strides(sizes);
  Dims from = framed(f, x.strides(), {&zero, 1});
  bool ok = true;
  {
    ok = kernels::take_at(
        {outs[0]->address(), sizes.data(), strides.data(), sizes.size(), x.dtype()},
        {x->address(), sizes.data(), from.data(), sizes.size(), x.dtype()}, f.axis(), r.places,
        r.scale, r.limit);
  }
  if (ok) return;
  check_places(places, dims, f.total, c.name());
  fail_changed(c.name());
}
Tensor index_quick(const Call& c) {
  const Tensor &x = c.in[0], &places = c.in[1];
  const Dims& dims = c.as<IndexAttrs>().dims;
  kernels::DenseBlocks b;
  if (places.dtype() != DType::Int64 || !is_dense(places) ||
      !find_blocks(b, x, dims, places.numel()))
    return {};
  Dims sizes;
  for (int d = 0; d < dims[0]; ++d) sizes.push_back(x.size(d));
  for (int64_t n : places.sizes()) sizes.push_back(n);
  for (int d = static_cast<int>(dims.back()) + 1; d < x.ndim(); ++d) sizes.push_back(x.size(d));
  Tensor out = empty(sizes, x.dtype());
  if (!kernels::take_few(out->address(), x->address(), b, places.data<int64_t>(), places.numel()))
    return {};
  return out;
}
void index_vjp(Vjp& c) {
  const Dims& dims = c.as<IndexAttrs>().dims;
  const Tensor g = written_out(c.grad());
  c.set(0, index_put(zero_block(c.sizes(0), g.dtype(), g.device()), g, c.in(1), dims, true));
}
void put_into(const Tensor& dst, const Tensor& values, const Tensor& places, const IndexPutAttrs& a,
              std::string_view op);
void index_accumulate(Vjp& c, const Tensor& into) {
  put_into(into, written_out(c.grad()), c.in(1), IndexPutAttrs{c.as<IndexAttrs>().dims, true},
           "indexing");
}
constexpr OpDef index_op = general({
    .signature = "_index(Tensor input, Tensor index, int[] dims) -> Tensor",
    .doc = "The elements at row-major places of the block that some dims span.",
    .shape = index_shape,
    .cpu = index_cpu,
    .quick = index_quick,
    .saves = {.always = in(1)},
    .vjp = index_vjp,
    .batch = batch_index,
    .accumulate = index_accumulate,
    .attrs = &attr_info<IndexAttrs>,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});

// ---- writing ------------------------------------------------------------------------------------

void index_put_check(const Call& c) {
  require_places(c.in[2], c.name());
  const Tensor& x = c.in[0];
  const Tensor& values = c.in[1];
  if (values.dtype() != x.dtype()) {
    fail(c.name(), ": source and destination dtypes must match; got ", values.dtype(), " for ",
         x.dtype());
  }
  Frame f = frame_of(x.sizes(), c.as<IndexPutAttrs>().dims, c.name());
  const Dims& middle = c.in[2].sizes();
  Dims result = framed(f, x.sizes(), {middle.data(), static_cast<size_t>(middle.size())});
  bool fits = values.ndim() <= result.size();
  for (int d = 1; fits && d <= values.ndim(); ++d) {
    fits = values.size(-d) == 1 || values.size(-d) == result[result.size() - d];
  }
  require(fits, c.name(), ": shape mismatch: value tensor of shape ", values.sizes(),
          " cannot be broadcast to indexing result of shape ", result);
}
void index_put_shape(const Call& c, OutSpecs& out) {
  index_put_check(c);
  out.add(c.in[0].dtype(), c.in[0].sizes());
}
void put_into(const Tensor& into, const Tensor& from, const Tensor& at, const IndexPutAttrs& a,
              std::string_view op) {
  const Tensor given[] = {into, from, at};
  const KernelFrame frame(given, is_worth_holding(given));
  const Tensor &dst = frame.tensors()[0], &values = frame.tensors()[1],
               &places = frame.tensors()[2];
  Frame f = frame_of(dst.sizes(), a.dims, op);
  const Dims& middle = places.sizes();
  Dims result = framed(f, dst.sizes(), {middle.data(), static_cast<size_t>(middle.size())});
  int64_t n = places.numel();
  int64_t zero = 0;
  Dims sizes = framed(f, dst.sizes(), {&n, 1});
  Resolved r;
  resolve(r, dst, places, a.dims, f.total, op);
  if (numel_of(sizes) == 0) return;
  Tensor source = values;
  std::optional<Dims> strides =
      view_strides(result, broadcast_strides(values.sizes(), values.strides(), result), sizes);
  if (!strides || values->storage == dst->storage) {
    source = empty(result, values.dtype());
    copy_into(source, values);
    strides = contiguous_strides(sizes);
  }
  // Long sums of 16-bit floats are kept in 32 bits.
  bool widen = a.accumulate && n > 1 && is_half(dst.dtype());
  Tensor target = dst;
  if (widen) {
    resolve(r, target = empty(dst.sizes(), DType::Float32), places, a.dims, f.total, op);
    copy_into(target, dst);
    Tensor wide = empty(sizes, DType::Float32);
    copy_into(wide, alias(source, sizes, *strides));
    source = wide;
    strides = wide.strides();
  }
  Dims to = framed(f, target.strides(), {&zero, 1});
  bool ok = true;
  {
    ok = kernels::put_at(
        {target->address(), sizes.data(), to.data(), sizes.size(), target.dtype()},
        {source->address(), sizes.data(), strides->data(), sizes.size(), target.dtype()}, f.axis(),
        r.places, r.scale, r.limit,
        a.accumulate ? kernels::Combine::Add : kernels::Combine::Assign);
  }
  if (!ok) fail_changed(op);
  if (widen) copy_into(dst, target);
}
void index_put_cpu(const Call& c, Tensors& outs) {
  copy_into(outs[0], c.in[0]);
  put_into(outs[0], c.in[1], c.in[2], c.as<IndexPutAttrs>(), c.name());
}
void index_put_write(const Call& c) {
  put_into(c.in[0], c.in[1], c.in[2], c.as<IndexPutAttrs>(), "index_put_");
}
// Where the values are one element or as many as the places name.
bool index_put_write_few(const Call& c) {
  const Tensor &x = c.in[0], &values = c.in[1], &places = c.in[2];
  const auto& a = c.as<IndexPutAttrs>();
  kernels::DenseBlocks b;
  const int64_t n = places.numel();
  if (places.dtype() != DType::Int64 || !is_dense(places) || !is_dense(values) ||
      values.dtype() != x.dtype() || values->storage == x->storage ||
      places->storage == x->storage || !find_blocks(b, x, a.dims, n))
    return false;
  const bool one = values.ndim() == 0;
  if (!one) {
    // The sizes of what is indexed, from the last on.
    int at = values.ndim();
    auto next = [&](int64_t size) { return at > 0 && values.size(--at) == size; };
    for (int d = x.ndim() - 1; d > a.dims.back(); --d)
      if (!next(x.size(d))) return false;
    for (int d = places.ndim() - 1; d >= 0; --d)
      if (!next(places.size(d))) return false;
    for (int d = static_cast<int>(a.dims[0]) - 1; d >= 0; --d)
      if (!next(x.size(d))) return false;
    if (at != 0) return false;
  }
  const auto* at = places.data<int64_t>();
  return a.accumulate ? kernels::add_few(x.dtype(), x->address(), values->address(), one, b, at, n)
                      : kernels::put_few(x->address(), values->address(), one, b, at, n);
}
// Every element that is written has a place among those that x holds once.
void index_put_write_expanded(const Call& c) {
  index_put_check(c);
  const Tensor &x = c.in[0], &values = c.in[1];
  const auto& a = c.as<IndexPutAttrs>();
  if (x.is_meta()) return bump_version(x);
  const Tensor held = without_repeats(x);
  const auto itself = [](std::span<int64_t> to) { std::iota(to.begin(), to.end(), 0); };
  const Tensor numbers = view(int64_tensor(held.numel(), itself), held.sizes());
  const Tensor targets = index_at(expand(numbers, x.sizes()), c.in[2], a.dims);
  Tensor at = reshape(targets, {-1});
  Tensor source = reshape(expand(values, targets.sizes()), {-1});
  if (!a.accumulate) {  // of the values for one place the last one stays
    const Tensor none =
        int64_tensor(held.numel(), [](std::span<int64_t> to) { std::ranges::fill(to, -1); });
    const Tensor last = index_put(none, int64_tensor(at.numel(), itself), at, {0}, false);
    at = nonzero_flat(ge(last, scalar_tensor(Scalar(0), DType::Int64)), "index_put_");
    source = index_at(source, index_at(last, at, {0}), {0});
  }
  const Tensor flat = reshape(held, {-1});
  if (flat->storage == held->storage) return index_put_(flat, source, at, {0}, a.accumulate);
  copy_(held, reshape(index_put(flat, source, at, {0}, a.accumulate), held.sizes()));
}
void index_put_vjp(Vjp& c) {
  const auto& a = c.as<IndexPutAttrs>();
  const Tensor& g = c.grad();
  if (c.needs(0)) {
    c.set(0, a.accumulate
                 ? g
                 : index_put(g, zero_block({}, g.dtype(), g.device()), c.in(2), a.dims, false));
  }
  if (c.needs(1)) c.set(1, index_at(g, c.in(2), a.dims));
}
bool side_by_side(const Dims& dims) {
  for (int i = 1; i < dims.size(); ++i)
    if (dims[i] != dims[i - 1] + 1) return false;
  return !dims.empty();
}
Dims moved(Dims dims, int k) {
  for (int64_t& d : dims) d += k;
  return dims;
}
// Values with the levels in front, to broadcast against the places of all samples.
Tensor values_of_samples(const Tensor& values, uint32_t levels, int k, int ndim) {
  if (!is_batched(values)) return values;
  Tensor v = physical_at(values, levels, false);
  while (v.ndim() - k < ndim) v = builtins.unsqueeze(v, k);
  return v;
}
void index_put_batch(const Batch& b, Tensors& outs) {
  const auto& a = b.as<IndexPutAttrs>();
  if (b.batched(2) || !side_by_side(a.dims)) return batch_each(b, outs);
  int ndim = b.in[0].ndim() - a.dims.size() + b.in[2].ndim();
  Tensor values = values_of_samples(b.in[1], b.levels, b.k(), ndim);
  outs.push_back(index_put(b.full(0), values, b.in[2], moved(a.dims, b.k()), a.accumulate));
}
// Rows written to, or added to, rows.
RowWise index_put_rows(const Call& c, void*, int64_t) {
  const auto& a = c.as<IndexPutAttrs>();
  const Tensor &x = c.in[0], &values = c.in[1], &places = c.in[2];
  const bool by_rows = a.dims.size() == 1 && a.dims[0] == 0 && places.ndim() == 1 &&
                       values.ndim() == x.ndim() && values.size(0) == places.size(0);
  return by_rows ? RowWise{RowWise::Makes::rows, in(0) | in(1) | in(2), false, 2, 0} : no_rows;
}
constexpr OpDef index_put_op = general({
    .signature = "_index_put(Tensor input, Tensor values, Tensor index, int[] dims, bool "
                 "accumulate=False) -> Tensor",
    .doc = "The input with values written (or added) at row-major places of the block that some "
           "dims span.",
    .shape = index_put_shape,
    .cpu = index_put_cpu,
    .write = index_put_write,
    .write_few = index_put_write_few,
    .write_expanded = index_put_write_expanded,
    .saves = {.always = in(2)},
    .vjp = index_put_vjp,
    .batch = index_put_batch,
    .rows = index_put_rows,
    .attrs = &attr_info<IndexPutAttrs>,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});

constexpr const OpDef* indexing_list[] = {
    &index_op,
    &index_put_op,
};

}  // namespace

extern const OpList indexing_ops;
const OpList indexing_ops = op_list(indexing_list);

void fail_changed(std::string_view op) {
  fail_index(op,
             ": an index was out of range while it was read, and another thread has changed it");
}

// Index tensors of the CPU may index a meta tensor: only their shape matters then.
static Tensor beside(const Tensor& places, const Tensor& x) {
  return x.is_meta() && !places.is_meta() ? empty(places.sizes(), DType::Int64, Device::Meta)
                                          : places;
}
Tensor index_at(const Tensor& x, const Tensor& places, const Dims& dims) {
  return apply(index_op, {x, beside(places, x)}, IndexAttrs{dims});
}
Tensor index_put(const Tensor& x, const Tensor& values, const Tensor& places, const Dims& dims,
                 bool accumulate) {
  return apply(index_put_op, {x, values, beside(places, x)}, IndexPutAttrs{dims, accumulate});
}
void index_put_(const Tensor& x, const Tensor& values, const Tensor& places, const Dims& dims,
                bool accumulate) {
  const Tensor args[3] = {x, values.numel() == 1 ? apart_from(values, x) : values,
                          beside(places, x)};
  // Places are looked up while values are read, so that even equal tensors disturb.
  if (x->storage == args[1]->storage && !levels_of(args))
    if (const Overlap shared = overlap(x, args[1]);
        shared == Overlap::partly || shared == Overlap::whole)
      fail_overlap("index_put_");
  const IndexPutAttrs a{dims, accumulate};
  apply_inplace(index_put_op, args, &a);
}

}  // namespace clew

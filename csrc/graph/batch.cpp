// vmap: batched tensors, their levels, and running ops on them.
// May include: graph.
// Invariant: ops run on physical tensors, with the dims of the levels in front; a batched tensor is
// made of the result afterwards.
#include "graph/batch.h"

#include <bit>
#include <vector>

#include "base/generator.h"
#include "graph/elementwise.h"
#include "graph/inplace.h"
#include "graph/promotion.h"

namespace clew {

namespace {

thread_local std::vector<VmapLevel> levels_open;
thread_local uint32_t next_serial = 1;

// Turns vmap off for random draws while one sample of the sample-by-sample loop runs.
class Suspend {
  bool before_;

 public:
  Suspend() : before_(modes.vmap) { modes.vmap = false; }
  ~Suspend() { modes.vmap = before_; }
  Suspend(const Suspend&) = delete;
};

[[noreturn]] void fail_over() {
  fail(
      "vmap: a tensor made inside vmap was kept and used after that vmap was over; return it "
      "from the function that is vmapped instead");
}

int bits(uint32_t levels) { return std::popcount(levels); }
uint32_t bit(int level) { return 1u << level; }
int position(uint32_t levels, int level) { return bits(levels & (bit(level) - 1)); }

Dims joined(const Dims& a, const Dims& b) {
  Dims out = a;
  for (int64_t n : b) out.push_back(n);
  return out;
}

// Size-1 dims between the levels and the rest, until one sample has `ndim` dims.
Tensor with_sample_ndim(Tensor value, int k, int ndim) {
  while (value.ndim() - k < ndim) value = builtins.unsqueeze(value, k);
  return value;
}

// The inputs of an elementwise op, lined up so that they broadcast as single samples do.
void align(const Batch& b, Tensors& args) {
  int ndim = 0;
  bool mixed = false;
  for (const Tensor& t : b.in) {
    ndim = std::max(ndim, t.ndim());
    mixed = mixed || t.dtype() != b.in[0].dtype();
  }
  // A 0-d sample counts less in type promotion than its physical tensor would.
  bool cast = mixed && b.op.promote != Promote::none;
  DType c = cast ? result_type(b.in) : DType::Float32;
  for (size_t i = 0; i < b.in.size(); ++i) {
    const Tensor& t = b.in[i];
    if (!is_batched(t)) {
      bool same_kind = !cast || t.dtype() == c || t.is_wrapped_number() || t.ndim() > 0;
      args.push_back(same_kind ? t : builtins.to_dtype(t, c));
      continue;
    }
    Tensor v = with_sample_ndim(b.value(static_cast<int>(i)), b.k(), ndim);
    args.push_back(cast && v.dtype() != c ? builtins.to_dtype(v, c) : v);
  }
}

void view_by_strides(const Batch& b, Tensors& outs) {
  std::vector<ViewSpec> specs;
  b.op.view(Call{b.op, b.in, b.attrs}, specs);
  Tensor value = b.value(0);
  Dims lead(value.strides().data(), b.k());
  outs.resize(static_cast<int>(specs.size()));
  for (size_t i = 0; i < specs.size(); ++i)
    outs[static_cast<int>(i)] =
        builtins.as_strided(value, joined(b.lead, specs[i].sizes), joined(lead, specs[i].strides),
                            value.storage_offset() + specs[i].offset);
}

Generator* generator_of(const OpDef& op, const void* attrs) {
  if (!is_random(op)) return nullptr;
  Generator* const* g = op.attrs->generator_at(const_cast<void*>(attrs));
  return *g ? *g : &default_generator();
}

void random_loop(const Batch& b, Tensors& outs) {
  Generator* g = generator_of(b.op, b.attrs);
  bool same = same_draws();
  uint8_t start[Generator::state_bytes];
  g->save(start);
  bool first = true;
  for_each_sample(b.in, b.levels, outs, [&](std::span<const Tensor> in, Tensors& o) {
    if (same && !first) g->load(start, Generator::state_bytes);
    first = false;
    apply(b.op, in, b.attrs, o);
  });
}

}  // namespace

int vmap_depth() { return static_cast<int>(levels_open.size()); }
int enter_vmap(int64_t size, Randomness randomness) {
  if (vmap_depth() == max_vmap_levels)
    fail("vmap: at most ", max_vmap_levels, " vmaps may be nested");
  levels_open.push_back({size, randomness, next_serial++});
  modes.vmap = true;
  return vmap_depth() - 1;
}
void exit_vmap() {
  levels_open.pop_back();
  modes.vmap = !levels_open.empty();
}
const VmapLevel& vmap_level(int level) {
  if (level >= vmap_depth()) fail_over();
  return levels_open[static_cast<size_t>(level)];
}

uint32_t levels_of(std::span<const Tensor> in) {
  uint32_t levels = 0;
  for (const Tensor& t : in) levels |= levels_of(t);
  return levels;
}

Tensor physical(const Tensor& t) { return is_batched(t) ? t.view_as_base() : t; }

void check_alive(const Tensor& t) {
  if (!is_batched(t)) return;
  int top = std::bit_width(t->view_version) - 1;
  if (vmap_level(top).serial != t->output_nr) fail_over();
}

Tensor make_batched(const Tensor& value, uint32_t levels) {
  if (!levels) return value;
  int k = bits(levels);
  TensorObj* t = new_tensor_obj();
  t->storage = value->storage;
  t->storage->incref();
  t->offset = value->offset;
  t->dtype = value->dtype;
  t->flags = static_cast<uint8_t>((value->flags & (flag_own_version | flag_inference | flag_conj)) |
                                  flag_batched);
  take_shape(t, Shape::strided(Dims(value.sizes().data() + k, value.ndim() - k),
                               Dims(value.strides().data() + k, value.ndim() - k)));
  t->base = Tensor(value).release();
  t->view_version = levels;
  t->output_nr = vmap_level(std::bit_width(levels) - 1).serial;
  return Tensor::steal(t);
}

Tensor add_level(const Tensor& t, int dim, int level) {
  check_alive(t);
  uint32_t own = levels_of(t);
  Tensor value = builtins.movedim(physical(t), bits(own) + dim, position(own, level));
  // A tensor of its own, even if nothing moved: requires_grad_() on the sample is not on t.
  if (value.is_same(physical(t))) value = builtins.view(value, value.sizes());
  return make_batched(value, own | bit(level));
}

Tensor remove_level(const Tensor& t, int level) {
  check_alive(t);
  uint32_t own = levels_of(t);
  Tensor value = physical(t);
  int k = bits(own);
  if (own & bit(level))
    return make_batched(builtins.movedim(value, position(own, level), k - 1), own & ~bit(level));
  Dims sizes(value.sizes().data(), k);
  sizes.push_back(vmap_level(level).size);
  for (int i = k; i < value.ndim(); ++i) sizes.push_back(value.size(i));
  return make_batched(builtins.expand(builtins.unsqueeze(value, k), sizes), own);
}

Dims level_sizes(uint32_t levels) {
  Dims out;
  for (uint32_t rest = levels; rest; rest &= rest - 1)
    out.push_back(vmap_level(std::countr_zero(rest)).size);
  return out;
}

Tensor physical_at(const Tensor& t, uint32_t levels, bool expanded) {
  if (!t.defined()) return t;
  uint32_t own = levels_of(t);
  Tensor value = physical(t);
  int p = 0;
  for (uint32_t rest = levels; rest; rest &= rest - 1, ++p)
    if (!(own & rest & -rest)) value = builtins.unsqueeze(value, p);
  if (!expanded || own == levels) return value;
  return builtins.expand(value, joined(level_sizes(levels), t.sizes()));
}

void for_each_sample(std::span<const Tensor> in, uint32_t levels, Tensors& outs,
                     const std::function<void(std::span<const Tensor>, Tensors&)>& f) {
  for (const Tensor& t : in) {
    if (t.defined()) check_alive(t);
  }
  Suspend suspend;
  Dims lead = level_sizes(levels);
  int64_t count = numel_of(lead);
  std::vector<Tensor> values(in.size());
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i].defined()) values[i] = is_batched(in[i]) ? physical_at(in[i], levels, false) : in[i];
  std::vector<std::vector<Tensor>> columns;
  for (int64_t n = 0; n < std::max<int64_t>(count, 1); ++n) {
    std::vector<Tensor> sample(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
      if (!is_batched(in[i])) {
        sample[i] = in[i];
        continue;
      }
      if (count == 0) {  // there are no samples: an arbitrary one gives the shapes
        sample[i] = empty(in[i].sizes(), in[i].dtype(), in[i].device());
        fill_(sample[i], Scalar(0));
        continue;
      }
      sample[i] = values[i];
      int64_t rest = n;
      int64_t weight = count;
      for (int64_t size : lead) {
        weight /= size;
        sample[i] = builtins.select(sample[i], 0, sample[i].size(0) == 1 ? 0 : rest / weight);
        rest %= weight;
      }
    }
    Tensors got;
    f(sample, got);
    columns.resize(static_cast<size_t>(got.size()));
    for (int j = 0; j < got.size(); ++j) {
      auto& column = columns[static_cast<size_t>(j)];
      if (!column.empty() && got[j].defined() && got[j].sizes() != column[0].sizes())
        fail("vmap: the shape of a result depends on the data: samples gave ", column[0].sizes(),
             " and ", got[j].sizes(), "; such an operation cannot be vmapped");
      column.push_back(got[j]);
    }
  }
  outs.resize(static_cast<int>(columns.size()));
  for (size_t j = 0; j < columns.size(); ++j) {
    const Tensor& first = columns[j][0];
    if (!first.defined()) continue;
    Dims sizes = joined(lead, first.sizes());
    Tensor whole = count == 0 ? empty(sizes, first.dtype(), first.device())
                              : builtins.view(builtins.stack(columns[j]), sizes);
    outs[static_cast<int>(j)] = make_batched(whole, levels);
  }
}

bool is_random(const OpDef& op) { return op.attrs && op.attrs->generator >= 0; }

uint32_t random_levels(std::string_view name, uint32_t own) {
  for (int i = 0; i < vmap_depth(); ++i) {
    Randomness r = vmap_level(i).randomness;
    if (r == Randomness::error)
      fail("vmap: called random operation ", name,
           " while in randomness error mode. Please either use the 'same' or 'different' "
           "randomness flags on vmap or perform the randomness operation out of vmap");
    if (r == Randomness::different) own |= bit(i);
  }
  return own;
}

bool same_draws() {
  for (const VmapLevel& l : levels_open)
    if (l.randomness == Randomness::different) return false;
  return true;
}

void apply_batched(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs) {
  for (const Tensor& t : in) check_alive(t);
  uint32_t levels = levels_of(in);
  if (op.kind == OpKind::Composite) {
    try {
      op.run(Call{op, in, attrs}, outs);
      return;
    } catch (const ElementsOfBatch&) {  // it looks at values: one sample at a time, then
      outs.resize(0);
    }
  } else if (is_random(op)) {
    levels = random_levels(op_name(op), levels);
    if (levels) return random_loop(Batch{op, in, attrs, levels, level_sizes(levels)}, outs);
    Suspend suspend;
    return apply(op, in, attrs, outs);
  }
  Batch b{op, in, attrs, levels, level_sizes(levels)};
  Tensors args;
  if (op.kind == OpKind::Elementwise) {
    align(b, args);
    apply(op, args, attrs, outs);
  } else if (op.batch && op.kind == OpKind::General) {
    OutSpecs specs;  // the arguments are right for one sample, or this raises
    op.shape(Call{op, in, attrs}, specs);
    op.batch(b, outs);
    for (int i = 0; i < specs.size(); ++i)
      if (outs[i].sizes() != joined(b.lead, specs[i].sizes) || outs[i].dtype() != specs[i].dtype)
        fail_internal(op_name(op), ": its batching rule gave ", outs[i], " for samples of ",
                      specs[i].dtype, specs[i].sizes, " in a batch of ", b.lead);
  } else if (op.batch) {
    op.batch(b, outs);
  } else if (op.kind == OpKind::View) {
    view_by_strides(b, outs);
  } else {
    return for_each_sample(in, levels, outs, [&](std::span<const Tensor> sample, Tensors& o) {
      apply(op, sample, attrs, o);
    });
  }
  for (Tensor& t : outs)
    if (t.defined()) t = make_batched(t, levels);
}

void require_room(const Tensor& self, uint32_t levels, std::string_view name) {
  if (levels & ~levels_of(self))
    fail("vmap: ", name,
         ": inplace arithmetic is not possible because the tensor written to is shared by all "
         "samples, while what is written differs between them; use the out-of-place form, or make "
         "the tensor from a batched one (zeros_like, new_zeros)");
}

void apply_batched_inplace(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  for (const Tensor& t : in) check_alive(t);
  const Tensor& self = in[0];
  uint32_t levels = levels_of(in);
  std::string name = std::string(spoken_name(op)) + "_";
  require_room(self, levels, name);
  if (op.kind == OpKind::Elementwise) {
    for (const Tensor& t : in)
      require(t.ndim() <= self.ndim(), name, ": output with shape ", self.sizes(),
              " doesn't match the broadcast shape; got an operand of ", t);
    Batch b{op, in, attrs, levels, level_sizes(levels)};
    Tensors args;
    align(b, args);
    args[0] = physical(self);
    return apply_inplace(op, args, attrs);
  }
  bool records = modes.grad && any_requires_grad(in);
  Tensors args, outs;
  for (const Tensor& t : in)
    args.push_back(records && t.defined() && t->storage == self->storage ? keep_old(t) : t);
  apply(op, args, attrs, outs);
  require(outs[0].sizes() == self.sizes(), name, ": the result's shape ", outs[0].sizes(),
          " does not match the tensor's ", self.sizes());
  if (!can_cast(outs[0].dtype(), self.dtype()))
    fail(name, ": result type ", outs[0].dtype(), " can't be cast to the desired output type ",
         self.dtype());
  copy_(self, outs[0]);
}

void copy_batched(const Tensor& dst, const Tensor& src) {
  check_alive(dst);
  check_alive(src);
  uint32_t levels = levels_of(dst);
  require_room(dst, levels_of(src), "copy_");
  if (broadcast_shapes(dst.sizes(), src.sizes(), "copy_") != dst.sizes())
    fail("copy_: src must broadcast to the tensor's shape; got ", src, " for ", dst);
  copy_(physical(dst), with_sample_ndim(physical_at(src, levels, false), bits(levels), dst.ndim()));
}

}  // namespace clew

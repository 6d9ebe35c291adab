// apply(): the one path that runs an op: dtype and shape rules, allocation, kernel, recording.
// May include: graph, base/ndview.h.
// Invariant: nothing is written before the shape rule has accepted the arguments.
#include <bit>
#include <vector>

#include "graph/autocast.h"
#include "graph/batch.h"
#include "graph/deferral.h"
#include "graph/elementwise.h"
#include "graph/explain.h"
#include "graph/inplace.h"
#include "graph/node.h"
#include "graph/promotion.h"
#include "graph/trace.h"
#include "graph/warning.h"
#include "graph/watch.h"
#include "tensor/kernel_frame.h"
#include "tensor/layout.h"

namespace clew {

namespace {

// Whether a pass may begin with the call of a kernel, all of whose operands are there. What only
// the end of a pass makes, such as the gradient of a bias, would wait for nothing and meanwhile
// keep its operand's memory.
bool begins_pass(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  if (!modes.deferred || !op.passes) return false;
  const Passes::Over over = op.passes(Call{op, in, attrs}).over;
  return over != Passes::Over::nothing && over != Passes::Over::rows && over != Passes::Over::all;
}

// Whether the call of a kernel waits.
bool general_waits(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                   OutSpecs& specs) {
  if (op.aliases || op.at_once || op.draws || is_random(op)) return false;
  int64_t most = 0;
  for (int k = 0; k < specs.size(); ++k) most = std::max(most, numel_of(specs[k].sizes));
  return waits(in, most, begins_pass(op, in, attrs));
}

// Kernels of their own compute with no dtype that is only stored; most pass such elements on
// unread.
void refuse_stored(const OpDef& op, DType d) {
  if (!is_stored(d) || op.takes_stored || op.aliases) return;
  fail(ErrorKind::NotImplemented, "\"", spoken_name(op), "\" is not implemented for ", d,
       "; convert the input first, e.g. with ", is_complex(d) ? ".to(clew.complex64)" : ".float()");
}
void refuse_stored(const OpDef& op, std::span<const Tensor> in) {
  for (const Tensor& t : in)
    if (t.defined()) refuse_stored(op, t.dtype());
}

// A call whose results' sizes depend on values.
void find(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs) {
  refuse_stored(op, in);
  if (device_of(op, in) == Device::Meta)
    fail(ErrorKind::NotImplemented, spoken_name(op),
         ": the result's size depends on the data, which the meta device lacks");
  settle(in);
  const KernelFrame frame(in, is_worth_holding(in));
  op.find(Call{op, frame.tensors(), attrs}, outs);
  require_kept(frame, op, in);
}

void allocate_and_run(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                      Tensors& outs) {
  if (op.find) return find(op, in, attrs, outs);
  KernelFrame frame(in, is_worth_holding(in));
  OutSpecs specs;
  refuse_stored(op, in);
  op.shape(Call{op, frame.tensors(), attrs}, specs);
  for (int k = 0; k < specs.size(); ++k) refuse_stored(op, specs[k].dtype);
  Device device = device_of(op, in);
  const bool later = modes.deferred && device == Device::CPU && general_waits(op, in, attrs, specs);
  if (!later && device != Device::Meta && !op.aliases) settle(in);  // which may free what it reads
  outs.resize(specs.size());
  for (int k = 0; k < specs.size(); ++k) {
    OutSpec& s = specs[k];
    const NewBytes where = later ? NewBytes::pending(device) : NewBytes(device);
    outs[k] = s.strides ? empty_strided(s.sizes, *s.strides, s.dtype, where)
                        : empty(s.sizes, s.dtype, where);
  }
  if (device == Device::Meta) return;
  if (later)
    return deferral.keep(op, in, attrs, {outs.begin(), static_cast<size_t>(outs.size())},
                         Waits::kernel, DType::Float32);
  if (is_worth_holding(outs)) frame.hold();
  op.cpu(Call{op, frame.tensors(), attrs}, outs);
  require_kept(frame, op, in);
}

// op.quick of a large call.
[[gnu::noinline]] Tensor run_quick_held(const OpDef& op, std::span<const Tensor> in,
                                        const void* attrs) {
  const KernelFrame frame(in, true);
  Tensor out = op.quick(Call{op, frame.tensors(), attrs});
  if (out) require_kept(frame, op, in);
  return out;
}

void make_views(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs) {
  // Its memory is kept from call to call.
  static thread_local std::vector<ViewSpec> kept;
  std::vector<ViewSpec> specs = std::exchange(kept, {});
  specs.clear();
  op.view(Call{op, in, attrs}, specs);
  outs.resize(static_cast<int>(specs.size()));
  const Tensor& x = in[0];
  for (size_t k = 0; k < specs.size(); ++k) {
    const ViewSpec& s = specs[k];
    Tensor& view = outs[static_cast<int>(k)];
    if (k > 0 && s.sizes == specs[k - 1].sizes && s.strides == specs[k - 1].strides)
      view = over_parts(x->storage, outs[static_cast<int>(k) - 1]->shape,
                        x->offset + s.offset * static_cast<int64_t>(itemsize(x.dtype())), x.dtype(),
                        x->flags & kept_flags);
    else
      view = alias(x, s.sizes, s.strides, s.offset);
    view->flags &= static_cast<uint8_t>(~flag_wrapped_number);
    mark_view(view, x, specs.size() > 1);
  }
  kept = std::move(specs);
}

bool records_any(std::span<const Tensor> outs) {
  for (const Tensor& t : outs)
    if (is_inexact(t.dtype())) return true;
  return false;
}

}  // namespace

Tensor keep_old(const Tensor& t) {
  if (is_batched(t)) return make_batched(keep_old(physical(t)), levels_of(t));
  Tensor old = empty_like_inputs(t.sizes(), {&t, 1}, t.dtype(), t.device());
  copy_into(old, t);
  OwnedEdge e = gradient_edge(t);
  if (e.fn) set_grad_fn(old, e.fn.get(), e.nr);
  return old;
}

bool overlaps_itself(const Tensor& t) {
  if (t.numel() < 2) return false;
  for (int i = 0; i < t.ndim(); ++i)
    if (t.size(i) > 1 && t.stride(i) == 0) return true;
  return false;
}
void refuse_self_overlap(const Tensor& t, std::string_view op) {
  if (overlaps_itself(t))
    fail(op,
         ": unsupported operation: more than one element of the written-to tensor refers to a "
         "single memory location. Please clone() the tensor before performing the operation.");
}
void warn_expanded(std::string_view op) {
  warn(concat("Use of ", op,
              " on expanded tensors is deprecated. Please clone() the tensor before performing "
              "this operation. This also applies to advanced indexing e.g. tensor[mask] = scalar"));
}
void check_written(const Tensor& t, const std::string& op, bool records) {
  check_inplace(t, op.c_str(), records);
  refuse_self_overlap(t, op);
}

namespace {

// What decides how a call goes, looked at once.
struct Glance {
  uint8_t flags = 0;
  bool requires_grad = false;
  Cut* cut = nullptr;  // of the first input that has lost its history
  explicit Glance(std::span<const Tensor> in) {
    for (const Tensor& t : in) {
      if (!t.defined()) continue;
      flags |= t->flags;
      if (t->cut && (!cut || cut->kind == CutKind::made)) cut = t->cut;
      requires_grad = requires_grad || t->grad_fn || (t->base && t.requires_grad());
    }
    requires_grad = requires_grad || (flags & flag_requires_grad);
  }
  bool batched(const OpDef& op) const {
    return (flags & flag_batched) || (modes.vmap && is_random(op) && op.kind != OpKind::Composite);
  }
};

// Keeps trace of values that do not require grad although something they came from did.
void mark_unrecorded(const OpDef& op, std::span<const Tensor> in, std::span<Tensor> outs,
                     const Glance& glance) {
  if (modes.running) return;  // gradients are not expected to have a history
  CutKind kind = modes.grad        ? CutKind::dtype
                 : modes.inference ? CutKind::inference
                                   : CutKind::no_grad;
  Cut* here = glance.flags & flag_requires_grad ? note_unrecorded_uses(in, kind, &op) : nullptr;
  for (Tensor& t : outs) {
    if (t->cut || t->grad_fn) continue;
    const Node* from = nullptr;
    for (const Tensor& x : in)
      if (x.defined() && x->grad_fn) from = x->grad_fn;
    if (Cut* known = glance.cut ? glance.cut : from ? nullptr : here) {
      known->incref();
      t->cut = known;
      continue;
    }
    mark_cut(t.get(), kind, &op, from);
  }
}

// What follows when the results are there.
void record_results(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                    std::span<Tensor> outs, const Glance& glance) {
  if (modes.grad && glance.requires_grad && records_any(outs))
    record(op, in, attrs, outs)->note_cut(glance.cut);
  else if (glance.requires_grad || glance.cut)
    mark_unrecorded(op, in, outs, glance);
  if (modes.inference) [[unlikely]]
    for (Tensor& t : outs) {
      // A view of a normal tensor is one, and requires grad if that does.
      if (!t->base || (t->base->flags & flag_inference))
        t->flags |= flag_inference;
      else if (glance.requires_grad && is_inexact(t.dtype()))
        t->flags |= flag_requires_grad;
    }
  look_for_signals();
}

// A composite's results that no operation made: such are marked here, as record_results() does.
[[gnu::cold]] void mark_of_inference(std::span<const Tensor> in, std::span<Tensor> outs) {
  for (Tensor& t : outs) {
    const auto shared = [&](const Tensor& x) { return x.defined() && x->storage == t->storage; };
    if (!t->base && std::ranges::none_of(in, shared)) t->flags |= flag_inference;
  }
}

// op.quick, recorded; undefined where it is another case, with nothing done.
Tensor run_quick_and_record(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                            const Glance& glance) try {
  if (waits(in, 1, begins_pass(op, in, attrs))) return {};
  modes.disposable = nullptr;
  refuse_stored(op, in);
  Tensor out = is_worth_holding(in) ? run_quick_held(op, in, attrs) : op.quick(Call{op, in, attrs});
  if (out) record_results(op, in, attrs, {&out, 1}, glance);
  return out;
} catch (const Error& e) {
  rethrow_with_operands(e, in);
}

void run_and_record(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs,
                    const Glance& glance) try {
  modes.disposable = nullptr;
  switch (op.kind) {
    case OpKind::Elementwise: fail_internal("an elementwise operation went the general way");
    case OpKind::View: make_views(op, in, attrs, outs); break;
    case OpKind::General:
      allocate_and_run(op, in, attrs, outs);
      // The same bytes as another dtype (view_as_real).
      if (outs.size() == 1 && !in.empty() && in[0].defined() &&
          outs[0]->storage == in[0]->storage && !outs[0]->base && !outs[0].is_same(in[0]))
        mark_view(outs[0], in[0], false);
      break;
    case OpKind::Composite:
      op.run(Call{op, in, attrs}, outs);
      if (modes.inference) [[unlikely]]
        mark_of_inference(in, {outs.begin(), outs.end()});
      return;
  }
  record_results(op, in, attrs, {outs.begin(), outs.end()}, glance);
} catch (const Error& e) {
  rethrow_with_operands(e, in);
}

Tensor run_and_record_elementwise(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                                  const Glance& glance) try {
  Tensor out = run_elementwise(op, in, attrs);
  if (modes.grad && glance.requires_grad && is_inexact(out.dtype()))
    record(op, in, attrs, {&out, 1})->note_cut(glance.cut);
  else if (glance.requires_grad || glance.cut)
    mark_unrecorded(op, in, {&out, 1}, glance);
  if (modes.inference) out->flags |= flag_inference;
  return out;
} catch (const Error& e) {
  rethrow_with_operands(e, in);
}

void apply_plain(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs) {
  Glance glance(in);
  if (glance.batched(op)) [[unlikely]] {
    modes.disposable = nullptr;
    return apply_batched(op, in, attrs, outs);
  }
  if (op.kind == OpKind::Elementwise) {
    outs.push_back(run_and_record_elementwise(op, in, attrs, glance));
    return;
  }
  if (op.quick && op.kind != OpKind::Composite) {
    if (Tensor out = run_quick_and_record(op, in, attrs, glance))
      return outs.push_back(std::move(out));
  }
  run_and_record(op, in, attrs, outs, glance);
}

// Somebody wants to see the operation (Modes::intercept).
[[gnu::cold, gnu::noinline]] void apply_intercepted(const OpDef& op, std::span<const Tensor> in,
                                                    const void* attrs, Tensors& outs) {
  if (autocasts()) return apply_autocast(op, in, attrs, outs);  // comes back with autocast off
  if (collects() && op.kind != OpKind::Composite && deferral.collect(op, in, attrs, outs)) return;
  NotedCall noted(op, in, attrs);
  {
    TraceOp trace(op);
    // Of an operation on samples the whole is searched, not its steps as well.
    bool whole = op.kind != OpKind::Composite && levels_of(in);
    InterceptWithout steps(whole ? intercept_watch : uint8_t{0});
    apply_plain(op, in, attrs, outs);
    trace.results(op, in, attrs, outs);
  }
  noted.results({outs.begin(), outs.end()});
  watch_results(op, in, attrs, outs);
}

}  // namespace

void apply(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs) {
  if (sees_calls()) [[unlikely]]
    return apply_intercepted(op, in, attrs, outs);
  apply_plain(op, in, attrs, outs);
}

// run_small_dense() with what modes.disposable says.
static Tensor run_small_disposing(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  TensorObj* disposable = std::exchange(modes.disposable, nullptr);
  Tensor out = run_small_dense(op, in, attrs, disposable);
  if (!out) modes.disposable = disposable;
  return out;
}
[[gnu::noinline]] static Tensor run_small_traced(const OpDef& op, std::span<const Tensor> in,
                                                 const void* attrs) {
  if (!only_traces()) return {};
  TraceOp trace(op);
  Tensor out = run_small_disposing(op, in, attrs);
  if (out)
    trace.results(op, in, attrs, {&out, 1});
  else
    trace.withdraw();
  return out;
}

// The commonest step of gradient rules: run_small_dense() on small dense tensors, not recorded. In
// other cases it does nothing and gives an undefined tensor.
static Tensor run_small_unrecorded(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  if (modes.grad || modes.inference || modes.vmap) return {};
  if (modes.deferred && in[0].numel() >= modes.least_deferred) return {};
  for (const Tensor& t : in)
    if (t->flags & flag_batched) return {};
  if (sees_calls()) [[unlikely]]
    return run_small_traced(op, in, attrs);
  return run_small_disposing(op, in, attrs);
}

// Same, but the second operand is a saved tensor, read in place without making a tensor object.
static Tensor run_with_saved(const OpDef& op, const Saved& s, const Tensor& g,
                             TensorObj* disposable) {
  const Shape* shape = g->shape;
  kernels::Loop loop = (*op.loops)[g.dtype()];
  if (s.kind != Saved::Kind::parts || s.shape != shape || s.dtype != g.dtype() || !loop ||
      s.storage->version != s.version || !s.storage->is_ready() || !g->storage->is_ready() ||
      !shape->contiguous || shape->numel == 0 || shape->numel >= grain_default ||
      op.result != Result::same || is_integral(s.dtype) ||
      ((g->flags | s.flags) & (flag_batched | flag_wrapped_number)))
    return {};
  Tensor out = disposable ? g : empty_dense_like(g, s.dtype);
  if (!s.storage->is_ready()) return {};  // it went to make room
  char* data[3] = {out->address(), g->address(), s.storage->at(s.offset)};
  const auto step = static_cast<int64_t>(itemsize(s.dtype));
  const int64_t inner[3] = {step, step, step};
  loop(data, inner, shape->numel, nullptr);
  return out;
}

[[gnu::noinline]] static Tensor run_with_saved_traced(const OpDef& op, const Saved& s,
                                                      const Tensor& g, TensorObj* disposable) {
  TraceOp trace(op, TraceOp::First());
  Tensor out = run_with_saved(op, s, g, disposable);
  if (!out) trace.withdraw();
  return out;
}

Tensor Vjp::with_saved(const OpDef& op, uint32_t saved, bool last) const {
  const int bit = std::countr_zero(saved);
  const bool seen = sees_calls();
  // What is shown of a call needs both tensors.
  const bool plain = !seen || (only_traces() && !tracer.shapes());
  if (!modes.grad && plain && !modes.inference && !modes.vmap) {
    const auto& node = static_cast<const OpNode&>(node_);
    if (const int slot = node.saved_slot(bit); slot >= 0) {
      const Tensor& g = last ? last_grad() : grad();
      TensorObj* disposable = std::exchange(modes.disposable, nullptr);
      const Saved& other = node.saved(slot);
      if (Tensor out = seen ? run_with_saved_traced(op, other, g, disposable)
                            : run_with_saved(op, other, g, disposable))
        return out;
    }
  }
  const Tensor other = bit < 16 ? in(bit) : out(bit - 16);
  const Tensor operands[2] = {last ? last_grad() : grad(), other};
  return apply_one(op, operands, nullptr);
}

// The same, under the eyes of a profiler or of those who watch results.
[[gnu::noinline]] static Tensor run_seen_elementwise(const OpDef& op, std::span<const Tensor> in,
                                                     const void* attrs, const Glance& glance) {
  Tensor out;
  {
    TraceOp trace(op);
    out = run_and_record_elementwise(op, in, attrs, glance);
    trace.results(op, in, attrs, {&out, 1});
  }
  if (!only_traces()) watch_results(op, in, attrs, {&out, 1});
  return out;
}

Tensor apply_one(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  const bool elementwise = op.kind == OpKind::Elementwise;
  if (elementwise && modes.running)
    if (Tensor out = run_small_unrecorded(op, in, attrs)) return out;
  Glance glance(in);
  const bool whole = !glance.batched(op);
  const bool plain = !sees_calls() && whole;
  if (plain && elementwise) return run_and_record_elementwise(op, in, attrs, glance);
  if (whole && elementwise && !autocasts() && !collects() && !keeps_recipes())
    return run_seen_elementwise(op, in, attrs, glance);
  const bool by_steps = op.kind == OpKind::Composite && modes.grad && glance.requires_grad;
  if (plain && op.quick && !by_steps) {
    if (Tensor out = run_quick_and_record(op, in, attrs, glance)) return out;
  }
  Tensors outs;
  if (plain)
    run_and_record(op, in, attrs, outs, glance);
  else
    apply(op, in, attrs, outs);
  return std::move(outs[0]);
}

// What adding up gradients mostly is: run_small_dense() into its first input.
static bool run_small_over(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  if (modes.vmap || op.result != Result::same) return false;
  if (in[0]->storage->is_looked_after()) return false;
  uint8_t flags = in[0]->flags;
  for (const Tensor& t : in.subspan(1)) {
    if (t->storage == in[0]->storage) return false;
    flags |= t->flags;
  }
  if ((flags & flag_batched) || !run_small_dense(op, in, attrs, in[0].get())) return false;
  bump_version(in[0]);
  return true;
}
[[gnu::noinline]] static bool run_small_over_traced(const OpDef& op, std::span<const Tensor> in,
                                                    const void* attrs, bool inplace) {
  if (!only_traces()) return false;
  TraceOp trace(op, inplace);
  const bool done = run_small_over(op, in, attrs);
  if (done)
    trace.results(op, in, attrs, in.first(1));
  else
    trace.withdraw();
  return done;
}

bool apply_into(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                std::span<const Tensor> outs) {
  if (collects()) [[unlikely]] {
    settle(in);
    for (const Tensor& o : outs) settle_before_write(o);
  }
  bool elementwise = op.kind == OpKind::Elementwise;
  if ((!elementwise && op.kind != OpKind::General) || op.find) return false;
  if (elementwise && outs.size() == 1 && outs[0].is_same(in[0]) &&
      (sees_calls() ? run_small_over_traced(op, in, attrs, false) : run_small_over(op, in, attrs)))
    return true;
  if (levels_of(in) || levels_of(outs) || (modes.vmap && is_random(op))) return false;
  for (const Tensor& o : outs) {
    if (o.is_meta() || overlaps_itself(o)) return false;
    for (const Tensor& t : in)
      if (t.defined() &&
          (t.is_meta() || (elementwise ? hazardous(o, t) : t->storage == o->storage)))
        return false;
    for (const Tensor& other : outs)
      if (!o.is_same(other) && o->storage == other->storage) return false;
  }
  if (elementwise) {
    OutputTypes types = elementwise_types(op, in);
    if (outs.size() != 1 || types.output != outs[0].dtype() ||
        elementwise_shape(op, in) != outs[0].sizes())
      return false;
    TraceOp trace(op);
    run_elementwise_into(op, in, attrs, types.compute, outs[0], types.output);
    trace.results(op, in, attrs, outs);
    bump_version(outs[0]);
    watch_results(op, in, attrs, outs);
    return true;
  }
  settle(in);
  for (const Tensor& o : outs) settle_before_write(o);
  const KernelFrame frame(in, is_worth_holding(in) || is_worth_holding(outs));
  Call call{op, frame.tensors(), attrs};
  OutSpecs specs;
  refuse_stored(op, in);
  op.shape(call, specs);
  if (specs.size() != static_cast<int>(outs.size())) return false;
  for (int k = 0; k < specs.size(); ++k) refuse_stored(op, specs[k].dtype);
  Tensors seen, made;
  for (int k = 0; k < specs.size(); ++k) {
    const OutSpec& s = specs[k];
    const Tensor& o = outs[static_cast<size_t>(k)];
    if (s.dtype != o.dtype() || s.sizes != o.sizes()) return false;
    if (s.strides ? *s.strides != o.strides() : !o.is_contiguous()) return false;
    seen.push_back(alias(o));
    made.push_back(seen[k]);
  }
  TraceOp trace(op);
  // The same bits as without `out`, where the operation has a quick form.
  const bool small = op.quick && outs.size() == 1 && outs[0].numel() < grain_default;
  if (Tensor quick = small ? op.quick(call) : Tensor())
    made[0] = std::move(quick);
  else
    op.cpu(call, made);
  trace.results(op, in, attrs, outs);
  for (int k = 0; k < made.size(); ++k) {
    const Tensor& o = outs[static_cast<size_t>(k)];
    if (!made[k].is_same(seen[k]))
      copy_into(seen[k], made[k]);  // a kernel may put a tensor of its own there
    bump_version(o);
  }
  watch_results(op, in, attrs, outs);
  return true;
}

[[gnu::cold, gnu::noinline]] static void write_expanded(const OpDef& op, std::span<const Tensor> in,
                                                        const void* attrs,
                                                        const std::string& name) {
  if (!op.write_expanded) refuse_self_overlap(in[0], name);
  warn_expanded(name);
  op.write_expanded(Call{op, in, attrs});
}

[[gnu::always_inline]] static inline void write_inplace(const OpDef& op, std::span<const Tensor> in,
                                                        const void* attrs) try {
  AutocastMode off(false);  // what is written keeps its dtype
  if (levels_of(in)) [[unlikely]]
    return apply_batched_inplace(op, in, attrs);
  // The operations of a composite check their own writes.
  if (op.kind == OpKind::Composite && op.write) return op.write(Call{op, in, attrs});
  const Tensor self = in[0];
  std::string name = std::string(spoken_name(op)) + "_";
  const InplaceWrite write(self, name.c_str(), in);
  const bool records = write.records();
  if (overlaps_itself(self)) [[unlikely]]
    return write_expanded(op, in, attrs, name);
  for (size_t i = 1; i < in.size(); ++i)
    if (in[i].defined()) refuse_partial_overlap(self, in[i], name);
  if (op.kind != OpKind::Composite && device_of(op, in) != self.device())
    fail(name,
         ": expected all tensors to be on the same device, but found at least two devices, cpu and "
         "meta");
  Tensors args;
  for (const Tensor& t : in) args.push_back(t);
  bool saves_self = op.kind == OpKind::Composite;
  uint32_t mask = op.saves.always;
  for (size_t i = 0; i < in.size() && i < 6; ++i)
    if (in[i].defined() && in[i].requires_grad()) mask |= op.saves.when[i];
  if (records && (saves_self || (mask & clew::in(0)))) args[0] = keep_old(self);
  // Other arguments that the write changes too are kept as they were: backward wants their old
  // values.
  for (int i = 1; records && i < args.size(); ++i)
    if (args[i].defined() && args[i]->storage == self->storage) args[i] = keep_old(args[i]);
  // Refused before anything is written.
  for (const Tensor& t : args)
    if (records && !modes.inference && t.defined() && (t->flags & flag_inference))
      fail(name,
           ": inference tensors cannot be saved for backward; make a normal tensor of it with "
           "clone() first");
  if (op.kind == OpKind::Composite) {
    Tensors outs;
    op.run(Call{op, args, attrs}, outs);
    require(outs[0].sizes() == self.sizes(), name, ": the result's shape ", outs[0].sizes(),
            " does not match the tensor's ", self.sizes());
    if (!can_cast(outs[0].dtype(), self.dtype()))
      fail(name, ": result type ", outs[0].dtype(), " can't be cast to the desired output type ",
           self.dtype());
    copy_(self, outs[0]);
    return;
  }
  WatchedWrite watched(op, args, attrs);
  if (op.kind == OpKind::Elementwise) {
    OutputTypes types = elementwise_types(op, args);
    if (op.result == Result::real && self.is_complex())
      fail(name, ": in place it is not for complex tensors: the result is real; got ", self);
    if (!can_cast(types.output, self.dtype()))
      fail(name, ": result type ", types.output, " can't be cast to the desired output type ",
           self.dtype());
    Dims sizes = elementwise_shape(op, args);
    require(sizes == self.sizes(), name, ": output with shape ", self.sizes(),
            " doesn't match the broadcast shape ", sizes);
    bool direct = types.output == self.dtype();
    for (const Tensor& t : args) direct = direct && !hazardous(self, t);
    if (direct) {
      run_elementwise_into(op, args, attrs, types.compute, self, types.output);
    } else {
      Tensor temporary = empty(sizes, types.output, self.device());
      run_elementwise_into(op, args, attrs, types.compute, temporary, types.output);
      copy_into(self, temporary);
    }
  } else {
    if (op.kind == OpKind::View) fail_internal(name, " is a view and cannot be applied in place");
    bool direct = op.write && args[0].is_same(self);
    for (int i = 1; i < args.size(); ++i)
      direct = direct && !(args[i].defined() && args[i]->storage == self->storage);
    Tensors outs;
    if (direct) {
      const KernelFrame frame(args, is_worth_holding(args));
      Call call{op, frame.tensors(), attrs};
      OutSpecs specs;
      refuse_stored(op, args);
      op.shape(call, specs);
      direct = specs[0].dtype == self.dtype() && specs[0].sizes == self.sizes();
      if (direct && !self.is_meta()) {
        if (!is_random(op) && waits(args, self.numel(), false, &self)) {
          deferral.keep(op, args, attrs, {}, Waits::write, self.dtype());
        } else {
          settle(args);
          settle_before_write(self);
          op.write(call);
        }
      }
    }
    if (!direct) allocate_and_run(op, args, attrs, outs);
    if (direct) outs.push_back(self);
    require(outs[0].sizes() == self.sizes(), name, ": the result's shape ", outs[0].sizes(),
            " does not match the tensor's ", self.sizes());
    if (!can_cast(outs[0].dtype(), self.dtype()))
      fail(name, ": result type ", outs[0].dtype(), " can't be cast to the desired output type ",
           self.dtype());
    if (!direct) copy_into(self, outs[0]);
  }
  write.written();
  watched.done(self);
  write.record_as(op, args, attrs);
} catch (const Error& e) {
  rethrow_with_operands(e, in);
}

[[gnu::cold]] static void write_inplace_traced(const OpDef& op, std::span<const Tensor> in,
                                               const void* attrs) {
  TraceOp trace(op, true);
  write_inplace(op, in, attrs);
  trace.results(op, in, attrs, in.first(1));
}

// The same of a general op.
static bool write_few(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  const Glance glance(in);
  if ((modes.grad && glance.requires_grad) || (glance.flags & flag_batched) || modes.intercept ||
      !is_freely_written(in[0]))
    return false;
  settle_before_write(in[0]);
  if (!op.write_few(Call{op, in, attrs})) return false;
  bump_version(in[0]);
  return true;
}
// What most writes are: run_small_over() of a tensor that is no view, unrecorded. False where it is
// another case, with nothing done.
static bool write_small(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  if (op.write_few) return write_few(op, in, attrs);
  if (op.kind != OpKind::Elementwise || in[0]->base || (in[0]->flags & flag_conj)) return false;
  const Glance glance(in);
  if ((modes.grad && glance.requires_grad) || (glance.flags & flag_inference)) return false;
  return sees_calls() ? run_small_over_traced(op, in, attrs, true) : run_small_over(op, in, attrs);
}

void apply_inplace(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  if (collects()) [[unlikely]] {
    settle(in);
    settle_before_write(in[0]);
  }
  NotedCall noted(op, in, attrs, true);
  if (!write_small(op, in, attrs)) {
    if (traces()) [[unlikely]]
      write_inplace_traced(op, in, attrs);
    else
      write_inplace(op, in, attrs);
  }
  noted.results(in.first(1));
}

}  // namespace clew

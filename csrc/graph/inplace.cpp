// In-place writes and views: checks, CopySlices, copy_, detach.
// May include: graph.
// Invariant: after a recorded write, the base and every view of it agree on one history.
#include "graph/inplace.h"

#include "graph/batch.h"
#include "graph/deferral.h"
#include "graph/explain.h"
#include "graph/promotion.h"
#include "graph/trace.h"

namespace clew {

namespace {

// Whether a view of one dtype shows what a base of the other holds, as numbers or as their parts.
bool shows(DType view, DType base) {
  return view == base || (is_complex(base) && real_of(base) == view) ||
         (is_complex(view) && real_of(view) == base);
}

// How many elements of dtype `part` lie in one of dtype `whole`.
int64_t parts_in(DType whole, DType part) { return is_complex(whole) && !is_complex(part) ? 2 : 1; }

// An in-place op on a view, as seen by the base: the op's gradient applies to the slice, the rest
// passes through.
struct CopySlices final : Node {
  Dims base_sizes, base_strides, view_sizes, view_strides;
  int64_t view_offset;  // from the base's first element, in elements of the smaller dtype
  DType dtype, view_dtype;
  Device device;
  NodeRef wrapped;

  CopySlices(const Tensor& base, const Tensor& view, NodeRef node)
      : base_sizes(base.sizes()),
        base_strides(base.strides()),
        view_sizes(view.sizes()),
        view_strides(view.strides()),
        view_offset(view.storage_offset() * parts_in(view.dtype(), base.dtype()) -
                    base.storage_offset() * parts_in(base.dtype(), view.dtype())),
        dtype(base.dtype()),
        view_dtype(view.dtype()),
        device(base.device()),
        wrapped(std::move(node)) {
    allocate_edges(wrapped->edge_count);
    add_meta(0, base);
    OwnedEdge to_base = gradient_edge(base);
    edges[0] = {to_base.fn.release(), to_base.nr};
    for (uint32_t i = 1; i < edge_count; ++i) {
      edges[i] = wrapped->edges[i];
      if (edges[i].fn) edges[i].fn->incref();
    }
  }
  // Laid out as the base; with room for all samples when the gradient is batched.
  Tensor fresh_whole(uint32_t levels) const {
    if (!levels) return empty_strided(base_sizes, base_strides, dtype, device);
    Dims sizes = level_sizes(levels);
    Dims strides(sizes.size());
    int64_t step = 1;
    for (int i = 0; i < base_sizes.size(); ++i)
      if (base_sizes[i] > 0) step += (base_sizes[i] - 1) * base_strides[i];
    for (int i = sizes.size() - 1; i >= 0; --i) {
      strides[i] = step;
      step *= std::max<int64_t>(sizes[i], 1);
    }
    for (int i = 0; i < base_sizes.size(); ++i) {
      sizes.push_back(base_sizes[i]);
      strides.push_back(base_strides[i]);
    }
    return make_batched(empty_strided(sizes, strides, dtype, device), levels);
  }
  std::string name() const override { return "CopySlices"; }
  const Node& inner() const override { return *wrapped.get(); }
  std::span<const Saved> saved_tensors() const override { return wrapped->saved_tensors(); }
  void release_saved() override {
    // Backward of a recorded backward also reaches the inner node by itself, later.
    if (wrapped->refs > 1) return;
    wrapped->release_saved();
    consumed = wrapped->consumed;
  }
  void run(std::span<const Tensor> grads, Tensor* out) override {
    Tensor whole = fresh_whole(levels_of(grads[0]));
    copy_(whole, grads[0]);
    Tensor slice = part_of(whole, view_dtype, view_sizes, view_strides,
                           view_offset / parts_in(view_dtype, dtype));
    Tensor slice_grad = builtins.clone(slice);
    std::vector<Tensor> inner_out(edge_count);
    wrapped->run({&slice_grad, 1}, inner_out.data());
    // Where elements share memory, each would count what belongs to all of them.
    for (const Tensor& g : inner_out)
      if (g.defined()) {
        refuse_self_overlap(slice, wrapped->name());
        refuse_self_overlap(whole, wrapped->name());
      }
    for (uint32_t i = 1; i < edge_count; ++i) out[i] = std::move(inner_out[i]);
    if (!edges[0].fn) return;
    if (inner_out[0].defined()) {
      copy_(slice, inner_out[0]);
    } else {
      copy_(slice, scalar_tensor(Scalar(0), view_dtype));
    }
    out[0] = whole;
  }
};

void copy_vjp(Vjp& c) {
  if (c.needs(0)) {
    Tensor zeros = empty(c.sizes(0), c.dtype(0), c.grad().device());
    if (!zeros.is_meta()) fill_(zeros, Scalar(0));
    c.set(0, zeros);
  }
  if (c.needs(1)) c.set(1, c.grad());
}
void copy_shape(const Call&, OutSpecs&) { fail_internal("copy_ runs only in place"); }
void copy_cpu(const Call&, Tensors&) {}
constexpr OpDef copy_op = general({
    .signature = "copy(Tensor input, Tensor src) -> Tensor",
    .doc = "Copies src into input.",
    .shape = copy_shape,
    .cpu = copy_cpu,
    .vjp = copy_vjp,
});

}  // namespace

Tensor part_of(const Tensor& base, DType dtype, const Dims& sizes, const Dims& strides,
               int64_t offset) {
  if (base.dtype() == dtype) return builtins.as_strided(base, sizes, strides, offset);
  if (!shows(dtype, base.dtype()))
    fail(
        "autograd: a view that shows its base as another dtype is used after the base was modified "
        "inplace; make the view again");
  if (base.is_complex())
    return builtins.as_strided(builtins.view_as_real(base), sizes, strides, offset);
  Dims halves = sizes, steps = strides;
  for (int64_t& s : steps) s *= 2;
  halves.push_back(2);
  steps.push_back(1);
  return builtins.view_as_complex(builtins.as_strided(base, halves, steps, 2 * offset));
}

void check_kind_written(const Tensor& t, std::string_view op) {
  if (t->flags & flag_conj)
    fail(op,
         ": the tensor is the result of conj(), mH, H or adjoint(), or a view of it, and cannot be "
         "written to: it is a copy, so that the write would not reach the tensor it was made from. "
         "Write into that one, or into resolve_conj(), a copy of your own");
  if ((t->flags & flag_inference) && !modes.inference)
    fail(op,
         ": inplace update to inference tensor outside InferenceMode is not allowed; clone() it "
         "first");
}

void check_inplace(const Tensor& t, const char* op, bool records) {
  if (t->flags & (flag_inference | flag_conj)) [[unlikely]]
    check_kind_written(t, op);
  if (!modes.grad) return;
  // A view made in inference mode requires grad as its base does, and is no leaf of its own.
  const bool unrecorded = t->base && t->view_kind == ViewKind::no_grad;
  if ((t->flags & flag_requires_grad) && !unrecorded) fail_leaf_write(op, t, false);
  if (!t->base) return;
  Tensor base = Tensor::borrow(t->base);
  if (base->flags & flag_requires_grad) fail_leaf_write(op, base, true);
  if (!(records || t.requires_grad() || base.requires_grad())) return;
  if (!shows(t.dtype(), base.dtype()))
    fail(op,
         ": a view that shows its base as another dtype (view(dtype)) is being modified inplace ",
         "while gradients are recorded; write into a clone() of it");
  switch (t->view_kind) {
    case ViewKind::plain:
      // It comes from a leaf that is itself a view, whose history the base does not know.
      if (t.requires_grad() && !base.requires_grad()) fail_leaf_write(op, base, true);
      return;
    case ViewKind::no_grad: fail_unrecorded_view_write(op, t);
    case ViewKind::multi_output:
      fail(op, ": output ", t->output_nr, " of ",
           t->grad_fn ? t->grad_fn->name() : "a view function",
           " is a view and is being modified inplace. This view is the output of a function that "
           "returns multiple views. "
           "Such functions do not allow the output views to be modified inplace. Use an "
           "out-of-place operation instead");
    case ViewKind::custom_function:
      fail(op,
           ": a view made by a custom Function is being modified inplace while gradients are "
           "recorded; write into a clone() of it");
  }
}

void rebase_history(const Tensor& t, NodeRef node) {
  if (!t->base) {
    set_grad_fn(t, node.get(), 0);
    return;
  }
  Tensor base = Tensor::borrow(t->base);
  NodeRef slices = NodeRef::steal(new CopySlices(base, t, std::move(node)));
  set_grad_fn(base, slices.get(), 0);
  t->view_version =
      t->storage->version - 1;  // its own grad_fn is remade from the base's when asked for
  grad_fn_of(t);
}

// The strides of the dims that have several elements.
static Dims steps_of(const Tensor& t) {
  Dims steps;
  for (int i = 0; i < t.ndim(); ++i)
    if (t.size(i) != 1) steps.push_back(t.stride(i));
  return steps;
}

Overlap overlap(const Tensor& written, const Tensor& read) {
  if (written->storage != read->storage || written.numel() == 0 || read.numel() == 0)
    return Overlap::none;
  if (written.is_same(read)) return Overlap::whole;
  for (const Tensor* t : {&written, &read})
    if (!is_non_overlapping_and_dense(t->sizes(), t->strides())) return Overlap::unknown;
  const auto bytes = [](const Tensor& t) {
    return t.numel() * static_cast<int64_t>(itemsize(t.dtype()));
  };
  const int64_t a = written->offset, b = read->offset;
  const int64_t a_end = a + bytes(written), b_end = b + bytes(read);
  if (a == b && a_end == b_end)
    return steps_of(written) == steps_of(read) ? Overlap::whole : Overlap::partly;
  return a < b_end && b < a_end ? Overlap::partly : Overlap::none;
}

void fail_overlap(std::string_view op) {
  fail(op,
       ": unsupported operation: some elements of the input tensor and the written-to tensor refer "
       "to a single memory location. Please clone() the tensor before performing the operation.");
}

static void copy_unbatched(const Tensor& dst, const Tensor& src) {
  // Gathered results have no memory yet, and it must be known which memory the two share.
  if (collects()) [[unlikely]] {
    const Tensor both[2] = {dst, src};
    settle(both);
    settle_before_write(dst);
  }
  const Tensor in[2] = {dst, src};
  const InplaceWrite write(dst, "copy_", in);
  if (broadcast_shapes(dst.sizes(), src.sizes(), "copy_") != dst.sizes())
    fail("copy_: src must broadcast to the tensor's shape; got ", src, " for ", dst);
  if (src.is_meta() && !dst.is_meta())
    fail(ErrorKind::NotImplemented, "copy_: Cannot copy out of meta tensor; no data!");
  if (dst->storage == src->storage && dst->offset == src->offset &&
      dst.strides() == src.strides() && dst.sizes() == src.sizes() && dst.dtype() == src.dtype()) {
    if (dst.is_same(src)) return;
  } else if (dst->storage == src->storage) {
    refuse_partial_overlap(dst, src, "copy_");
    Tensor temporary = empty(src.sizes(), src.dtype());
    copy_into(temporary, src);
    copy_into(dst, temporary);
  } else {
    copy_into(dst, src);
  }
  write.written();
  // An integer source carries no gradient, but the write still ends the old history.
  write.record_as(copy_op, in, nullptr);
}

[[gnu::cold]] static void copy_traced(const Tensor& dst, const Tensor& src) {
  TraceOp trace(copy_op, true);
  copy_unbatched(dst, src);
  const Tensor in[2] = {dst, src};
  trace.results(copy_op, in, nullptr, {&dst, 1});
}

void copy_(const Tensor& dst, const Tensor& src) {
  if (is_batched(dst) || is_batched(src)) [[unlikely]]
    return copy_batched(dst, src);
  if (traces()) [[unlikely]]
    return copy_traced(dst, src);
  copy_unbatched(dst, src);
}

void mark_view(const Tensor& view, const Tensor& t, bool multi_output) {
  TensorObj* base = t->base ? t->base : t.get();
  Py_INCREF(reinterpret_cast<PyObject*>(base));
  view->base = base;
  view->view_version = t->storage->version;
  view->view_kind = multi_output                                 ? ViewKind::multi_output
                    : !modes.grad                                ? ViewKind::no_grad
                    : t->base && t->view_kind != ViewKind::plain ? t->view_kind
                                                                 : ViewKind::plain;
}

Tensor detach(const Tensor& t) {
  const bool gathered = collects() && (t->flags & flag_gathered);
  return gathered ? deferral.detach(t) : alias(t);
}

void detach_(const Tensor& t) {
  if (is_batched(t)) return detach_(physical(t));
  if (collects()) deferral.run_collected();  // gathered calls go on to its history
  if (t->base) fail("detach_: can't detach views in-place; use detach() instead");
  if (Node* fn = std::exchange(t->grad_fn, nullptr)) {
    if (t->extra && t->extra->retains_grad && fn->extra)
      std::erase_if(fn->extra->retains_grad, [&](auto& entry) { return entry.second == t.get(); });
    fn->decref();
  }
  t->output_nr = 0;
  t->flags &= static_cast<uint8_t>(~flag_requires_grad);
}

}  // namespace clew

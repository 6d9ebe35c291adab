// Gathering gradients: fitting them to their receivers, adding them up, leaves' .grad.
// May include: base, graph.
// Invariant: a tensor that other code may see is not written to.
#include "graph/gather.h"

#include <algorithm>
#include <climits>
#include <optional>
#include <vector>

#include "base/futex.h"
#include "base/long_work.h"
#include "graph/explain.h"
#include "graph/hooks.h"
#include "graph/inplace.h"
#include "tensor/kernel_frame.h"

namespace clew {

PyTypeObject* sparse_type = nullptr;
PyObject* sparse_sum = nullptr;

Tensor add_sparse(const Tensor& before, const Tensor& grad) {
  PyObject* first = before ? reinterpret_cast<PyObject*>(before.get()) : Py_None;
  PyObject* got = PyObject_CallFunctionObjArgs(sparse_sum, first,
                                               reinterpret_cast<PyObject*>(grad.get()), nullptr);
  if (!got) throw PythonError();
  if (!PyObject_TypeCheck(got, tensor_type)) {
    Py_DECREF(got);
    fail_internal("a sum of sparse gradients is no tensor");
  }
  return Tensor::steal(reinterpret_cast<TensorObj*>(got));
}

void check_gradient_device(const Edge& edge, const Tensor& grad, const Node& from, uint32_t index) {
  const Device expected = edge.fn->meta(edge.nr).device;
  if (gradient_device(grad) != expected)
    throw Explained(
        {ErrorKind::Runtime,
         concat("Function ", from.name(), " returned an invalid gradient at index ", index,
                " - expected device ", name(expected), " but got ", name(gradient_device(grad)))},
        describe_gradient(from, index));
}

Tensor fit_gradient(const Edge& edge, Tensor grad, const Node& from, uint32_t index) {
  const OutMeta& meta = edge.fn->meta(edge.nr);
  check_gradient_device(edge, grad, from, index);
  if (grad->shape != meta.shape.get() && grad.sizes() != meta.sizes()) [[unlikely]] {
    const Dims& sizes = meta.sizes();
    bool fits = grad.ndim() >= sizes.size();
    int lead = grad.ndim() - sizes.size();
    for (int i = 0; fits && i < sizes.size(); ++i)
      fits = sizes[i] == grad.size(i + lead) || sizes[i] == 1;
    if (!fits)
      throw Explained(
          {ErrorKind::Runtime,
           concat("Function ", from.name(), " returned an invalid gradient at index ", index,
                  " - got ", grad.sizes(), " but expected shape compatible with ", sizes)},
          describe_gradient(from, index));
    grad = builtins.sum_to(grad, sizes);
  }
  if (grad.dtype() != meta.dtype) [[unlikely]] {
    if (grad.is_complex() && !is_complex(meta.dtype)) grad = builtins.real(grad);
    if (grad.dtype() != meta.dtype) grad = builtins.to_dtype(grad, meta.dtype);
  }
  return grad;
}

// into += g, without a graph.
void accumulate_into(const Tensor& into, const Tensor& g) {
  modes.accumulating = true;
  struct Restore {
    ~Restore() { modes.accumulating = false; }
  } restore;
  builtins.add_over(into, g);
}

// The turns in progress, and which thread has each: few, since only large gradients take one.
struct Turn {
  const TensorObj* of;
  const Modes* thread;
};
static std::vector<Turn> turns;
// Incremented whenever a turn ends; threads that wait for a turn sleep on it.
static std::atomic<uint32_t> turns_ended{0};

GradTurn::GradTurn(const Tensor& of, const Tensor& grad) {
  if (!is_worth_holding(grad)) return;
  for (;;) {
    const uint32_t seen = turns_ended.load();
    const auto at = std::ranges::find(turns, of.get(), &Turn::of);
    if (at == turns.end()) break;
    // A signal handler that runs during this thread's own turn must not wait for the turn to end.
    if (at->thread == &modes) return;
    void* left = interpreter.leave();
    sleep_while(turns_ended, seen, 10'000'000);
    interpreter.enter(left);
  }
  of_ = of;
  turns.push_back({of.get(), &modes});
}

GradTurn::~GradTurn() {
  if (!of_) return;
  std::erase_if(turns, [this](const Turn& t) { return t.of == of_.get(); });
  turns_ended.fetch_add(1);
  wake(turns_ended, INT_MAX);
}

std::vector<Tensor> out_of_reach(std::span<const Tensor> grads) {
  std::vector<Tensor> own;
  for (const Tensor& g : grads) {
    if (!g || (g->flags & flag_batched)) {
      own.push_back(g);
      continue;
    }
    own.push_back(alias(g));
    if (!modes.grad) continue;
    OwnedEdge e = gradient_edge(g);
    if (e.fn) set_grad_fn(own.back(), e.fn.get(), e.nr);
  }
  return own;
}

void add_to_part(Vjp& c, const Tensor& into) {
  auto& node = static_cast<OpNode&>(c.node());
  std::vector<ViewSpec> specs;
  node.op->view(Call{*node.op, {&into, 1}, node.attrs()}, specs);
  for (int k = 0; k < c.outputs(); ++k) {
    if (!c.grad(k).defined()) continue;
    const ViewSpec& s = specs[static_cast<size_t>(k)];
    accumulate_into(alias(into, s.sizes, s.strides, s.offset), c.grad(k));
  }
}

// Whether a gradient has its leaf's layout or, if the leaf has gaps or repeats an element, is
// contiguous.
static bool lies_as(const Tensor& grad, const TensorObj* leaf) {
  const Shape &own = *grad->shape, &wanted = *leaf->shape;
  if (own.contiguous && wanted.contiguous) return true;
  if (!is_non_overlapping_and_dense(wanted.sizes, wanted.strides)) return own.contiguous;
  for (int d = 0; d < own.sizes.size(); ++d)
    if (own.sizes[d] != 1 && own.strides[d] != wanted.strides[d]) return false;
  return true;
}

void AccumulateGrad::run(std::span<const Tensor> grads, Tensor*) {
  if (!variable.requires_grad()) return;  // not any more
  Tensor grad = grads[0];
  TensorObj* leaf = variable.get();
  if (grad->flags & flag_batched)
    fail(
        "vmap: backward() fills .grad of leaves, which all samples share; use func.grad or "
        "autograd.grad inside vmap");
  Tensor replaced;  // outlives the turn: letting go of it may run Python code
  auto give = [&](Tensor g) {
    Cut* c = modes.grad || g->cut || g->grad_fn ? nullptr : cut_of_backward();
    if (c) {
      c->incref();
      g->cut = c;
    }
    replaced = std::move(g);
    std::swap(leaf->grad, *reinterpret_cast<TensorObj**>(&replaced));
  };
  std::optional<GradTurn> turn(std::in_place, variable, grad);
  const Tensor gathered = leaf->grad ? Tensor::borrow(leaf->grad) : Tensor();
  if (is_sparse(grad) || (gathered && is_sparse(gathered))) [[unlikely]] {
    give(add_sparse(gathered, grad));
  } else if (!leaf->grad) {
    // The gradient has no other owners (this function and the engine hold one reference each), so
    // it is taken over.
    bool mine =
        Py_REFCNT(reinterpret_cast<PyObject*>(grad.get())) <= 2 && grad->storage->seen_refs() == 1;
    if (mine) grad->flags &= static_cast<uint8_t>(~flag_conj);
    if (modes.grad) {
      give(mine ? std::move(grad) : builtins.clone(grad));
    } else if (mine && lies_as(grad, leaf) && !grad->base && !grad.is_wrapped_number()) {
      if (grad->grad_fn || (grad->flags & flag_requires_grad)) grad = detach(grad);
      give(std::move(grad));
    } else {
      Tensor fresh =
          leaf->shape->contiguous ? empty(grad.sizes(), grad.dtype(), grad.device())
          : is_non_overlapping_and_dense(leaf->shape->sizes, leaf->shape->strides)
              ? empty_strided(grad.sizes(), leaf->shape->strides, grad.dtype(), grad.device())
              : empty(grad.sizes(), grad.dtype(), grad.device());
      copy_into(fresh, grad);
      give(std::move(fresh));
    }
  } else {
    Tensor before = Tensor::borrow(leaf->grad);
    if (!modes.grad && !(before->flags & flag_requires_grad) && !before->grad_fn &&
        before.sizes() == grad.sizes() && before.dtype() == grad.dtype()) {
      accumulate_into(before, grad);
      note_write(before->storage);
    } else {
      give(builtins.add(before, grad));
    }
  }
  turn.reset();
  if (leaf->extra && leaf->extra->post_accumulate_hooks) run_post_accumulate_hooks(leaf);
}

}  // namespace clew

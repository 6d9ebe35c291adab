// Delivers gathered calls' results to the tensors that are still held.
// May include: program, graph, tensor.
// Invariant: as batch_run.h; a view shares memory with the tensor that the others see it is a view
// of.
#include <algorithm>

#include "program/batch_run.h"

namespace clew::program {

namespace {

// Keeps an error for results that cannot be computed.
class Failed final : public Waiting {
  std::exception_ptr error_;

 public:
  explicit Failed(std::exception_ptr e) : error_(std::move(e)) {}
  void run(Ending) override { std::rethrow_exception(error_); }
  size_t waiting() const override { return 0; }
  void keep(Storage* s) {
    leave(s);
    await(s);
  }
};

}  // namespace

// Reading the result raises the error.
static void keep_failed(Value& v, Failed& keeper) {
  if (v.tensor) v.tensor->flags &= static_cast<uint8_t>(~flag_gathered);
  Storage* s = v.tensor ? std::exchange(v.tensor, nullptr)->storage : v.storage;
  if (s && s->is_pending()) keeper.keep(s);
}

void BatchRun::deliver() {
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    const Gathered& c = calls_[i];
    bool needed = false;
    for (uint32_t k = 0; k < c.values; ++k) needed = needed || uses_[c.first_value + k] >= shown;
    if (!needed) continue;
    if (failed_[i] >= 0) {
      auto* keeper = new Failed(failures_[static_cast<size_t>(failed_[i])]);
      for (uint32_t k = 0; k < c.values; ++k) keep_failed(values_[c.first_value + k], *keeper);
      keeper->decref();
      continue;
    }
    const ModesOf as_gathered(c);
    if (c.op->kind == OpKind::View) {
      deliver_views(i);
      continue;
    }
    for (uint32_t k = 0; k < c.values; ++k)
      if (uses_[c.first_value + k] >= shown) deliver_value(i, c.first_value + k);
  }
  for (Value& v : values_) v.tensor = nullptr;
}

void BatchRun::abandon(std::exception_ptr why) {
  std::exception_ptr error = why;
  try {
    std::rethrow_exception(why);
  } catch (const Error&) {  // it says what the reader needs
  } catch (...) {
    try {
      fail("the computation of this tensor, with others that waited, was interrupted");
    } catch (...) {
      error = std::current_exception();
    }
  }
  auto* keeper = new Failed(error);
  for (Value& v : values_) keep_failed(v, *keeper);
  keeper->decref();
}

// Takes the place of the promise.
static void take_history(const Tensor& t, const Tensor& source, Origin* origin) {
  t->flags &= static_cast<uint8_t>(~flag_gathered);
  if (Node* promise = std::exchange(t->grad_fn, nullptr)) promise->decref();
  t->output_nr = 0;
  if (source->grad_fn) set_grad_fn(t, source->grad_fn, source->output_nr);
  set_origin(t, origin);
}

void BatchRun::deliver_value(uint32_t call, uint32_t value) {
  Value& v = values_[value];
  const Place place = places_[value];
  Tensor source = as_promised(row(place), static_cast<int32_t>(value), false);
  if (place.row < 0) {
    const auto whole = static_cast<size_t>(place.whole);
    if (--whole_uses_[whole] == 0) wholes_[whole] = Tensor();
    // Each has a history of its own: hooks of one do not see the others' gradients.
    if (whole_shared_[whole]) source = builtins.clone(source);
  }
  if (!v.tensor) {
    Tensor own = builtins.clone(source);
    if (v.storage) {
      give_bytes(v.storage);  // before it stops waiting: there may be no room
      leave(v.storage);
      copy_into(over_parts(v.storage, v.shape, 0, v.dtype, 0), own);
    }
    v.tensor = own.get();
    revived_.push_back(std::move(own));
    return;
  }
  const Tensor t = Tensor::borrow(v.tensor);
  Storage* s = t->storage;
  Storage* own = source->storage;
  // A node may have saved the bytes, or the tensor object.
  const bool unshared = own->refs == 1 && Py_REFCNT(reinterpret_cast<PyObject*>(source.get())) == 1;
  if (unshared && own->resizable && own->nbytes == s->nbytes && source->offset == t->offset &&
      source.strides() == t.strides()) {
    leave(s);
    s->take_bytes_of(own);
  } else {
    give_bytes(s);
    leave(s);
    copy_into(t, source);
  }
  take_history(t, source, calls_[call].origin);
}

// Views of the tensor that the others see: a write through one of them reaches it.
void BatchRun::deliver_views(uint32_t call) {
  const Gathered& c = calls_[call];
  const Given& g = givens_[c.first_given];
  const Tensor base =
      g.value < 0 ? g.outer : Tensor::borrow(values_[static_cast<size_t>(g.value)].tensor);
  Tensors views;
  if (c.op == &detach_op)
    views.push_back(alias(base));
  else
    apply(*c.op, {&base, 1}, c.attrs, views);
  for (uint32_t k = 0; k < c.values; ++k) {
    Value& v = values_[c.first_value + k];
    Tensor& view = views[static_cast<int>(k)];
    if (uses_[c.first_value + k] < shown) continue;
    if (!v.tensor) {
      if (v.storage) {
        give_bytes(v.storage);
        leave(v.storage);
        copy_into(over_parts(v.storage, v.shape, 0, v.dtype, 0), view);
      }
      v.tensor = view.get();
      revived_.push_back(view);
      continue;
    }
    const Tensor t = Tensor::borrow(v.tensor);
    Storage* s = t->storage;
    const bool shared = s->refs > 1;  // another tensor object lies over it
    if (shared) give_bytes(s);
    leave(s);
    if (shared) copy_into(t, view);
    take_history(t, view, c.origin);
    std::swap(t->storage, view->storage);
    std::swap(t->offset, view->offset);
    std::swap(t->shape, view->shape);
    std::swap(t->base, view->base);
    t->view_version = view->view_version;
    t->view_kind = view->view_kind;
  }
}

}  // namespace clew::program

// Hooks of tensors, nodes and leaves, and what they may give back.
// May include: base, graph.
// Invariant: what a hook puts in a gradient's place has its shape and dtype.
#include "graph/hooks.h"

#include "graph/gather.h"

namespace clew {

namespace {

void call_hooks_on(PyObject* dict, Tensor& grad, const char* what) {
  PyObject* values = PyMapping_Values(dict);
  if (!values) throw PythonError();
  const ShapeRef shape = ShapeRef::borrow(grad->shape);
  const DType dtype = grad.dtype();
  const Device device = gradient_device(grad);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); ++i) {
    PyObject* got =
        PyObject_CallOneArg(PyList_GET_ITEM(values, i), reinterpret_cast<PyObject*>(grad.get()));
    if (!got) {
      Py_DECREF(values);
      throw PythonError();
    }
    if (got == Py_None) {
      Py_DECREF(got);
    } else if (PyObject_TypeCheck(got, tensor_type)) {
      grad = Tensor::steal(reinterpret_cast<TensorObj*>(got));
    } else {
      std::string type = Py_TYPE(got)->tp_name;
      Py_DECREF(got);
      Py_DECREF(values);
      fail_type(what, ": a hook must return None or a Tensor; got ", type);
    }
    // Also of a gradient that was changed in place.
    const bool fits =
        grad.sizes() == shape->sizes && grad.dtype() == dtype && gradient_device(grad) == device;
    if (!fits) {
      Py_DECREF(values);
      if (grad.sizes() != shape->sizes)
        fail(what, ": a hook changed the gradient's shape from ", shape->sizes, " to ",
             grad.sizes());
      if (grad.dtype() != dtype)
        fail(what, ": a hook changed the gradient's dtype from ", dtype, " to ", grad.dtype());
      fail(what, ": a hook moved the gradient from ", name(device), " to ", name(grad.device()));
    }
  }
  Py_DECREF(values);
}

PyObject* tuple_of(std::span<const Tensor> ts) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(ts.size()));
  if (!tuple) throw PythonError();
  for (size_t i = 0; i < ts.size(); ++i) {
    PyObject* o = ts[i].defined() ? reinterpret_cast<PyObject*>(ts[i].get()) : Py_None;
    Py_INCREF(o);
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), o);
  }
  return tuple;
}

// Takes over what a node hook returned: None leaves the gradients, a tuple (or one tensor) replaces
// them.
void take_hook_result(PyObject* got, std::span<Tensor> into, const char* what) {
  if (!got) throw PythonError();
  struct Drop {
    PyObject* o;
    ~Drop() { Py_DECREF(o); }
  } drop{got};
  if (got == Py_None) return;
  auto take = [&](size_t i, PyObject* o) {
    if (o == Py_None)
      into[i] = Tensor();
    else if (PyObject_TypeCheck(o, tensor_type))
      into[i] = Tensor::borrow(reinterpret_cast<TensorObj*>(o));
    else
      fail_type(what, ": a hook must return tensors or None; got ", Py_TYPE(o)->tp_name);
  };
  if (PyTuple_Check(got)) {
    if (static_cast<size_t>(PyTuple_GET_SIZE(got)) != into.size())
      fail(what, ": a hook returned ", PyTuple_GET_SIZE(got), " gradients; expected ", into.size());
    for (size_t i = 0; i < into.size(); ++i)
      take(i, PyTuple_GET_ITEM(got, static_cast<Py_ssize_t>(i)));
  } else if (into.size() == 1) {
    take(0, got);
  } else {
    fail_type(what, ": a hook must return None or a tuple of ", into.size(), " gradients; got ",
              Py_TYPE(got)->tp_name);
  }
}

// Rules rely on the shapes of the forward pass.
void check_replaced(const Node& n, std::span<const DType> before, std::span<const Tensor> after) {
  for (uint32_t k = 0; k < after.size(); ++k) {
    const Tensor& g = after[k];
    if (!g) continue;
    const OutMeta& meta = n.meta(k);
    if (g.sizes() != meta.sizes() || g.dtype() != before[k] || gradient_device(g) != meta.device)
      fail("register_prehook: a hook changed the gradient from ", before[k], meta.sizes(), " on ",
           name(meta.device), " to ", g, " on ", name(g.device()));
  }
}

}  // namespace

void run_tensor_hooks(Node& n, std::span<Tensor> grads) {
  // By index: a hook may add hooks to the same node.
  for (size_t i = 0; i < n.extra->tensor_hooks.size(); ++i) {
    auto [nr, dict] = n.extra->tensor_hooks[i];
    if (nr >= grads.size() || !grads[nr].defined()) continue;
    Py_INCREF(dict);
    try {
      call_hooks_on(dict, grads[nr], "register_hook");
    } catch (...) {
      Py_DECREF(dict);
      throw;
    }
    Py_DECREF(dict);
  }
  if (n.extra->retains_grad.empty()) return;
  // Releasing earlier gradients may run code that changes the list, so it is copied. Tensors that
  // are being destroyed are still in the list and are skipped.
  std::vector<std::pair<uint32_t, Tensor>> alive;
  for (const auto& [nr, t] : n.extra->retains_grad)
    if (nr < grads.size() && grads[nr].defined() && Py_REFCNT(reinterpret_cast<PyObject*>(t)) > 0)
      alive.emplace_back(nr, Tensor::borrow(t));
  for (const auto& [nr, t] : alive) {
    Tensor replaced;  // outlives the turn: letting go of it may run Python code
    const GradTurn turn(t, grads[nr]);
    const Tensor before = t->grad ? Tensor::borrow(t->grad) : Tensor();
    const bool sparse = is_sparse(grads[nr]) || (before && is_sparse(before));
    Tensor kept = sparse   ? add_sparse(before, grads[nr])
                  : before ? builtins.add(before, grads[nr])
                           : grads[nr];
    std::swap(t->grad, *reinterpret_cast<TensorObj**>(&kept));
    replaced = std::move(kept);
  }
}

// Runs hooks on the gradients that the node is about to receive. Neither .grad nor captured
// gradients include what these hooks return.
void run_pre_hooks(Node& n, std::span<Tensor> grads) {
  std::vector<DType> before;
  for (uint32_t k = 0; k < grads.size(); ++k)
    before.push_back(grads[k] ? grads[k].dtype() : n.meta(k).dtype);
  PyObject* values = PyMapping_Values(n.extra->pre_hooks);
  if (!values) throw PythonError();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); ++i) {
    PyObject* arg = tuple_of(grads);
    PyObject* got = PyObject_CallOneArg(PyList_GET_ITEM(values, i), arg);
    Py_DECREF(arg);
    try {
      take_hook_result(got, grads, "register_prehook");
    } catch (...) {
      Py_DECREF(values);
      throw;
    }
  }
  Py_DECREF(values);
  check_replaced(n, before, grads);
}

void run_post_hooks(Node& n, std::span<Tensor> outs, std::span<const Tensor> grads) {
  PyObject* values = PyMapping_Values(n.extra->post_hooks);
  if (!values) throw PythonError();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); ++i) {
    PyObject* a = tuple_of(outs);
    PyObject* b = tuple_of(grads);
    PyObject* got = PyObject_CallFunctionObjArgs(PyList_GET_ITEM(values, i), a, b, nullptr);
    Py_DECREF(a);
    Py_DECREF(b);
    try {
      if (n.is_accumulator) {
        if (!got) throw PythonError();
        Py_DECREF(got);
      } else {
        take_hook_result(got, outs, "register_hook");
      }
    } catch (...) {
      Py_DECREF(values);
      throw;
    }
  }
  Py_DECREF(values);
}

void run_leaf_hooks(const Tensor& leaf, Tensor& grad) {
  const Tensor keep = leaf;
  PyObject* dict = leaf->extra->hooks;
  Py_INCREF(dict);
  try {
    call_hooks_on(dict, grad, "register_hook");
  } catch (...) {
    Py_DECREF(dict);
    throw;
  }
  Py_DECREF(dict);
}

void run_post_accumulate_hooks(TensorObj* leaf) {
  PyObject* values = PyMapping_Values(leaf->extra->post_accumulate_hooks);
  if (!values) throw PythonError();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); ++i) {
    PyObject* got =
        PyObject_CallOneArg(PyList_GET_ITEM(values, i), reinterpret_cast<PyObject*>(leaf));
    if (!got) {
      Py_DECREF(values);
      throw PythonError();
    }
    const bool none = got == Py_None;
    Py_DECREF(got);
    if (!none) {
      Py_DECREF(values);
      fail(
          "backward: hooks of register_post_accumulate_grad_hook must return None, as they are "
          "called when the gradient has been gathered; write to .grad in them");
    }
  }
  Py_DECREF(values);
}

}  // namespace clew

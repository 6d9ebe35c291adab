// Methods of Tensor about its history: detach, hooks of gradients, backward.
// May include: everything below python/.
// Invariant: what is asked of leaves raises for other tensors, and the other way round.
#include "graph/batch.h"
#include "graph/watch.h"
#include "python/autograd.h"
#include "python/overrides.h"
#include "python/tensor_methods.h"

namespace clew::python {

namespace {

PyObject* method_detach(PyObject* o, PyObject*) {
  return guarded([&] {
    if (overriding && Py_TYPE(o) != tensor_type)  // Tensor.detach(x)
      if (PyObject* result = overridden_method("detach", &o, 1)) return result;
    Tensor t = borrow(o), out = detach(t);
    carry_cut(out.get(), t.get(), CutKind::detach);
    return wrap(std::move(out));
  });
}
PyObject* method_detach_(PyObject* o, PyObject*) {
  return guarded([&] {
    detach_(borrow(o));
    Py_INCREF(o);
    return o;
  });
}
PyObject* method_retain_grad(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    Tensor t = borrow(o);
    if (is_batched(t))
      fail(
          "vmap: retain_grad() inside vmap is not supported; return what is wanted from the "
          "function that is vmapped, or use func.grad");
    if (!t.requires_grad())
      fail("retain_grad: can't retain_grad on a Tensor that has requires_grad=False");
    Node* fn = grad_fn_of(t);
    AutogradExtra& e = extra_of(t);
    if (fn && !e.retains_grad) {
      e.retains_grad = true;
      fn->extras().retains_grad.push_back({t->output_nr, t.get()});
    }
    Py_RETURN_NONE;
  });
}
// The dict of gradient hooks, made when first asked for: of the leaf, or of the node that made the
// tensor.
PyObject* method_hooks_dict(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    Tensor t = physical(borrow(o));
    if (!t.requires_grad())
      fail("register_hook: cannot register a hook on a tensor that doesn't require gradient");
    track(obj(o));
    track(t.get());
    PyObject* dict = nullptr;
    if (Node* fn = grad_fn_of(t)) {
      for (auto& h : fn->extras().tensor_hooks)
        if (h.nr == t->output_nr) dict = h.dict;
      if (!dict) {
        dict = checked(PyODict_New());
        fn->extras().tensor_hooks.push_back({t->output_nr, dict});
      }
    } else {
      AutogradExtra& e = extra_of(t);
      if (!e.hooks) e.hooks = checked(PyODict_New());
      dict = e.hooks;
    }
    Py_INCREF(dict);
    return dict;
  });
}
PyObject* method_post_accumulate_dict(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    Tensor t = borrow(o);
    if (is_batched(t))
      fail("vmap: register_post_accumulate_grad_hook: leaves inside vmap gather no gradient");
    if (!t.requires_grad())
      fail("register_post_accumulate_grad_hook: the tensor must require gradient");
    if (grad_fn_of(t))
      fail("register_post_accumulate_grad_hook: hooks can only be registered on leaf tensors");
    AutogradExtra& e = extra_of(t);
    if (!e.post_accumulate_hooks) e.post_accumulate_hooks = checked(PyODict_New());
    track(obj(o));
    Py_INCREF(e.post_accumulate_hooks);
    return e.post_accumulate_hooks;
  });
}

// The gradient that t.backward(...) starts with, in the commonest calls: none given for one
// element, or a tensor like t. Undefined in others.
Tensor plain_seed(const Tensor& t, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  if (!t.requires_grad() || !t.is_floating() || (t->flags & flag_batched)) return {};
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  if (nargs + named == 0 && t.numel() == 1) {
    Tensor one = empty(t.sizes(), t.dtype(), t.device());
    fill_(one, Scalar(1.0));
    return one;
  }
  if (nargs + named != 1 || !is_tensor(args[0])) return {};
  if (named && !is_named(PyTuple_GET_ITEM(names, 0), "gradient")) return {};
  Tensor g = borrow(args[0]);
  const bool like = g.has_sizes_of(t) && g.dtype() == t.dtype() && g.device() == t.device() &&
                    !(g->flags & flag_batched) && !modes.vmap;
  return like ? g : Tensor();
}

PyObject* method_backward(PyObject* o, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Tensor t = borrow(o);
    if (Tensor seed = plain_seed(t, args, nargs, names)) {
      BackwardArgs b;
      b.roots.push_back(gradient_edge(t));
      b.grads.push_back(std::move(seed));
      observe_backward("backward", {&t, 1});
      run_backward(b);
      Py_RETURN_NONE;
    }
    static PyObject* general = nullptr;
    if (!general) {
      Ref module(checked(PyImport_ImportModule("clew.autograd")));
      general = checked(PyObject_GetAttrString(module.get(), "_tensor_backward"));
    }
    std::vector<PyObject*> all{o};
    all.insert(all.end(), args, args + nargs + (names ? PyTuple_GET_SIZE(names) : 0));
    return PyObject_Vectorcall(general, all.data(), static_cast<size_t>(nargs + 1), names);
  });
}

}  // namespace

PyMethodDef history_methods[] = {
    {"detach", method_detach, METH_NOARGS,
     "detach($self)\n--\n\n"
     R"(The same elements without history.

>>> x = clew.ones(2, requires_grad=True)
>>> x.detach().requires_grad
False
)"},
    {"detach_", method_detach_, METH_NOARGS,
     "detach_($self)\n--\n\n"
     R"(Cuts the tensor off its history, in place.

>>> x = clew.ones(2, requires_grad=True) * 2
>>> x.detach_().requires_grad
False
)"},
    {"retain_grad", method_retain_grad, METH_NOARGS,
     "retain_grad($self)\n--\n\n"
     R"(Makes backward keep the gradient of this non-leaf.

>>> x = clew.ones(2, requires_grad=True)
>>> y = x * 2
>>> y.retain_grad()
>>> y.sum().backward()
>>> y.grad
tensor([1., 1.])
)"},
    {"_hooks_dict", method_hooks_dict, METH_NOARGS,
     "_hooks_dict($self)\n--\n\n"
     "The gradient hooks, in the order in which they run."},
    {"_post_accumulate_dict", method_post_accumulate_dict, METH_NOARGS,
     "_post_accumulate_dict($self)\n--\n\n"
     "The hooks that run when .grad has been added to."},
    {"backward", keyworded(method_backward), METH_FASTCALL | METH_KEYWORDS,
     "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     R"(Adds d(this)/d(leaf) to .grad of every leaf that the tensor was made from.

Args:
    gradient: the gradient of the tensor itself; 1 where the tensor has one element.
    retain_graph: keep what the operations saved, for another backward; create_graph when None.
    create_graph: record the gradients' own operations, for derivatives of higher order.
    inputs: add to these leaves alone.
Returns:
    None.

>>> x = clew.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
)"},
    {}};

}  // namespace clew::python

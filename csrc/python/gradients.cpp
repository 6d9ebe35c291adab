// Norms, clipping and unscaling of all gradients of a model, each in one parallel pass.
// May include: everything below python/.
// Invariant: a call does all of its gradients or none of them.
#include <cmath>
#include <unordered_set>
#include <vector>

#include "graph/inplace.h"
#include "ops/calls/lists.h"
#include "python/bridge.h"

namespace clew::python {

namespace {

// The tensors of a list, if all are dense and none needs an operation's care: its dtype, graph or
// history. They are held: other threads may release them while the loops run.
class Gradients {
  std::vector<Tensor> tensors_;

 public:
  // False when one of them does.
  bool gather(PyObject* list, bool written) {
    std::unordered_set<const void*> shared;
    Py_ssize_t count = PyList_GET_SIZE(list);
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* o = PyList_GET_ITEM(list, i);
      if (!is_tensor(o)) return false;
      Tensor t = borrow(o);
      if (!is_floating(t.dtype()) || t.is_meta() || (t->flags & flag_batched)) return false;
      if (!t.is_contiguous() && !is_non_overlapping_and_dense(t.sizes(), t.strides())) return false;
      if (written) {
        if (t->flags & flag_conj) return false;
        if (t->grad_fn || t.requires_grad() || t->base) return false;
        if ((t->flags & flag_inference) && !modes.inference) return false;
        // Another tensor, or the same one again, in the same memory: one after the other. One
        // that its parameter, the list and `t` hold is here once.
        bool again = t->storage->refs > 1 || Py_REFCNT(o) > 3;
        if (again && !shared.insert(t->storage).second) return false;
        settle_before_write(t);
      }
      tensors_.push_back(std::move(t));
    }
    return true;
  }
  std::span<const Tensor> all() const { return tensors_; }
  void written() const {
    for (const Tensor& t : tensors_) bump_version(t);
  }
};

// The gradients that the parameters have; an iterable of them, or one tensor.
PyObject* gradients_of(PyObject*, PyObject* parameters) {
  return guarded([&]() -> PyObject* {
    Ref list(checked(PyList_New(0)));
    auto take = [&](PyObject* p) {
      if (!is_tensor(p)) fail_type("expected Tensors; got ", Py_TYPE(p)->tp_name);
      auto* grad = reinterpret_cast<PyObject*>(reinterpret_cast<TensorObj*>(p)->grad);
      if (grad && PyList_Append(list.get(), grad) < 0) throw PythonError();
    };
    if (is_tensor(parameters)) {
      take(parameters);
      return list.release();
    }
    Ref items(checked(PySequence_Fast(parameters, "expected Tensors or an iterable of Tensors")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      take(PySequence_Fast_GET_ITEM(items.get(), i));
    return list.release();
  });
}

// (list, order): the norm of all as one vector, as a float; None when they or the order need an
// operation.
PyObject* norm(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* list;
    double order;
    if (!PyArg_ParseTuple(args, "O!d:_norm_of_gradients", &PyList_Type, &list, &order))
      return nullptr;
    Gradients grads;
    if ((order != 1 && order != 2 && order != HUGE_VAL) || !grads.gather(list, false))
      Py_RETURN_NONE;
    return PyFloat_FromDouble(norm_of_all(grads.all(), order));
  });
}

// (list, number): whether it was done.
PyObject* change(PyObject* args, const char* format, void (*f)(std::span<const Tensor>, double)) {
  return guarded([&]() -> PyObject* {
    PyObject* list;
    double number;
    if (!PyArg_ParseTuple(args, format, &PyList_Type, &list, &number)) return nullptr;
    Gradients grads;
    if (!grads.gather(list, true)) Py_RETURN_FALSE;
    f(grads.all(), number);
    grads.written();
    Py_RETURN_TRUE;
  });
}
PyObject* scale(PyObject*, PyObject* args) {
  return change(args, "O!d:_scale_gradients", scale_all);
}
PyObject* clamp(PyObject*, PyObject* args) {
  return change(args, "O!d:_clamp_gradients", clamp_all);
}

// (list, factor): whether all were finite before they were multiplied by it; None when they need
// operations.
PyObject* unscale(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* list;
    double factor;
    if (!PyArg_ParseTuple(args, "O!d:_unscale_gradients", &PyList_Type, &list, &factor))
      return nullptr;
    Gradients grads;
    if (!grads.gather(list, true)) Py_RETURN_NONE;
    const bool finite = unscale_all(grads.all(), factor);
    grads.written();
    return PyBool_FromLong(finite);
  });
}

PyMethodDef gradients_functions[] = {{"_gradients_of", gradients_of, METH_O, nullptr},
                                     {"_norm_of_gradients", norm, METH_VARARGS, nullptr},
                                     {"_scale_gradients", scale, METH_VARARGS, nullptr},
                                     {"_clamp_gradients", clamp, METH_VARARGS, nullptr},
                                     {"_unscale_gradients", unscale, METH_VARARGS, nullptr},
                                     {}};

}  // namespace

void add_gradients(PyObject* module) {
  if (PyModule_AddFunctions(module, gradients_functions) < 0) throw PythonError();
}

}  // namespace clew::python

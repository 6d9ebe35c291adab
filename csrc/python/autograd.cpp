// Autograd's functions for Python: modes, backward, saved-tensor hooks.
// May include: everything below python/.
// Invariant: what a call switches on is switched off by the object that it gives back.
#include "python/autograd.h"

#include "python/custom_function.h"
#include "python/node_object.h"

#include <algorithm>
#include <unordered_map>

#include "python/provenance.h"

#include "graph/deferral.h"
#include "graph/explain.h"
#include "graph/gather.h"
#include "graph/inplace.h"
#include "graph/promotion.h"
#include "graph/watch.h"

namespace clew::python {

namespace {

// _run_backward(tensors, grads, keep_graph, create_graph, inputs or None) -> gradients of inputs,
// or None
PyObject* module_run_backward(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensors, *grads, *inputs;
    int keep, create;
    if (!PyArg_ParseTuple(args, "OOppO", &tensors, &grads, &keep, &create, &inputs)) return nullptr;
    BackwardArgs b;
    b.keep_graph = keep;
    b.create_graph = create;
    std::vector<Tensor> roots = tensors_from(tensors, "tensors", false);
    std::vector<Tensor> seeds = tensors_from(grads, "grad_tensors", false);
    if (roots.size() != seeds.size())
      fail("backward: got ", roots.size(), " tensors and ", seeds.size(), " gradients");
    for (size_t i = 0; i < roots.size(); ++i) {
      OwnedEdge e = gradient_edge(roots[i]);
      if (!e.fn)
        fail("backward: element ", i,
             " of tensors does not require grad and does not have a grad_fn; it is ", roots[i],
             why_no_grad(roots[i]));
      if (seeds[i].sizes() != roots[i].sizes())
        fail("backward: Mismatch in shape: grad_output[", i, "] has a shape of ", seeds[i].sizes(),
             " and output[", i, "] has a shape of ", roots[i].sizes());
      if (seeds[i].device() != roots[i].device())
        fail("backward: grad_output[", i, "] is on ", name(seeds[i].device()), " and output[", i,
             "] on ", name(roots[i].device()), "; both must be on one device");
      if (is_complex(seeds[i].dtype()) != is_complex(roots[i].dtype()))
        fail("backward: for complex tensors, both grad_output and output must be complex; got ",
             seeds[i], " and ", roots[i]);
      b.grads.push_back(seeds[i].dtype() == roots[i].dtype()
                            ? seeds[i]
                            : builtins.to_dtype(seeds[i], roots[i].dtype()));
      b.roots.push_back(std::move(e));
    }
    observe_backward(inputs != Py_None ? "grad"
                     : create          ? "recorded"
                     : keep            ? "retaining"
                                       : "backward",
                     roots);
    if (inputs == Py_None) {
      run_backward(b);
      Py_RETURN_NONE;
    }
    std::vector<Tensor> wanted = tensors_from(inputs, "inputs", false);
    for (Tensor& t : wanted) b.captures.push_back(gradient_edge(t));
    for (size_t i = 0; i < wanted.size(); ++i)
      if (!b.captures[i].fn)
        fail("grad: one of the differentiated Tensors does not require grad; input ", i, " is ",
             wanted[i], why_no_grad(wanted[i]));
    std::vector<Tensor> got = run_backward(b);
    Ref tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(got.size()))));
    for (size_t i = 0; i < got.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       got[i].defined() ? wrap(got[i]) : Py_NewRef(Py_None));
    return tuple.release();
  });
}

PyObject* push_saved_hooks(PyObject*, PyObject* pair) {
  if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
    PyErr_SetString(PyExc_TypeError, "saved_tensors_hooks: expected a tuple (pack, unpack)");
    return nullptr;
  }
  if (!modes.saved_hook_stack) modes.saved_hook_stack = PyList_New(0);
  if (!modes.saved_hook_stack || PyList_Append(modes.saved_hook_stack, pair) < 0) return nullptr;
  ++modes.saved_hooks;
  Py_RETURN_NONE;
}
PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  Py_ssize_t n = modes.saved_hook_stack ? PyList_GET_SIZE(modes.saved_hook_stack) : 0;
  if (n == 0) {
    PyErr_SetString(PyExc_RuntimeError, "saved_tensors_hooks: there is no hook to take off");
    return nullptr;
  }
  if (PyList_SetSlice(modes.saved_hook_stack, n - 1, n, nullptr) < 0) return nullptr;
  --modes.saved_hooks;
  Py_RETURN_NONE;
}

// _saved_hooks_in_use(number) -> how many were before. With 0 what is saved goes through none.
PyObject* saved_hooks_in_use(PyObject*, PyObject* number) {
  const long n = PyLong_AsLong(number);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  const Py_ssize_t most = modes.saved_hook_stack ? PyList_GET_SIZE(modes.saved_hook_stack) : 0;
  if (n < 0 || n > most) {
    PyErr_SetString(PyExc_ValueError, "_saved_hooks_in_use: there are not so many hooks");
    return nullptr;
  }
  return PyLong_FromUnsignedLong(std::exchange(modes.saved_hooks, static_cast<uint32_t>(n)));
}

PyObject* module_bump_version(PyObject*, PyObject* t) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(t)) fail_type("increment_version: expected a Tensor; got ", Py_TYPE(t)->tp_name);
    bump_version(borrow(t));
    Py_RETURN_NONE;
  });
}
PyObject* module_result_type(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "OO:result_type", &a, &b)) return nullptr;
    Tensor in[2] = {tensor_or_number(a), tensor_or_number(b)};
    if (!in[0].defined() || !in[1].defined()) fail_type("result_type: expected Tensors or numbers");
    return dtype_object(result_type(in));
  });
}

PyObject* module_backward_id(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(backward_id());
}

PyObject* module_backward_node(PyObject*, PyObject*) {
  return guarded([&] { return node_object(backward_node()); });
}

// _tensor_of_edge(node, nr): a tensor that gradients for that output of the node are sent to, of
// its shape and dtype; its elements mean nothing.
PyObject* tensor_of_edge(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    Py_ssize_t nr;
    if (!PyArg_ParseTuple(args, "O!n:_tensor_of_edge", node_type, &o, &nr)) return nullptr;
    Node* n = live_node(o);
    require(n && nr >= 0 && nr < static_cast<Py_ssize_t>(n->output_count) &&
                n->meta(static_cast<uint32_t>(nr)).shape,
            "GradientEdge: the node has no output ", nr, " that is a tensor");
    const OutMeta& meta = n->meta(static_cast<uint32_t>(nr));
    const Dims& sizes = meta.sizes();
    Tensor t = empty_strided(sizes, Dims(sizes.size(), 0), meta.dtype, meta.device);
    set_grad_fn(t, n, static_cast<uint32_t>(nr));
    return wrap(std::move(t));
  });
}

PyMethodDef autograd_functions[] = {{"_backward_id", module_backward_id, METH_NOARGS, nullptr},
                                    {"_backward_node", module_backward_node, METH_NOARGS, nullptr},
                                    {"_tensor_of_edge", tensor_of_edge, METH_VARARGS, nullptr},
                                    {"_bump_version", module_bump_version, METH_O, nullptr},
                                    {"_result_type", module_result_type, METH_VARARGS, nullptr},
                                    {"_run_backward", module_run_backward, METH_VARARGS, nullptr},
                                    {"_push_saved_hooks", push_saved_hooks, METH_O, nullptr},
                                    {"_pop_saved_hooks", pop_saved_hooks, METH_NOARGS, nullptr},
                                    {"_saved_hooks_in_use", saved_hooks_in_use, METH_O, nullptr},
                                    {"_attach_function", attach_function, METH_VARARGS, nullptr},
                                    {"_node_type", node_type_named, METH_O, nullptr},
                                    {}};

}  // namespace

void add_autograd(PyObject* module) {
  add_node_type(module);
  add_grad_modes(module);
  if (PyModule_AddFunctions(module, autograd_functions) < 0) throw PythonError();
}

}  // namespace clew::python

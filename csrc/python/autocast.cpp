// autocast as clew.amp sees it: what the thread has chosen, regions, casts by policy.
// May include: everything below python/.
// Invariant: state of the calling thread only.
#include "graph/autocast.h"

#include "graph/modes.h"
#include "python/bridge.h"

namespace clew::python {

namespace {

PyObject* autocasting(PyObject*, PyObject*) { return PyBool_FromLong(autocasts()); }

PyObject* state(PyObject*, PyObject*) {
  return Py_BuildValue("(NNN)", PyBool_FromLong(autocasts()), dtype_object(autocast.dtype),
                       PyBool_FromLong(autocast.keeps_casts));
}
// (enabled, dtype, keeps_casts): what _autocast_state gave, or part of it changed.
PyObject* set_state(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int enabled, keeps_casts;
    PyObject* dtype;
    if (!PyArg_ParseTuple(args, "pOp:_set_autocast", &enabled, &dtype, &keeps_casts))
      return nullptr;
    if (!is_dtype(dtype))
      fail_type("set_autocast_dtype: expected a clew.dtype; got ", Py_TYPE(dtype)->tp_name);
    set_autocast(enabled != 0);
    autocast.dtype = dtype_from(dtype);
    autocast.keeps_casts = keeps_casts != 0;
    Py_RETURN_NONE;
  });
}
PyObject* increment(PyObject*, PyObject*) {
  enter_autocast_region();
  return PyLong_FromLong(autocast_depth());
}
PyObject* decrement(PyObject*, PyObject*) {
  exit_autocast_region();
  return PyLong_FromLong(autocast_depth());
}
PyObject* clear_cache(PyObject*, PyObject*) {
  forget_casts();
  Py_RETURN_NONE;
}

// The arguments in the dtype of a policy; whatever is no tensor that autocast changes as it is.
PyObject* cast_all(PyObject* args, DType dtype) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    Ref result(checked(PyTuple_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* o = PyTuple_GET_ITEM(args, i);
      PyTuple_SET_ITEM(result.get(), i,
                       is_tensor(o) ? wrap(autocast_to(borrow(o), dtype)) : Py_NewRef(o));
    }
    return result.release();
  });
}
// _fit(input, target) -> whether the two need no conversion, broadcast or refusal: tensors of one
// shape and one floating dtype, and no autocast.
PyObject* fit(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2 || autocasts() || !is_tensor(args[0]) || !is_tensor(args[1])) Py_RETURN_FALSE;
  const Tensor a = borrow(args[0]), b = borrow(args[1]);
  return PyBool_FromLong(a.is_floating() && a.dtype() == b.dtype() && a.sizes() == b.sizes());
}
PyObject* to_float32(PyObject*, PyObject* args) { return cast_all(args, DType::Float32); }
PyObject* to_lower(PyObject*, PyObject* args) { return cast_all(args, autocast.dtype); }

PyMethodDef autocast_functions[] = {
    {"_autocasting", autocasting, METH_NOARGS, nullptr},
    {"_fit", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(fit)), METH_FASTCALL, nullptr},
    {"_autocast_state", state, METH_NOARGS, nullptr},
    {"_set_autocast", set_state, METH_VARARGS, nullptr},
    {"autocast_increment_nesting", increment, METH_NOARGS,
     "autocast_increment_nesting()\n--\n\n"
     R"(Opens a region in which parameters are cast once; its depth.

>>> clew.autocast_increment_nesting(), clew.autocast_decrement_nesting()
(1, 0)
)"},
    {"autocast_decrement_nesting", decrement, METH_NOARGS,
     "autocast_decrement_nesting()\n--\n\n"
     R"(Closes the innermost region; the depth that is left.

>>> clew.autocast_increment_nesting(), clew.autocast_decrement_nesting()
(1, 0)
)"},
    {"clear_autocast_cache", clear_cache, METH_NOARGS,
     "clear_autocast_cache()\n--\n\n"
     R"(Forgets the casts of parameters that the region keeps.

>>> clew.clear_autocast_cache()
)"},
    {"_autocast_float32", to_float32, METH_VARARGS, nullptr},
    {"_autocast_lower", to_lower, METH_VARARGS, nullptr},
    {}};

}  // namespace

void add_autocast(PyObject* module) {
  if (PyModule_AddFunctions(module, autocast_functions) < 0) throw PythonError();
}

}  // namespace clew::python

// Calls that an argument's __torch_function__ takes over.
// May include: everything below python/.
// Invariant: here arguments are only looked at; clew.overrides decides and calls.
#include "python/overrides.h"

namespace clew::python {

bool overriding = false;

namespace {

// The __torch_function__ of classes that are left alone.
PyObject* left_alone = nullptr;

bool has_override(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_type || o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
      PyUnicode_CheckExact(o) || PyBool_Check(o))
    return false;
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (has_override(PySequence_Fast_GET_ITEM(o, i))) return true;
    return false;
  }
  Ref own(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__torch_function__"));
  if (!own) PyErr_Clear();
  return own && own.get() != left_alone;
}

PyObject* start_overriding(PyObject*, PyObject* alone) {
  left_alone = Py_NewRef(alone);
  overriding = true;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_start_overriding", start_overriding, METH_O, nullptr}, {}};

}  // namespace

PyObject* overridden(PyObject* function, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwnames) {
  Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  bool any = false;
  for (Py_ssize_t i = 0; i < nargs + named && !any; ++i) any = has_override(args[i]);
  if (!any) return nullptr;
  Ref module(checked(PyImport_ImportModule("clew.overrides")));
  Ref dispatch(checked(PyObject_GetAttrString(module.get(), "_dispatch")));
  Ref positional(checked(PyTuple_New(nargs)));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  Ref keywords(checked(PyDict_New()));
  for (Py_ssize_t i = 0; i < named; ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0)
      throw PythonError();
  PyObject* result = checked(PyObject_CallFunctionObjArgs(
      dispatch.get(), function, positional.get(), keywords.get(), nullptr));
  if (result != Py_NotImplemented) return result;
  Py_DECREF(result);
  return nullptr;
}

PyObject* overridden_by_name(const char* name, PyObject* const* args, Py_ssize_t nargs,
                             PyObject* kwnames) {
  Ref package(checked(PyImport_ImportModule("clew")));
  Ref function(checked(PyObject_GetAttrString(package.get(), name)));
  return overridden(function.get(), args, nargs, kwnames);
}

PyObject* overridden_operator(const char* name, PyObject* a, PyObject* b) {
  if (has_override(a) || has_override(b)) {
    Ref method(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name)));
    PyObject* both[2] = {a, b};
    if (PyObject* result = overridden(method.get(), both, 2, nullptr)) return result;
  }
  Py_RETURN_NOTIMPLEMENTED;
}

void add_overrides(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace clew::python

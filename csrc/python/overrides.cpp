// Calls that an argument's __torch_function__ takes over.
// May include: everything below python/.
// Invariant: here arguments are only looked at; clew.overrides decides and calls.
#include "python/overrides.h"

#include "graph/gather.h"

namespace clew::python {

bool overriding = false;

namespace {

// The __torch_function__ of classes that are left alone.
PyObject* left_alone = nullptr;

// A cached answer about a class, valid while the class does not change.
struct Answer {
  PyTypeObject* type;
  unsigned version;
  bool overrides;
};
Answer answers[64] = {};

bool type_overrides(PyTypeObject* type) {
  Answer& known = answers[(reinterpret_cast<uintptr_t>(type) >> 4) % std::size(answers)];
  if (known.type == type && known.version == type->tp_version_tag && known.version != 0)
    return known.overrides;
  Ref own(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__torch_function__"));
  if (!own) PyErr_Clear();
  known = {type, type->tp_version_tag, own && own.get() != left_alone};
  return known.overrides;
}

// Whether any thread is inside a TorchFunctionMode; clew.overrides knows which.
bool any_mode = false;

// The depth to which lists of arguments are searched; a list may contain itself.
constexpr int deepest = 8;

bool has_override(PyObject* o, int depth = 0) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_type || o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
      PyUnicode_CheckExact(o) || PyBool_Check(o))
    return false;
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    if (depth == deepest) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      Ref item(Py_NewRef(PySequence_Fast_GET_ITEM(o, i)));  // asking its class may run Python code
      if (has_override(item.get(), depth + 1)) return true;
    }
    return false;
  }
  return type_overrides(type);
}

PyObject* set_any_mode(PyObject*, PyObject* on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  any_mode = truth == 1;
  Py_RETURN_NONE;
}

PyObject* start_overriding(PyObject*, PyObject* alone) {
  left_alone = Py_NewRef(alone);
  overriding = true;
  Py_RETURN_NONE;
}

PyObject* set_sparse(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 2 || !PyType_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "_set_sparse(): expected a class and a function");
    return nullptr;
  }
  sparse_sum = Py_NewRef(args[1]);  // never released, like the class: the old ones may be in use
  sparse_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(args[0]));
  Py_RETURN_NONE;
}

PyMethodDef overrides_functions[] = {
    {"_start_overriding", start_overriding, METH_O, nullptr},
    {"_set_any_mode", set_any_mode, METH_O, nullptr},
    {"_set_sparse", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_sparse)),
     METH_FASTCALL, nullptr},
    {}};

}  // namespace

bool any_override(PyObject* const* args, Py_ssize_t count) {
  if (any_mode) return true;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (has_override(args[i])) return true;
  return false;
}

TupleAndDict as_tuple_and_dict(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  Ref positional(checked(PyTuple_New(nargs))), keywords(checked(PyDict_New()));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0)
      throw PythonError();
  return {std::move(positional), std::move(keywords)};
}

PyObject* overridden(PyObject* function, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwnames) {
  Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (!any_override(args, nargs + named)) return nullptr;
  Ref module(checked(PyImport_ImportModule("clew.overrides")));
  Ref dispatch(checked(PyObject_GetAttrString(module.get(), "_dispatch")));
  const auto [positional, keywords] = as_tuple_and_dict(args, nargs, kwnames);
  PyObject* result = checked(PyObject_CallFunctionObjArgs(
      dispatch.get(), function, positional.get(), keywords.get(), nullptr));
  if (result != Py_NotImplemented) return result;
  Py_DECREF(result);
  return nullptr;
}

PyObject* overridden_by_name(const char* name, PyObject* const* args, Py_ssize_t nargs,
                             PyObject* kwnames) {
  if (!any_override(args, nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0))) return nullptr;
  Ref package(checked(PyImport_ImportModule("clew")));
  Ref function(checked(PyObject_GetAttrString(package.get(), name)));
  return overridden(function.get(), args, nargs, kwnames);
}

PyObject* overridden_method(const char* name, PyObject* const* args, Py_ssize_t nargs) {
  if (!any_override(args, nargs)) return nullptr;
  Ref method(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name)));
  return overridden(method.get(), args, nargs, nullptr);
}

PyObject* overridden_operator(const char* name, PyObject* a, PyObject* b, bool* declined) {
  PyObject* both[2] = {a, b};
  try {
    if (PyObject* result = overridden_method(name, both, 2)) return result;
  } catch (const PythonError&) {
    // Python then asks the other operand for its own operator.
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw;
    PyErr_Clear();
    *declined = true;
  }
  Py_RETURN_NOTIMPLEMENTED;
}

void add_overrides(PyObject* module) {
  if (PyModule_AddFunctions(module, overrides_functions) < 0) throw PythonError();
  add_asking(module);
}

}  // namespace clew::python

// Functions written in Python whose calls modes and classes may take over.
// May include: python/overrides.h.
// Invariant: inspection shows a Python function: name, code, signature and source are those of the
// function that it calls.
#include <structmember.h>

#include "python/match.h"
#include "python/overrides.h"

namespace clew::python {

namespace {

struct Asking {
  PyObject_HEAD vectorcallfunc call;
  PyObject* function;
  PyObject* ask;  // ask(this, function, args, kwargs): called if a mode or class may take over
  PyObject* dict;
  PyObject* weak;
};
PyTypeObject* asking_type = nullptr;

// The function's own code, below those that only pass arguments on.
Ref code_of(PyObject* function) {
  Ref own(Py_NewRef(function));
  while (PyObject* inner = PyObject_GetAttrString(own.get(), "__wrapped__")) own = Ref(inner);
  PyErr_Clear();
  Ref code(PyObject_GetAttrString(own.get(), "__code__"));
  if (!code) PyErr_Clear();
  return code;
}
// The name of positional parameter i, or of an item of *args; empty where there is none.
std::string parameter_name(PyObject* function, Py_ssize_t i) {
  const Ref code = code_of(function);
  if (!code || !PyCode_Check(code.get())) return {};
  const auto* c = reinterpret_cast<PyCodeObject*>(code.get());
  const bool item = i >= c->co_argcount;
  if (item && !(c->co_flags & CO_VARARGS)) return {};
  const Ref names(PyObject_GetAttrString(code.get(), "co_varnames"));
  const Py_ssize_t at = item ? c->co_argcount + c->co_kwonlyargcount : i;
  const char* name = names ? PyUnicode_AsUTF8(PyTuple_GetItem(names.get(), at)) : nullptr;
  if (!name) PyErr_Clear();
  return !name ? "" : item ? concat(name, "[", i - c->co_argcount, "]") : name;
}
// An argument that lacks an attribute which tensors have should have been one: in place of the
// AttributeError that is set, a TypeError that names the argument.
void explain_missing_attribute(const Asking* a, PyObject* const* args, Py_ssize_t n) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref object(value ? PyObject_GetAttrString(value, "obj") : nullptr);
  const Ref name(value ? PyObject_GetAttrString(value, "name") : nullptr);
  PyErr_Clear();
  if (object && name && PyUnicode_Check(name.get()) && !is_tensor(object.get()) &&
      PyObject_HasAttr(reinterpret_cast<PyObject*>(tensor_type), name.get())) {
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (args[i] != object.get()) continue;
      const std::string parameter = parameter_name(a->function, i);
      if (parameter.empty()) break;
      const Ref own(PyObject_GetAttrString(a->function, "__name__"));
      PyErr_Format(PyExc_TypeError, "%S(): argument '%s' must be Tensor, not %s%s", own.get(),
                   parameter.c_str(), Py_TYPE(args[i])->tp_name, way_to_tensor(args[i]));
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(trace);
      return;
    }
  }
  PyErr_Restore(type, value, trace);
}

PyObject* asking_call(PyObject* self, PyObject* const* args, size_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const auto* a = reinterpret_cast<Asking*>(self);
    const Py_ssize_t given = PyVectorcall_NARGS(n);
    if (!any_override(args, given + (names ? PyTuple_GET_SIZE(names) : 0))) {
      PyObject* made = PyObject_Vectorcall(a->function, args, n, names);
      if (!made && PyErr_ExceptionMatches(PyExc_AttributeError))
        explain_missing_attribute(a, args, given);
      return made;
    }
    const auto [positional, keywords] = as_tuple_and_dict(args, given, names);
    return PyObject_CallFunctionObjArgs(a->ask, self, a->function, positional.get(), keywords.get(),
                                        nullptr);
  });
}

// Copies the attributes that functools.wraps would copy.
bool take_attributes(PyObject* self, PyObject* function) {
  const Ref own(PyObject_GetAttrString(function, "__dict__"));
  if (!own || PyDict_Update(reinterpret_cast<Asking*>(self)->dict, own.get()) < 0) return false;
  for (const char* name : {"__module__", "__name__", "__qualname__", "__doc__"}) {
    const Ref value(PyObject_GetAttrString(function, name));
    if (!value || PyObject_SetAttrString(self, name, value.get()) < 0) return false;
  }
  return true;
}

PyObject* asking_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *function, *ask;
  if (!PyArg_ParseTuple(args, "OO:Asking", &function, &ask)) return nullptr;
  if (!PyFunction_Check(function)) {
    PyErr_Format(PyExc_TypeError, "Asking: expected a function of Python; got %.200s",
                 Py_TYPE(function)->tp_name);
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto* a = reinterpret_cast<Asking*>(self);
  a->call = asking_call;
  a->function = Py_NewRef(function);
  a->ask = Py_NewRef(ask);
  a->dict = PyDict_New();
  if (a->dict && take_attributes(self, function)) return self;
  Py_DECREF(self);
  return nullptr;
}
int asking_traverse(PyObject* self, visitproc visit, void* arg) {
  const auto* a = reinterpret_cast<Asking*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(a->function);
  Py_VISIT(a->ask);
  Py_VISIT(a->dict);
  return 0;
}
int asking_clear(PyObject* self) {
  // The functions stay: calls need them. What they refer to is reached through their own dicts.
  Py_CLEAR(reinterpret_cast<Asking*>(self)->dict);
  return 0;
}
void asking_dealloc(PyObject* self) {
  auto* a = reinterpret_cast<Asking*>(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (a->weak) PyObject_ClearWeakRefs(self);
  Py_CLEAR(a->dict);
  Py_CLEAR(a->function);
  Py_CLEAR(a->ask);
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* asking_getattro(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(reinterpret_cast<Asking*>(self)->function, name);
}
PyObject* asking_repr(PyObject* self) {
  const Ref name(PyObject_GetAttrString(self, "__qualname__"));
  return name ? PyUnicode_FromFormat("<function %U at %p>", name.get(), self) : nullptr;
}
// Pickled by name, as functions are.
PyObject* asking_reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(self, "__qualname__");
}
PyObject* asking_class(PyObject*, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(&PyFunction_Type));
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Asking, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Asking, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Asking, weak), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(Asking, function), READONLY, nullptr},
    {}};
PyGetSetDef attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"__class__", asking_class, nullptr, nullptr, nullptr},
    {}};
PyMethodDef methods[] = {{"__reduce__", asking_reduce, METH_NOARGS, nullptr}, {}};

}  // namespace

void add_asking(PyObject* module) {
  PyType_Slot slots[] = {
      slot(Py_tp_new, asking_new),           slot(Py_tp_call, PyVectorcall_Call),
      slot(Py_tp_traverse, asking_traverse), slot(Py_tp_clear, asking_clear),
      slot(Py_tp_dealloc, asking_dealloc),   slot(Py_tp_descr_get, bound_like_function),
      slot(Py_tp_getattro, asking_getattro), slot(Py_tp_repr, asking_repr),
      slot(Py_tp_members, members),          slot(Py_tp_getset, attributes),
      slot(Py_tp_methods, methods),          {0, nullptr}};
  PyType_Spec spec = {"clew._C.Asking", sizeof(Asking), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                          Py_TPFLAGS_METHOD_DESCRIPTOR,
                      slots};
  asking_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Asking", reinterpret_cast<PyObject*>(asking_type));
}

}  // namespace clew::python

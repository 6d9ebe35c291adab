// Letting the calls of a thread wait, switched from Python, and functions that always do.
// May include: everything below python/.
// Invariant: no call waits any more when the outermost region has been left.
#include "graph/deferral.h"

#include "program/emptied.h"
#include "program/program.h"
#include "python/bridge.h"
#include "python/provenance.h"

namespace clew::python {

namespace {

// _defer(least or None) -> what was set before: calls whose operands have at least so many elements
// wait from now on; None: they run at once.
PyObject* defer(PyObject*, PyObject* least) {
  return guarded([&]() -> PyObject* {
    PyObject* before =
        modes.deferred ? checked(PyLong_FromLongLong(modes.least_deferred)) : Py_NewRef(Py_None);
    if (least == Py_None) {
      modes.deferred = false;
    } else {
      modes.least_deferred = int_from(least);
      if (!modes.deferred) program::begin_report();
      modes.deferred = true;
    }
    return before;
  });
}

// _run_deferred() -> how many calls of this thread were waiting, which have run now.
PyObject* run_deferred(PyObject*, PyObject*) {
  return guarded([&] { return checked(PyLong_FromSize_t(deferral.run_own())); });
}

// Runs the waiting calls when the outermost region ends. An exception already in flight takes
// precedence; reading a value that could not be computed raises its error later.
PyObject* end_region(PyObject* result) {
  if (result) {
    PyObject* done = guarded([] {
      deferral.run_own();
      return Py_None;
    });
    if (!done) Py_CLEAR(result);
    return result;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (!guarded([] {
        deferral.run_own();
        return Py_None;
      }))
    PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return nullptr;
}

// What clew.compile() makes of a function: a callable in which calls wait.
struct Deferring {
  PyObject_HEAD vectorcallfunc call;
  PyObject* function;
  PyObject* dict;
  PyObject* weak;
  int64_t least;
};
PyTypeObject* deferring_type = nullptr;

PyObject* deferring_call(PyObject* self, PyObject* const* args, size_t n, PyObject* names) {
  const auto* d = reinterpret_cast<Deferring*>(self);
  // Owned during the call, because the function may drop the last reference to this object.
  const Ref function(Py_NewRef(d->function));
  if (modes.deferred) return PyObject_Vectorcall(function.get(), args, n, names);
  modes.deferred = true;
  modes.least_deferred = d->least;
  program::begin_report();
  PyObject* result = PyObject_Vectorcall(function.get(), args, n, names);
  modes.deferred = false;
  return end_region(result);
}

PyObject* deferring_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* function;
  long long least;
  static const char* const names[] = {"function", "least", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OL", const_cast<char**>(names), &function,
                                   &least))
    return nullptr;
  if (!PyCallable_Check(function)) {
    PyErr_Format(PyExc_TypeError, "compile: expected a function or module; got %.200s",
                 Py_TYPE(function)->tp_name);
    return nullptr;
  }
  auto* d = reinterpret_cast<Deferring*>(type->tp_alloc(type, 0));
  if (!d) return nullptr;
  d->call = deferring_call;
  d->function = Py_NewRef(function);
  d->least = least;
  return reinterpret_cast<PyObject*>(d);
}
int deferring_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<Deferring*>(self)->function);
  Py_VISIT(reinterpret_cast<Deferring*>(self)->dict);
  return 0;
}
int deferring_clear(PyObject* self) {
  // The function stays: calls need it. What it refers to is reached through its own dicts.
  Py_CLEAR(reinterpret_cast<Deferring*>(self)->dict);
  return 0;
}
void deferring_dealloc(PyObject* self) {
  auto* d = reinterpret_cast<Deferring*>(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (d->weak) PyObject_ClearWeakRefs(self);
  Py_CLEAR(d->dict);
  Py_CLEAR(d->function);
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* deferring_repr(PyObject* self) {
  return PyUnicode_FromFormat("<compiled %R>", reinterpret_cast<Deferring*>(self)->function);
}
PyObject* deferring_reduce(PyObject* self, PyObject*) {
  const auto* d = reinterpret_cast<Deferring*>(self);
  return Py_BuildValue("O(OL)O", Py_TYPE(self), d->function, static_cast<long long>(d->least),
                       d->dict ? d->dict : Py_None);
}

PyMemberDef deferring_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Deferring, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Deferring, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Deferring, weak), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(Deferring, function), READONLY, nullptr},
    {}};
PyGetSetDef deferring_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
PyMethodDef deferring_methods[] = {{"__reduce__", deferring_reduce, METH_NOARGS, nullptr}, {}};

const char* word_for(program::Ending e) {
  switch (e) {
    case program::Ending::observed: return "observed";
    case program::Ending::region: return "end of the region";
    case program::Ending::full: return "many calls";
    case program::Ending::elsewhere: return "elsewhere";
  }
  return "";
}
PyObject* name_object(std::string_view name) {
  return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
}
// _program_report() -> (passes, ends, cut short) of the region that began last: a pass is (bytes
// that never became memory, why it ended or None, [(operation, place) ...]), an end is (why, calls
// that ran then, place).
PyObject* program_report(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    const program::Report r = program::report();  // what follows may run anything
    Ref passes(checked(PyList_New(0))), ends(checked(PyList_New(0)));
    size_t at = 0;
    for (const program::Pass& p : r.passes) {
      Ref calls(checked(PyList_New(0)));
      for (uint32_t k = 0; k < p.calls; ++k, ++at) {
        const program::Ran& ran = r.calls[at];
        const Ref call(checked(
            Py_BuildValue("(NN)", checked(name_object(op_name(*ran.op))), place_text(ran.origin))));
        if (PyList_Append(calls.get(), call.get()) < 0) throw PythonError();
      }
      const Ref pass(checked(
          Py_BuildValue("(LzO)", static_cast<long long>(p.bytes_saved), p.why_ended, calls.get())));
      if (PyList_Append(passes.get(), pass.get()) < 0) throw PythonError();
    }
    for (const program::End& e : r.ends) {
      const Ref end(checked(Py_BuildValue("(sIN)", word_for(e.why), e.calls, place_text(e.where))));
      if (PyList_Append(ends.get(), end.get()) < 0) throw PythonError();
    }
    return Py_BuildValue("(OOO)", passes.get(), ends.get(), r.cut_short ? Py_True : Py_False);
  });
}

Storage* storage_of(PyObject* t) {
  if (!is_tensor(t)) fail_type("expected a Tensor; got ", Py_TYPE(t)->tp_name);
  return borrow(t)->storage;
}
// _is_emptied(tensor): its storage's bytes were given back by _resize_storage(tensor, 0).
PyObject* is_emptied(PyObject*, PyObject* t) {
  return guarded([&] { return PyBool_FromLong(program::is_emptied(storage_of(t))); });
}
// _resize_storage(tensor, nbytes) -> whether that was to 0 bytes or from there; else the storage
// has as many bytes then, for all tensors over it, and the tensor itself is left to resize_().
PyObject* resize_storage(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* t;
    Py_ssize_t nbytes;
    if (!PyArg_ParseTuple(args, "On:_resize_storage", &t, &nbytes)) return nullptr;
    Storage* s = storage_of(t);
    require(nbytes >= 0, "resize_: a storage's size must not be negative; got ", nbytes);
    const bool emptied = program::is_emptied(s);
    if (nbytes == 0)
      program::empty_storage(s);
    else if (emptied)
      program::fill_again(s, static_cast<size_t>(nbytes));
    else
      grow_storage(borrow(t), static_cast<size_t>(nbytes));
    return PyBool_FromLong(nbytes == 0 || emptied);
  });
}

PyMethodDef deferral_functions[] = {{"_is_emptied", is_emptied, METH_O, nullptr},
                                    {"_resize_storage", resize_storage, METH_VARARGS, nullptr},
                                    {"_program_report", program_report, METH_NOARGS, nullptr},
                                    {"_defer", defer, METH_O, nullptr},
                                    {"_run_deferred", run_deferred, METH_NOARGS, nullptr},
                                    {}};

}  // namespace

void add_deferral(PyObject* module) {
  program::init_deferral();
  PyType_Slot slots[] = {slot(Py_tp_new, deferring_new),
                         slot(Py_tp_call, PyVectorcall_Call),
                         slot(Py_tp_traverse, deferring_traverse),
                         slot(Py_tp_clear, deferring_clear),
                         slot(Py_tp_dealloc, deferring_dealloc),
                         slot(Py_tp_descr_get, bound_like_function),
                         slot(Py_tp_repr, deferring_repr),
                         slot(Py_tp_members, deferring_members),
                         slot(Py_tp_getset, deferring_attributes),
                         slot(Py_tp_methods, deferring_methods),
                         slot(Py_tp_doc, "A function whose operations may wait."),
                         {0, nullptr}};
  PyType_Spec spec = {"clew._C.Deferring", sizeof(Deferring), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  deferring_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Deferring", reinterpret_cast<PyObject*>(deferring_type));
  if (PyModule_AddFunctions(module, deferral_functions) < 0) throw PythonError();
}

}  // namespace clew::python

// Grad modes for Python: whether operations are recorded, and inference mode.
// May include: everything below python/.
// Invariant: no Python code, a signal handler's neither, runs between a mode's change and the note
// of what it was.
#include "graph/provenance.h"
#include "python/autograd.h"

namespace clew::python {

namespace {

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(modes.grad); }
// _set_grad_enabled(on) -> what _restore_grad_enabled() takes: True, False, or False with the place
// where recording was switched off.
constexpr const char* off_since = "clew.off_since";
PyObject* set_grad_enabled(PyObject*, PyObject* on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  const bool now = truth == 1;
  PyObject* before = Py_NewRef(modes.grad ? Py_True : Py_False);
  if (now && !modes.grad && modes.unrecorded_since) {
    Py_SETREF(before, PyCapsule_New(modes.unrecorded_since, off_since, [](PyObject* capsule) {
                static_cast<Origin*>(PyCapsule_GetPointer(capsule, off_since))->decref();
              }));
    if (!before) return nullptr;
    modes.unrecorded_since->incref();
  }
  note_recording(now);
  modes.grad = now;
  return before;
}
PyObject* restore_grad_enabled(PyObject*, PyObject* before) {
  bool place = PyCapsule_IsValid(before, off_since);
  const int truth = place ? 0 : PyObject_IsTrue(before);
  if (truth < 0) return nullptr;
  const bool on = truth == 1;
  if (place)
    note_recording(static_cast<Origin*>(PyCapsule_GetPointer(before, off_since)));
  else
    note_recording(on);
  modes.grad = on;
  Py_RETURN_NONE;
}
PyObject* is_inference(PyObject*, PyObject*) { return PyBool_FromLong(modes.inference); }
PyObject* set_inference(PyObject*, PyObject* on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  bool before = modes.inference;
  modes.inference = truth == 1;
  return PyBool_FromLong(before);
}

// ---- the methods of context managers. An interrupt comes before one of them or after it.

PyObject* name_before() {
  static PyObject* name = PyUnicode_InternFromString("_before");
  return name;
}
// Back to what was noted: a recording mode, or one and an inference mode.
PyObject* restore(PyObject* before) {
  if (!PyTuple_Check(before)) return restore_grad_enabled(nullptr, before);
  Ref grad(restore_grad_enabled(nullptr, PyTuple_GET_ITEM(before, 0)));
  Ref inference(set_inference(nullptr, PyTuple_GET_ITEM(before, 1)));
  return grad && inference ? Py_NewRef(Py_None) : nullptr;
}
// Switches with `enter(argument)` and notes what that gives in the list self._before.
PyObject* enter_noted(PyObject* self, PyObject* (*enter)(PyObject*, PyObject*),
                      PyObject* argument) {
  Ref list(PyObject_GetAttr(self, name_before()));
  if (!list) return nullptr;
  Ref before(enter(nullptr, argument));
  if (!before) return nullptr;
  if (PyList_Append(list.get(), before.get()) == 0) Py_RETURN_NONE;
  Ref back(restore(before.get()));
  return nullptr;
}
PyObject* enter_off(PyObject* self, PyObject*) {
  return enter_noted(self, set_grad_enabled, Py_False);
}
PyObject* enter_on(PyObject* self, PyObject*) {
  return enter_noted(self, set_grad_enabled, Py_True);
}
// Inference mode of False records again within one of True.
PyObject* set_both(PyObject*, PyObject* inference) {
  Ref grad(set_grad_enabled(nullptr, inference == Py_True ? Py_False : Py_True));
  if (!grad) return nullptr;
  Ref before(set_inference(nullptr, inference));
  return before ? PyTuple_Pack(2, grad.get(), before.get()) : nullptr;
}
PyObject* enter_inference(PyObject* self, PyObject*) {
  static PyObject* name = PyUnicode_InternFromString("mode");
  Ref mode(PyObject_GetAttr(self, name));
  if (!mode) return nullptr;
  const int on = PyObject_IsTrue(mode.get());
  return on < 0 ? nullptr : enter_noted(self, set_both, on ? Py_True : Py_False);
}
// Back to what was noted last; without a list, to what self._before is.
PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  Ref before(PyObject_GetAttr(self, name_before()));
  if (!before) return nullptr;
  if (PyList_Check(before.get())) {
    const Py_ssize_t last = PyList_GET_SIZE(before.get()) - 1;
    if (last < 0) {
      PyErr_SetString(PyExc_RuntimeError, "grad mode: a context was left more often than entered");
      return nullptr;
    }
    Ref noted(Py_NewRef(PyList_GET_ITEM(before.get(), last)));
    if (PyList_SetSlice(before.get(), last, last + 1, nullptr) < 0) return nullptr;
    std::swap(before, noted);
  }
  return restore(before.get());
}

PyMethodDef mode_methods[] = {
    {"_enter_off", enter_off, METH_NOARGS, nullptr},
    {"_enter_on", enter_on, METH_NOARGS, nullptr},
    {"_enter_inference", enter_inference, METH_NOARGS, nullptr},
    {"_leave", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL,
     nullptr},
    {}};

PyMethodDef grad_mode_functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "is_grad_enabled()\n--\n\n"
     R"(Whether operations are recorded.

>>> with clew.no_grad():
...     clew.is_grad_enabled()
False
)"},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"_restore_grad_enabled", restore_grad_enabled, METH_O, nullptr},
    {"is_inference_mode_enabled", is_inference, METH_NOARGS,
     "is_inference_mode_enabled()\n--\n\n"
     R"(Whether inference mode is on.

>>> with clew.inference_mode():
...     clew.is_inference_mode_enabled()
True
)"},
    {"_set_inference", set_inference, METH_O, nullptr},
    {}};

}  // namespace

void add_grad_modes(PyObject* module) {
  static PyType_Slot slots[] = {{Py_tp_methods, mode_methods}, {}};
  static PyType_Spec spec = {"clew._C.GradMode", sizeof(PyObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  Ref type(checked(PyType_FromSpec(&spec)));
  if (PyModule_AddObjectRef(module, "GradMode", type.get()) < 0 ||
      PyModule_AddFunctions(module, grad_mode_functions) < 0)
    throw PythonError();
}

}  // namespace clew::python

// nan_watch, anomaly detection and the observer of operations, switched from Python.
// May include: everything below python/.
// Invariant: each belongs to the thread that switches it.
#include "graph/watch.h"

#include "python/bridge.h"

namespace clew::python {

namespace {

void set_bit(uint8_t bit, bool on) {
  modes.intercept = static_cast<uint8_t>(on ? modes.intercept | bit : modes.intercept & ~bit);
}

// _watch(callback or None, nan, infinity) -> what was set before, as such a tuple
PyObject* set_watch(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* callback;
    int nan, infinity;
    if (!PyArg_ParseTuple(args, "Opp:_watch", &callback, &nan, &infinity)) return nullptr;
    Ref before(checked(Py_BuildValue("(OOO)", watch.callback ? watch.callback : Py_None,
                                     watch.nan ? Py_True : Py_False,
                                     watch.infinity ? Py_True : Py_False)));
    bool on = callback != Py_None;
    Py_XSETREF(watch.callback, on ? Py_NewRef(callback) : nullptr);
    watch.nan = nan != 0;
    watch.infinity = infinity != 0;
    set_bit(intercept_watch, on);
    return before.release();
  });
}

// _set_anomaly(on): searches gradients for NaN, or not -> whether it did.
PyObject* set_anomaly(PyObject*, PyObject* on) {
  bool before = modes.intercept & intercept_anomaly;
  set_bit(intercept_anomaly, PyObject_IsTrue(on) == 1);
  return PyBool_FromLong(before);
}

// _observe(callback or None, names, few=None, most=0): shows the operations of these names, and
// backward calls, to callback(name, inputs, outputs); of those in `few` the first calls that are
// alike (clew::Shown).
PyObject* set_observer(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *callback, *names, *few = Py_None;
    int most = 0;
    if (!PyArg_ParseTuple(args, "OO|Oi:_observe", &callback, &names, &few, &most)) return nullptr;
    const bool on = callback != Py_None;
    if (on && (!PyAnySet_Check(names) || (few != Py_None && !PyAnySet_Check(few))))
      fail_type("_observe: expected a set of names");
    observe(on ? callback : nullptr, {names, few == Py_None ? nullptr : few, most});
    Py_RETURN_NONE;
  });
}
// _observe_closely(): shows every call until the next backward.
PyObject* set_closely(PyObject*, PyObject*) {
  observe_closely();
  Py_RETURN_NONE;
}

// _set_intercept(bits) -> the previous bits: what intercepts operations in this thread.
PyObject* set_intercept(PyObject*, PyObject* bits) {
  return guarded([&] {
    uint8_t before = modes.intercept;
    modes.intercept = static_cast<uint8_t>(int_from(bits));
    return checked(PyLong_FromLong(before));
  });
}

PyMethodDef watch_functions[] = {{"_set_intercept", set_intercept, METH_O, nullptr},
                                 {"_observe", set_observer, METH_VARARGS, nullptr},
                                 {"_observe_closely", set_closely, METH_NOARGS, nullptr},
                                 {"_watch", set_watch, METH_VARARGS, nullptr},
                                 {"_set_anomaly", set_anomaly, METH_O, nullptr},
                                 {}};

}  // namespace

void add_watch(PyObject* module) {
  if (PyModule_AddFunctions(module, watch_functions) < 0) throw PythonError();
}

}  // namespace clew::python

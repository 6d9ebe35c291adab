// Letting the calls of a thread wait, switched from Python.
// May include: everything below python/.
// Invariant: a thread that stops deferring leaves nothing waiting behind.
#include "graph/deferral.h"

#include "program/program.h"
#include "python/bridge.h"

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
      modes.deferred = true;
    }
    return before;
  });
}

// _run_deferred() -> how many calls of this thread were waiting, which have run now.
PyObject* run_deferred(PyObject*, PyObject*) {
  return guarded([&] { return checked(PyLong_FromSize_t(deferral.run_own())); });
}

PyMethodDef functions[] = {
    {"_defer", defer, METH_O, nullptr}, {"_run_deferred", run_deferred, METH_NOARGS, nullptr}, {}};

}  // namespace

void add_deferral(PyObject* module) {
  program::init_deferral();
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace clew::python

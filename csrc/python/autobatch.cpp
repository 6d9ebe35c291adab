// Gathering the calls of many samples, switched from Python, and tasks that wait for each other.
// May include: everything below python/.
// Invariant: a task that is parked finds what it had switched on as it left it.
#include "graph/autocast.h"
#include "graph/deferral.h"
#include "program/batching.h"
#include "python/bridge.h"
#include "python/provenance.h"

namespace clew::python {

namespace {

// The function with which a task parks. It is called instead of running the calls, and gives true
// if they have run.
thread_local PyObject* park = nullptr;  // owned

// The modes of a task, and the module calls that it is in.
struct Switched {
  Modes modes;
  AutocastSettings autocast;
  ModuleCall* calls = nullptr;
};
constinit thread_local Switched* of_hub = nullptr;  // kept while there is a function

// Installs another task's modes and returns those of the current one.
Switched switch_to(const Switched& next) {
  return {std::exchange(modes, next.modes), std::exchange(autocast, next.autocast),
          exchange_module_calls(next.calls)};
}

// Measured: what it costs that a task parks and goes on.
constexpr double park_ns = 1900;

bool before_observation() {
  program::batch_report().lost_ns += park_ns;
  const Switched own = switch_to(*of_hub);
  const Ref waits(Py_NewRef(park));
  PyObject* answer = PyObject_CallNoArgs(waits.get());
  switch_to(own);
  if (!answer) throw PythonError();
  const Ref held(answer);
  return truth_of(answer);
}

// _gather(on) -> what it was: the calls of this thread are gathered from now on.
PyObject* gather(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    const bool before = collects();
    program::gather_calls(truth_of(on));
    return PyBool_FromLong(before);
  });
}

// _run_gathered() -> how many calls of this thread were waiting, which have run now.
PyObject* run_gathered(PyObject*, PyObject*) {
  return guarded([] { return checked(PyLong_FromSize_t(deferral.run_collected())); });
}

// _gathers() -> whether the calls of this thread are gathered.
PyObject* gathers(PyObject*, PyObject*) { return PyBool_FromLong(collects()); }

// _gathered() -> how many calls of this thread wait.
PyObject* gathered(PyObject*, PyObject*) {
  const program::Batching* b = program::gathering();
  return PyLong_FromSize_t(b ? b->waiting() : 0);
}

// _park_with(function or None): sets what this thread calls before a result is read.
PyObject* park_with(PyObject*, PyObject* function) {
  return guarded([&]() -> PyObject* {
    PyObject* next = function == Py_None ? nullptr : Py_NewRef(function);
    delete std::exchange(of_hub, nullptr);
    if (next) {
      of_hub = new Switched{modes, autocast, exchange_module_calls(nullptr)};
      exchange_module_calls(of_hub->calls);
    }
    program::before_observation = next ? before_observation : nullptr;
    Py_XDECREF(std::exchange(park, next));
    Py_RETURN_NONE;
  });
}

// _parks() -> whether a function is set.
PyObject* parks(PyObject*, PyObject*) { return PyBool_FromLong(park != nullptr); }

// _to_hub(): back to what was switched on when _park_with() was called.
PyObject* to_hub(PyObject*, PyObject*) {
  if (of_hub) switch_to(*of_hub);
  Py_RETURN_NONE;
}

// _batch_report() -> ([(operation, place, members, why alone or None) ...], [(observed, calls,
// place) ...], calls).
PyObject* batch_report(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    const program::BatchReport r = program::batch_report();  // what follows may run anything
    const Ref calls(checked(PyList_New(0))), ends(checked(PyList_New(0)));
    for (const program::BatchedCall& c : r.calls) {
      const std::string_view name = op_name(*c.op);
      const Ref one(
          checked(Py_BuildValue("(s#NIz)", name.data(), static_cast<Py_ssize_t>(name.size()),
                                place_text(c.origin), c.members, c.why_alone)));
      if (PyList_Append(calls.get(), one.get()) < 0) throw PythonError();
    }
    for (const program::End& e : r.ends) {
      const Ref one(
          checked(Py_BuildValue("(OIN)", e.why == program::Ending::observed ? Py_True : Py_False,
                                e.calls, place_text(e.where))));
      if (PyList_Append(ends.get(), one.get()) < 0) throw PythonError();
    }
    return Py_BuildValue("(OOK)", calls.get(), ends.get(),
                         static_cast<unsigned long long>(r.gathered));
  });
}

// _batch_paid() -> whether the region that began last took less time than the plain program, as far
// as can be told; None where it gathered no call.
PyObject* batch_paid(PyObject*, PyObject*) {
  const program::BatchReport& r = program::batch_report();
  if (r.gathered == 0) Py_RETURN_NONE;
  return PyBool_FromLong(r.paid());
}

// _begin_batch_report(): clears the report of the previous region.
PyObject* begin_report(PyObject*, PyObject*) {
  program::batch_report().forget();
  Py_RETURN_NONE;
}

PyMethodDef autobatch_functions[] = {{"_gather", gather, METH_O, nullptr},
                                     {"_run_gathered", run_gathered, METH_NOARGS, nullptr},
                                     {"_gathers", gathers, METH_NOARGS, nullptr},
                                     {"_gathered", gathered, METH_NOARGS, nullptr},
                                     {"_park_with", park_with, METH_O, nullptr},
                                     {"_parks", parks, METH_NOARGS, nullptr},
                                     {"_to_hub", to_hub, METH_NOARGS, nullptr},
                                     {"_batch_report", batch_report, METH_NOARGS, nullptr},
                                     {"_batch_paid", batch_paid, METH_NOARGS, nullptr},
                                     {"_begin_batch_report", begin_report, METH_NOARGS, nullptr},
                                     {}};

}  // namespace

void add_autobatch(PyObject* module) {
  if (PyModule_AddFunctions(module, autobatch_functions) < 0) throw PythonError();
}

}  // namespace clew::python

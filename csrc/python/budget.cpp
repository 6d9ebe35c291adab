// The memory budget, switched from Python.
// May include: everything below python/.
// Invariant: a region that began is ended by its number, in whatever order.
#include "program/budget.h"

#include <unistd.h>

#include "python/bridge.h"

namespace clew::python {

namespace {

// _begin_budget(limit, file descriptor or -1, note_from, note_first, enough, first_most) -> the
// region's number (program::Noting). The file is used through a descriptor of its own.
PyObject* begin(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    long long limit = 0, from = 0, first = 0, enough = 0, first_most = 0;
    int fd = -1;
    if (!PyArg_ParseTuple(args, "LiLLLL", &limit, &fd, &from, &first, &enough, &first_most))
      throw PythonError();
    program::SpillFile* file = nullptr;
    if (fd >= 0) {
      const int own = dup(fd);
      if (own < 0)
        fail(ErrorKind::Os, "memory_budget: the file for offloaded tensors cannot be opened again");
      file = new program::SpillFile(own);
    }
    const uint64_t number = program::begin_budget(limit, file, {from, first, enough, first_most});
    if (file) file->decref();
    return checked(PyLong_FromUnsignedLongLong(number));
  });
}

PyObject* end(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    const unsigned long long n = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) throw PythonError();
    program::end_budget(n);
    Py_RETURN_NONE;
  });
}

// _budget_peak(region) -> the most bytes that were live since it began.
PyObject* peak(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    const unsigned long long n = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) throw PythonError();
    return checked(PyLong_FromLongLong(program::peak_in_budget(n)));
  });
}

// _note_second_run(on) -> whether calls were noted before.
PyObject* note_again(PyObject*, PyObject* on) {
  return PyBool_FromLong(program::note_second_run(on == Py_True));
}

// _budget_counts() -> (limit, given up, their bytes, made again, nanoseconds that took, written,
// their bytes, read, calls noted, calls that cannot be made again, nanoseconds that those noted
// took, how many of them ran in backward), since the process began; bytes of the results of the
// first few calls of the region that began last.
PyObject* counts(PyObject*, PyObject*) {
  const program::Budget& b = program::budget();
  const program::BudgetCounts& c = b.counts;
  return Py_BuildValue(
      "(LLLLLLLLLLLLL)", static_cast<long long>(b.limit), static_cast<long long>(c.given_up),
      static_cast<long long>(c.given_up_bytes), static_cast<long long>(c.made_again),
      static_cast<long long>(c.made_again_ns), static_cast<long long>(c.written),
      static_cast<long long>(c.written_bytes), static_cast<long long>(c.read),
      static_cast<long long>(c.noted), static_cast<long long>(c.unmade),
      static_cast<long long>(c.noted_ns), static_cast<long long>(c.noted_in_backward),
      static_cast<long long>(b.early.bytes));
}

// _budget_refusal() -> (bytes that would have had to be live when this thread's last call was
// refused, those it asked for, whether a gradient rule asked, the limit, what one call read and
// made at most, whether there is a directory, whether something was recomputed, whether calls were
// noted late).
PyObject* refusal(PyObject*, PyObject*) {
  const program::Budget& b = program::budget();
  const program::Refusal& last = program::last_refusal();
  return Py_BuildValue("(LLOLLOOO)", static_cast<long long>(last.needed),
                       static_cast<long long>(last.more), last.in_backward ? Py_True : Py_False,
                       static_cast<long long>(b.limit), static_cast<long long>(b.widest),
                       b.file ? Py_True : Py_False, last.recomputed ? Py_True : Py_False,
                       last.late ? Py_True : Py_False);
}

PyMethodDef budget_functions[] = {{"_begin_budget", begin, METH_VARARGS, nullptr},
                                  {"_end_budget", end, METH_O, nullptr},
                                  {"_budget_peak", peak, METH_O, nullptr},
                                  {"_budget_counts", counts, METH_NOARGS, nullptr},
                                  {"_note_second_run", note_again, METH_O, nullptr},
                                  {"_budget_refusal", refusal, METH_NOARGS, nullptr},
                                  {}};

}  // namespace

void add_budget(PyObject* module) {
  if (PyModule_AddFunctions(module, budget_functions) < 0) throw PythonError();
}

}  // namespace clew::python

// Calls that an argument's __torch_function__ takes over.
// May include: everything below python/.
// Invariant: programs without such classes pay one test of a bool an operation.
#pragma once
#include "python/bridge.h"

namespace clew::python {

// A subclass of Tensor with a __torch_function__ of its own exists.
extern bool overriding;

// Whether a mode is on or an argument's class may define __torch_function__.
bool any_override(PyObject* const* args, Py_ssize_t count);
// The arguments of a call in Python's form.
struct TupleAndDict {
  Ref positional, keywords;
};
TupleAndDict as_tuple_and_dict(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// What clew.overrides makes of a call: a new reference, or null without an error when no argument
// takes it over.
PyObject* overridden(PyObject* function, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwnames);

// The same for a function of the package's, which knows its name only.
PyObject* overridden_by_name(const char* name, PyObject* const* args, Py_ssize_t nargs,
                             PyObject* kwnames);

// The same for a method of Tensor's.
PyObject* overridden_method(const char* name, PyObject* const* args, Py_ssize_t nargs);

// The same for an operator between a tensor and something else: NotImplemented when that does not
// take it over; `declined` becomes true where somebody was asked.
PyObject* overridden_operator(const char* name, PyObject* a, PyObject* b, bool* declined);

void add_overrides(PyObject* module);
void add_asking(PyObject* module);

}  // namespace clew::python

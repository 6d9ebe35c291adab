// Calls whose arguments are of Python's own types: matched, read and run in one pass.
// May include: python/signature.h.
// Invariant: a call is taken only where the whole matching would choose the same overload, and
// before anything has been done.
#pragma once
#include "python/signature.h"

namespace clew::python {

// Null without an error where it takes a closer look: other types, names that are not a
// parameter's, arguments that fit nothing.
PyObject* call_at_once(FunctionEntry& e, bool method, bool inplace, PyObject* const* args,
                       Py_ssize_t nargs, PyObject* kwnames);

// The same of a call with nothing but a short list of tensors.
PyObject* call_with_list(FunctionEntry& e, PyObject* list);

// The results as Python gets them: a tensor, a tuple or a named tuple.
PyObject* wrap_outputs(const FunctionEntry& e, Overload& o, Tensors& outs);

}  // namespace clew::python

// x[...] and x[...] = y.
// May include: python/bridge.h.
// Invariant: basic indexing gives views, advanced indexing copies.
#pragma once
#include "python/bridge.h"

namespace clew::python {

PyObject* tensor_getitem(PyObject* self, PyObject* key);
int tensor_setitem(PyObject* self, PyObject* key, PyObject* value);

}  // namespace clew::python

// The arguments of a call, laid beside the parameters of an overload.
// May include: python/signature.h.
// Invariant: matching converts nothing and leaves no error behind.
#pragma once
#include <algorithm>
#include <array>
#include <string>

#include "python/signature.h"

namespace clew::python {

// One call's arguments laid beside an overload's parameters.
struct Bound {
  std::array<PyObject*, max_params> value;  // as many as the overload has parameters
  PyObject* const* varargs = nullptr;
  Py_ssize_t varargs_count = 0;
  PyObject* out = nullptr;
  bool out_given = false;  // perhaps as None
  explicit Bound(const Overload& o) { std::fill_n(value.begin(), o.params.size(), nullptr); }
};

// Fills b; returns an explanation when the arguments do not fit, empty when they do. `why` may be
// null.
bool match(const FunctionEntry& e, const Overload& o, PyObject* const* args, Py_ssize_t nargs,
           PyObject* kwnames, Bound& b, bool strict, std::string* why);
// For a message that wants a tensor: how to make one of v; nothing where that is not plain.
const char* way_to_tensor(PyObject* v);
// What came, for a message: (float32[2, 3], int, dim=str).
std::string describe_arguments(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

}  // namespace clew::python

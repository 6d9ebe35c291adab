// Which arguments fit which parameters, and what is wrong with those that do not.
// May include: everything below python/.
// Invariant: matching converts nothing and leaves no error behind.
#include "python/match.h"

#include "python/bridge.h"

namespace clew::python {

const char* way_to_tensor(PyObject* v) {
  const bool numbers = is_numpy_array(v) || PyList_Check(v) || PyTuple_Check(v) ||
                       PyFloat_Check(v) || PyLong_Check(v) || PyComplex_Check(v);
  return numbers ? "; clew.tensor() makes one of it" : "";
}

namespace {

bool is_number(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  if (is_tensor(o) || PyUnicode_Check(o) || PyTuple_Check(o) || PyList_Check(o) || o == Py_None)
    return false;
  Scalar s;
  return scalar_from(o, s);
}
// A number, or a 0-d tensor that stands for one and wants no gradient.
bool is_number_like(PyObject* o) {
  if (is_number(o)) return true;
  if (!is_tensor(o)) return false;
  auto* t = reinterpret_cast<TensorObj*>(o);
  return t->shape->sizes.size() == 0 && !t->storage->is_meta() && !borrow(o).requires_grad();
}

// `strict` refuses tensors for int and number parameters, so that max(x, other) is not read as
// max(x, dim).
bool fits(const Param& p, PyObject* v, bool strict) {
  bool wants_tensor =
      p.kind == ParamKind::Tensor || p.kind == ParamKind::Operand || p.kind == ParamKind::OptTensor;
  if (strict && !wants_tensor && is_tensor(v)) return false;
  switch (p.kind) {
    case ParamKind::Tensor: return is_tensor(v);
    case ParamKind::Operand: return is_tensor(v) || is_number(v);
    case ParamKind::OptTensor: return v == Py_None || is_tensor(v);
    case ParamKind::TensorList: {
      if (!PyTuple_Check(v) && !PyList_Check(v)) return false;
      Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
      PyObject** items = PySequence_Fast_ITEMS(v);
      for (Py_ssize_t i = 0; i < n; ++i)
        if (!is_tensor(items[i]) && items[i] != Py_None) return false;
      return true;
    }
    case ParamKind::Int: return is_one_int(v);
    case ParamKind::OptInt: return v == Py_None || is_one_int(v);
    case ParamKind::Ints: return is_int_sequence(v) || (p.takes_one_int() && is_one_int(v));
    case ParamKind::OptInts: return v == Py_None || is_int_sequence(v) || is_one_int(v);
    case ParamKind::Bool: return PyBool_Check(v) || is_numpys(v, "numpy.bool");
    case ParamKind::OptBool: return v == Py_None || PyBool_Check(v);
    case ParamKind::Float: return is_number_like(v) && !PyComplex_Check(v);
    case ParamKind::OptFloat: return v == Py_None || (is_number_like(v) && !PyComplex_Check(v));
    case ParamKind::Number: return is_number_like(v);
    case ParamKind::OptNumber: return v == Py_None || is_number_like(v);
    case ParamKind::Text: return PyUnicode_Check(v);
    case ParamKind::OptText: return v == Py_None || PyUnicode_Check(v);
    case ParamKind::DType: return v == Py_None || is_dtype(v);
    case ParamKind::Generator: return v == Py_None || is_generator(v);
    case ParamKind::Inplace: return PyBool_Check(v);
  }
  return false;
}

const char* kind_text(ParamKind k) {
  switch (k) {
    case ParamKind::Tensor:
    case ParamKind::OptTensor: return "Tensor";
    case ParamKind::Operand: return "Tensor or Number";
    case ParamKind::TensorList: return "tuple of Tensors";
    case ParamKind::Int:
    case ParamKind::OptInt: return "int";
    case ParamKind::Ints:
    case ParamKind::OptInts: return "tuple of ints";
    case ParamKind::Bool:
    case ParamKind::OptBool:
    case ParamKind::Inplace: return "bool";
    case ParamKind::Float:
    case ParamKind::OptFloat: return "float";
    case ParamKind::Number:
    case ParamKind::OptNumber: return "Number";
    case ParamKind::Text:
    case ParamKind::OptText: return "str";
    case ParamKind::DType: return "clew.dtype";
    case ParamKind::Generator: return "Generator";
  }
  return "?";
}

// The user calls max_pool2d(); that it ends in _max_pool2d() is the library's affair.
std::string shown_name(const FunctionEntry& e) {
  size_t first = e.name.rfind('.') + 1;
  std::string s = e.name;
  if (s[first] == '_' && s[first + 1] != '_') s.erase(first, 1);
  return s;
}

std::string parameter_names(const Overload& o) {
  std::string s;
  for (const Param& p : o.params) s += (s.empty() ? "" : ", ") + p.name;
  return s;
}

// How the caller gets what is wanted from what came; nothing where that is not plain.
const char* way_out(ParamKind wanted, PyObject* v) {
  if (wanted == ParamKind::DType) return "; such as clew.float32";
  const bool tensor = wanted == ParamKind::Tensor || wanted == ParamKind::OptTensor ||
                      wanted == ParamKind::Operand || wanted == ParamKind::TensorList;
  if (tensor) return way_to_tensor(v);
  const bool number = wanted == ParamKind::Float || wanted == ParamKind::OptFloat ||
                      wanted == ParamKind::Number || wanted == ParamKind::OptNumber;
  if (number && is_tensor(v) && borrow(v).requires_grad())
    return " that requires grad, as this argument has no gradient; compute with tensors where it "
           "is "
           "to be learned, and pass item() otherwise";
  return "";
}

// Why v, argument i, does not fit p: the element at fault where p is a list.
std::string misfit(const FunctionEntry& e, const Param& p, Py_ssize_t i, PyObject* v) {
  if (p.kind == ParamKind::TensorList && (PyList_Check(v) || PyTuple_Check(v)))
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(v); ++k)
      if (PyObject* x = PySequence_Fast_GET_ITEM(v, k); !is_tensor(x))
        return concat(shown_name(e), "(): argument '", p.name, "' (position ", i + 1,
                      ") must be tuple of Tensors, but found element of type ", Py_TYPE(x)->tp_name,
                      " at pos ", k, way_out(p.kind, x));
  return concat(shown_name(e), "(): argument '", p.name, "' (position ", i + 1, ") must be ",
                kind_text(p.kind), ", not ", Py_TYPE(v)->tp_name, way_out(p.kind, v));
}

// Names that NumPy's habit gives to PyTorch's parameters.
bool is_numpy_name(const std::string& param, PyObject* key) {
  auto given = [&](const char* name) { return is_named(key, name); };
  if (param == "dim") return given("axis");
  if (param == "keepdim") return given("keepdims");
  if (param == "input") return given("x") || given("a") || given("x1") || given("self");
  if (param == "other") return given("x2");
  return false;
}

}  // namespace

std::string describe_arguments(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  std::string s = "(";
  Py_ssize_t kwargs = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < nargs + kwargs; ++i) {
    if (i) s += ", ";
    if (i >= nargs) s += printable(PyTuple_GET_ITEM(kwnames, i - nargs)) + "=";
    s += is_tensor(args[i]) ? concat(borrow(args[i])) : Py_TYPE(args[i])->tp_name;
  }
  return s + ")";
}

bool match(const FunctionEntry& e, const Overload& o, PyObject* const* args, Py_ssize_t nargs,
           PyObject* kwnames, Bound& b, bool strict, std::string* why) {
  auto n = static_cast<Py_ssize_t>(o.params.size());
  Py_ssize_t used = 0;
  for (Py_ssize_t i = 0; i < n && used < nargs; ++i) {
    const Param& p = o.params[static_cast<size_t>(i)];
    if (p.keyword_only) break;
    if (p.varargs && (nargs - used > 1 || is_int(args[used]))) {
      if (!read_as_ints(args + used, nargs - used)) {
        Py_ssize_t k = used;
        while (k + 1 < nargs && read_as_ints(args + used, k + 1 - used)) ++k;
        if (why)
          *why = concat(shown_name(e), "(): argument '", p.name, "' must be ints; got ",
                        Py_TYPE(args[k])->tp_name);
        return false;
      }
      b.varargs = args + used;
      b.varargs_count = nargs - used;
      b.value[static_cast<size_t>(i)] = Py_None;
      used = nargs;
      break;
    }
    b.value[static_cast<size_t>(i)] = args[used++];
  }
  if (used < nargs) {
    if (why) {
      std::string named;
      for (const Param& p : o.params)
        if (p.keyword_only) named += (named.empty() ? "; by name only: " : ", ") + p.name;
      *why = concat(shown_name(e), "() takes ", o.positional, " positional arguments but ", nargs,
                    " were given", named);
    }
    return false;
  }
  Py_ssize_t kwargs = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < kwargs; ++k) {
    PyObject* key = PyTuple_GET_ITEM(kwnames, k);
    Py_ssize_t at = -1;
    for (Py_ssize_t i = 0; i < n && at < 0; ++i)
      if (o.params[static_cast<size_t>(i)].key == key) at = i;
    const bool out = at < 0 && is_named(key, "out");
    for (Py_ssize_t i = 0; i < n && at < 0 && !out; ++i)
      if (PyUnicode_Compare(o.params[static_cast<size_t>(i)].key, key) == 0 ||
          is_numpy_name(o.params[static_cast<size_t>(i)].name, key))
        at = i;
    if (at < 0) {
      if (out) {
        b.out = args[nargs + k] == Py_None ? nullptr : args[nargs + k];
        b.out_given = true;
        continue;
      }
      if (why)
        *why = concat(shown_name(e), "() got an unexpected keyword argument '", printable(key),
                      "'; its arguments: ", parameter_names(o));
      return false;
    }
    if (b.value[static_cast<size_t>(at)]) {
      if (why)
        *why = concat(shown_name(e), "() got multiple values for argument '", printable(key), "'");
      return false;
    }
    b.value[static_cast<size_t>(at)] = args[nargs + k];
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    const Param& p = o.params[static_cast<size_t>(i)];
    PyObject* v = b.value[static_cast<size_t>(i)];
    if (b.varargs && p.varargs) continue;
    if (!v) {
      if (p.has_default) continue;
      if (why)
        *why = concat(shown_name(e), "() missing required argument '", p.name, "' (",
                      kind_text(p.kind), ")");
      return false;
    }
    if (!fits(p, v, strict)) {
      if (why) *why = misfit(e, p, i, v);
      return false;
    }
  }
  if (o.needs_tensor) {
    bool any = false;
    for (Py_ssize_t i = 0; i < n; ++i)
      any = any || (b.value[static_cast<size_t>(i)] && is_tensor(b.value[static_cast<size_t>(i)]));
    if (!any) {
      if (why)
        *why = concat(shown_name(e), "() received an invalid combination of arguments - got ",
                      describe_arguments(args, nargs, kwnames),
                      "; at least one operand must be a Tensor");
      return false;
    }
  }
  return true;
}

}  // namespace clew::python

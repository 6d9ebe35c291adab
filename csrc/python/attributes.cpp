// Writing arguments into an op's attribute struct.
// May include: everything below python/.
// Invariant: as attributes.h.
#include "python/attributes.h"

#include "python/bridge.h"
#include "python/convert.h"

namespace clew::python {

static double float_from(PyObject* v) {
  Scalar s;
  if (is_tensor(v))
    s = number_in(v);
  else if (!scalar_from(v, s))
    fail_type("expected a number; got ", Py_TYPE(v)->tp_name);
  return s.to_double();
}

static void store_ints(Dims& d, int repeat, PyObject* v) {
  d.clear();
  if (v == Py_None) return;
  if (is_int(v) || is_tensor(v)) {
    d.push_back(int_from(v));
  } else {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
    for (Py_ssize_t i = 0; i < n; ++i) d.push_back(int_from(PySequence_Fast_GET_ITEM(v, i)));
  }
  if (d.size() == 1)
    for (int i = 1; i < repeat; ++i) d.push_back(d[0]);
}

void store_ints(char* field, ParamKind kind, std::span<PyObject* const> ints) {
  Dims& d = kind == ParamKind::OptInts ? reinterpret_cast<std::optional<Dims>*>(field)->emplace()
                                       : *reinterpret_cast<Dims*>(field);
  d.clear();
  for (PyObject* n : ints) d.push_back(int_from(n));
}

// What read(v) gives; nothing for None.
template <class T, class F> static void store_optional(char* field, PyObject* v, F&& read) {
  auto& f = *reinterpret_cast<std::optional<T>*>(field);
  if (v == Py_None)
    f.reset();
  else
    f = read(v);
}

void store(char* field, ParamKind kind, int repeat, PyObject* v) {
  switch (kind) {
    case ParamKind::Int: *reinterpret_cast<int64_t*>(field) = int_from(v); break;
    case ParamKind::OptInt: store_optional<int64_t>(field, v, int_from); break;
    case ParamKind::Ints: store_ints(*reinterpret_cast<Dims*>(field), repeat, v); break;
    case ParamKind::OptInts: {
      auto& f = *reinterpret_cast<std::optional<Dims>*>(field);
      if (v == Py_None)
        f.reset();
      else
        store_ints(f.emplace(), repeat, v);
      break;
    }
    case ParamKind::Bool: *reinterpret_cast<bool*>(field) = truth_of(v); break;
    case ParamKind::OptBool:
      store_optional<bool>(field, v, [](PyObject* o) { return o == Py_True; });
      break;
    case ParamKind::Float: *reinterpret_cast<double*>(field) = float_from(v); break;
    case ParamKind::OptFloat: store_optional<double>(field, v, float_from); break;
    case ParamKind::Number:
    case ParamKind::OptNumber: {
      Scalar s;
      if (is_tensor(v))
        s = number_in(v);
      else if (v != Py_None)
        scalar_from(v, s);
      *reinterpret_cast<Scalar*>(field) = s;
      break;
    }
    case ParamKind::Text:
    case ParamKind::OptText: {
      if (v == Py_None) {
        *reinterpret_cast<Str*>(field) = Str();
        break;
      }
      Py_ssize_t len = 0;
      const char* text = PyUnicode_AsUTF8AndSize(v, &len);
      if (!text) throw PythonError();
      *reinterpret_cast<Str*>(field) = Str(std::string_view(text, static_cast<size_t>(len)));
      break;
    }
    case ParamKind::DType: store_optional<DType>(field, v, dtype_from); break;
    case ParamKind::Generator:
      *reinterpret_cast<Generator**>(field) = generator_from_python(v);
      break;
    default: break;
  }
}

}  // namespace clew::python

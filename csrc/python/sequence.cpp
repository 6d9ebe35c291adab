// Numbers and nested sequences of numbers to tensors, without a detour through NumPy.
// May include: everything below python/.
// Invariant: shape and dtype are known before the first element is stored.
#include "python/convert.h"

namespace clew::python {

namespace {

[[noreturn]] void fail_no_dtype(PyObject* o) {
  if (PyUnicode_Check(o) || PyBytes_Check(o))
    fail_type("tensor: invalid data type '", Py_TYPE(o)->tp_name,
              "'; a tensor holds numbers and truth values");
  fail("tensor: Could not infer dtype of ", Py_TYPE(o)->tp_name);
}

bool is_sequence(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) return true;
  if (PyFloat_Check(o) || PyLong_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) ||
      PyDict_Check(o))
    return false;
  if (is_tensor(o) || !PySequence_Check(o)) return false;
  if (PySequence_Size(o) >= 0) return true;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
  PyErr_Clear();  // it has no length
  return false;
}

// Items of a list or tuple, or of another sequence turned into a list that `keep` owns.
struct Items {
  Ref keep;
  PyObject** at;
  Py_ssize_t count;
  explicit Items(PyObject* o) : keep(checked(PySequence_Fast(o, "not a sequence"))) {
    at = PySequence_Fast_ITEMS(keep.get());
    count = PySequence_Fast_GET_SIZE(keep.get());
  }
};

void add_shape(PyObject* o, Dims& sizes) {
  if (!is_sequence(o)) return;
  Py_ssize_t n = PySequence_Size(o);
  if (n < 0) throw PythonError();
  sizes.push_back(n);
  if (sizes.size() > max_dims)
    fail_value("tensor: too many dimensions '", Py_TYPE(o)->tp_name, "'");
  if (n == 0) return;
  Ref first(checked(PySequence_GetItem(o, 0)));
  add_shape(first.get(), sizes);
}

// bool < int64 < default float < default complex; NumPy scalars and tensors bring their own dtype.
struct Inferred {
  bool any = false;
  DType dtype = DType::Float32;
  void add(DType d) {
    dtype = any ? promote(dtype, d) : d;
    any = true;
  }
};
void infer(PyObject* o, Inferred& found, int depth) {
  if (PyFloat_CheckExact(o)) return found.add(default_dtype());
  if (PyBool_Check(o)) return found.add(DType::Bool);
  if (PyLong_Check(o)) return found.add(DType::Int64);
  if (is_tensor(o)) return found.add(borrow(o).dtype());
  if (PyList_Check(o) || PyTuple_Check(o)) {
    if (depth > max_dims) fail_value("tensor: too many dimensions '", Py_TYPE(o)->tp_name, "'");
    Items items(o);
    for (Py_ssize_t i = 0; i < items.count; ++i) infer(items.at[i], found, depth + 1);
    return;
  }
  if (auto d = numpy_scalar_dtype(o)) return found.add(*d);
  if (PyFloat_Check(o)) return found.add(default_dtype());
  if (PyComplex_Check(o)) return found.add(complex_of(default_dtype()));
  if (!is_sequence(o)) fail_no_dtype(o);
  if (depth > max_dims) fail_value("tensor: too many dimensions '", Py_TYPE(o)->tp_name, "'");
  Items items(o);
  for (Py_ssize_t i = 0; i < items.count; ++i) infer(items.at[i], found, depth + 1);
}

template <class T> T element(PyObject* o) {
  Scalar s;
  if (PyFloat_CheckExact(o))
    s = Scalar(PyFloat_AS_DOUBLE(o));
  else if (is_tensor(o)) {
    Tensor t = borrow(o);
    if (!holds_a_part(o) && t.numel() != 1)
      fail_value("tensor: only one element tensors can be converted to Python scalars; got ", t);
    note_leaving(t.get(), "tensor()");
    s = number_in(o);
  } else {
    bool known;
    try {
      known = scalar_from(o, s);
    } catch (const Error& e) {
      if (e.kind != ErrorKind::Overflow) throw;
      if constexpr (is_float_v<T> || is_complex_v<T>) {
        double v = PyLong_AsDouble(o);
        if (v == -1.0 && PyErr_Occurred()) throw PythonError();
        s = Scalar(v);
        known = true;
      } else {
        fail_value("tensor: Overflow when unpacking long long");
      }
    }
    if (!known) {
      if (is_sequence(o))
        fail_type("tensor: expected a number at this depth; got ", Py_TYPE(o)->tp_name);
      fail_no_dtype(o);
    }
  }
  if (s.is_complex() && !is_complex_v<T> && !std::is_same_v<T, bool>) {
    fail_type("tensor: must be real number, not complex");
  }
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using limits = std::numeric_limits<T>;
    if (s.is_big() && !std::is_same_v<T, uint64_t>)
      fail_value("tensor: Overflow when unpacking long long");
    double v = s.to_double();
    bool fits;
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (s.is_integral() && v < 0)
        fail(ErrorKind::Overflow, "tensor: can't convert negative int to unsigned");
      fits = v > -1.0 && (s.is_integral() || v < 18446744073709551616.0);
    } else {
      // A negative number down to -max becomes an unsigned one as in C.
      double low = std::is_signed_v<T> ? static_cast<double>(limits::min())
                                       : -static_cast<double>(limits::max());
      fits = v >= low && (s.is_integral() || v < static_cast<double>(limits::max()) + 1.0) &&
             v <= static_cast<double>(limits::max());
    }
    if (!fits)
      fail("tensor: value cannot be converted to type ", dtype_of<T>(), " without overflow; got ",
           v);
  }
  return s.to<T>();
}

template <class T> T* store(PyObject* o, const Dims& sizes, int dim, T* out) {
  if (dim == sizes.size()) {
    *out = element<T>(o);
    return out + 1;
  }
  if (!is_sequence(o))
    fail_type("tensor: not a sequence: expected one of length ", sizes[dim], " at dim ", dim);
  Items items(o);
  if (items.count != sizes[dim]) {
    fail_value("tensor: expected sequence of length ", sizes[dim], " at dim ", dim, " (got ",
               items.count, "); clew.nested.nested_tensor() takes rows of different lengths");
  }
  if (dim + 1 == sizes.size()) {
    for (Py_ssize_t i = 0; i < items.count; ++i) {
      PyObject* x = items.at[i];
      if constexpr (std::is_same_v<T, int64_t>) {
        if (PyLong_CheckExact(x)) {
          int overflow = 0;
          *out++ = PyLong_AsLongLongAndOverflow(x, &overflow);
          if (overflow) fail_value("tensor: Overflow when unpacking long long");
          continue;
        }
      }
      if constexpr (is_float_v<T>) {
        if (PyFloat_CheckExact(x)) {
          *out++ = static_cast<T>(static_cast<compute_t<T>>(PyFloat_AS_DOUBLE(x)));
          continue;
        }
      }
      *out++ = element<T>(x);
    }
    return out;
  }
  for (Py_ssize_t i = 0; i < items.count; ++i) out = store(items.at[i], sizes, dim + 1, out);
  return out;
}

// A list whose items cannot change its length while they are converted would be trusted; conversion
// of foreign objects runs Python code, so lists are copied first.
bool plain_items(PyObject* o, int depth) {
  if (depth > max_dims || !(PyList_Check(o) || PyTuple_Check(o))) return false;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  PyObject** items = PySequence_Fast_ITEMS(o);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* x = items[i];
    if (PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyBool_Check(x) || PyComplex_CheckExact(x))
      continue;
    if (!plain_items(x, depth + 1)) return false;
  }
  return true;
}
PyObject* frozen(PyObject* o, int depth) {
  if (depth > max_dims) fail_value("tensor: too many dimensions '", Py_TYPE(o)->tp_name, "'");
  if (!is_sequence(o)) {
    if (is_numpy_array(o)) {  // without dims: its number
      Ref none(checked(PyTuple_New(0)));
      return checked(PyObject_GetItem(o, none.get()));
    }
    Py_INCREF(o);
    return o;
  }
  Ref copy(items_of(o, "tensor"));
  Py_ssize_t n = PyTuple_GET_SIZE(copy.get());
  Ref out(checked(PyTuple_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyTuple_SET_ITEM(out.get(), i, frozen(PyTuple_GET_ITEM(copy.get(), i), depth + 1));
  }
  return out.release();
}

int nesting(PyObject* o, int depth) {
  if (depth > max_dims || !(PyList_Check(o) || PyTuple_Check(o)) ||
      PySequence_Fast_GET_SIZE(o) == 0)
    return depth;
  return nesting(PySequence_Fast_GET_ITEM(o, 0), depth + 1);
}

// A list or tuple of nothing but ints, or nothing but floats, which become what such numbers mostly
// become; undefined for all others.
Tensor tensor_from_numbers(PyObject* data, std::optional<DType> dtype) {
  if (!PyList_CheckExact(data) && !PyTuple_CheckExact(data)) return {};
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(data);
  PyObject** const items = PySequence_Fast_ITEMS(data);
  if (n == 0) return {};
  PyTypeObject* const type = Py_TYPE(items[0]);
  if (type != &PyLong_Type && type != &PyFloat_Type) return {};
  const DType d = dtype ? *dtype : type == &PyLong_Type ? DType::Int64 : default_dtype();
  if (d != (type == &PyLong_Type ? DType::Int64 : DType::Float32)) return {};
  for (Py_ssize_t i = 1; i < n; ++i)
    if (Py_TYPE(items[i]) != type) return {};
  Tensor out = empty({n}, d);
  if (d == DType::Float32) {
    auto* to = out.data<float>();
    for (Py_ssize_t i = 0; i < n; ++i) to[i] = static_cast<float>(PyFloat_AS_DOUBLE(items[i]));
    return out;
  }
  auto* to = out.data<int64_t>();
  int overflow = 0;
  for (Py_ssize_t i = 0; i < n && !overflow; ++i)
    to[i] = PyLong_AsLongLongAndOverflow(items[i], &overflow);
  if (overflow) fail_value("tensor: Overflow when unpacking long long");
  return out;
}

// The elements that a storage holds, whose bytes are no numbers; undefined for all other data.
Tensor tensor_from_storage(PyObject* data, std::optional<DType> dtype) {
  static PyObject* name = PyUnicode_InternFromString("_elements_as");  // of clew.storage
  if (PyList_Check(data) || PyTuple_Check(data) || !PyObject_HasAttr(data, name)) return {};
  const Ref wanted(dtype ? dtype_object(*dtype) : Py_NewRef(Py_None));
  const Ref made(checked(PyObject_CallMethodOneArg(data, name, wanted.get())));
  return is_tensor(made.get()) ? borrow(made.get()) : Tensor();
}

}  // namespace

Tensor tensor_from_sequence(PyObject* data, std::optional<DType> dtype) {
  if (Tensor out = tensor_from_numbers(data, dtype)) return out;
  if (Tensor out = tensor_from_storage(data, dtype)) return out;
  // A list that contains itself has no end; this finds that before anything recurses.
  if (nesting(data, 0) > max_dims)
    fail_value("tensor: too many dimensions '", Py_TYPE(data)->tp_name, "'");
  Py_INCREF(data);
  Ref own(is_sequence(data) && !plain_items(data, 0) ? frozen(Ref(data).get(), 0) : data);
  data = own.get();
  Dims sizes;
  add_shape(data, sizes);
  DType d;
  if (dtype) {
    d = *dtype;
  } else {
    Inferred found;
    infer(data, found, 0);
    d = found.any ? found.dtype : default_dtype();
  }
  Tensor out = empty(sizes, d);
  dispatch(d, EveryType{}, [&]<class T>() { store(data, sizes, 0, out.data<T>()); });
  return out;
}

}  // namespace clew::python

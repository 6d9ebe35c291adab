// Tensors to and from Python numbers, lists and NumPy arrays.
// May include: everything below python/.
// Invariant: an array and the tensor made from it share memory, and each keeps the other's owner
// alive.
#include "python/convert.h"

#include <algorithm>
#include <optional>

#include "graph/batch.h"
#include "graph/inplace.h"
#include "graph/trace.h"
#include "ops/calls/comparison.h"
#include "ops/calls/reduction.h"
#include "python/creation_docs.h"
#include "tensor/extent.h"

namespace clew::python {

namespace {

// ---- memory of a tensor as a Python buffer ----

struct BufferObj {
  PyObject_HEAD TensorObj* tensor;
  Py_ssize_t* shape;  // ndim sizes, then ndim strides in bytes
  ArrayOver over;
};
PyTypeObject* buffer_type = nullptr;

const char* format_of(DType d) {
  switch (d) {
    case DType::Bool: return "?";
    case DType::UInt8: return "B";
    case DType::UInt16: return "H";
    case DType::UInt32: return "I";
    case DType::UInt64: return sizeof(long) == 8 ? "L" : "Q";  // NumPy's own choice
    case DType::Int8: return "b";
    case DType::Int16: return "h";
    case DType::Int32: return "i";
    case DType::Int64: return sizeof(long) == 8 ? "l" : "q";
    case DType::Float16: return "e";
    case DType::Float32: return "f";
    case DType::Float64: return "d";
    case DType::Complex64: return "Zf";
    case DType::Complex128: return "Zd";
    case DType::BFloat16: return "H";  // lent as its bits: NumPy has no type for it
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0FNU:
    case DType::Complex32: break;  // lent as wider copies
  }
  return nullptr;
}

// Whether NumPy has no type for it.
bool unknown_to_numpy(DType d) { return d == DType::BFloat16 || is_stored(d); }

// PyTorch's name of such a type, which programs look for in the message.
std::string scalar_type(DType d) {
  if (d == DType::BFloat16) return "BFloat16";
  if (d == DType::Complex32) return "ComplexHalf";
  std::string text{name(d)};
  text[0] = 'F';
  return text;
}

int buffer_get(PyObject* self, Py_buffer* view, int flags) {
  auto* b = reinterpret_cast<BufferObj*>(self);
  TensorObj* t = b->tensor;
  if (!t->shape->contiguous && !(flags & PyBUF_STRIDES)) {
    PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous");
    view->obj = nullptr;
    return -1;
  }
  static char nothing;
  view->buf = t->address() ? t->address() : &nothing;
  view->obj = self;
  Py_INCREF(self);
  view->itemsize = static_cast<Py_ssize_t>(itemsize(t->dtype));
  view->len = t->shape->numel * view->itemsize;
  view->readonly = (t->flags & flag_conj) != 0;
  view->ndim = t->shape->sizes.size();
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of(t->dtype)) : nullptr;
  view->shape = b->shape;
  view->strides = b->shape + view->ndim;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}
void buffer_dealloc(PyObject* self) {
  auto* b = reinterpret_cast<BufferObj*>(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(b->tensor));
  delete[] b->shape;
  b->over.~ArrayOver();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* numpy_function(const char* name) {
  Ref numpy(checked(PyImport_ImportModule("numpy")));
  return checked(PyObject_GetAttrString(numpy.get(), name));
}

}  // namespace

std::optional<DType> numpy_scalar_dtype(PyObject* o) {
  const PyTypeObject* type = Py_TYPE(o);
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) || std::strncmp(type->tp_name, "numpy.", 6) != 0)
    return {};
  std::string_view given(type->tp_name + 6);
  if (given == "bool_") return DType::Bool;
  if (given == "longlong") return DType::Int64;
  if (given == "ulonglong") return DType::UInt64;
  for (int i = 0; i < num_dtypes; ++i) {
    auto d = static_cast<DType>(i);
    if (!unknown_to_numpy(d) && given == name(d)) return d;
  }
  return {};
}

PyObject* to_numpy(const Tensor& t, bool lend) {
  require_elements(t, "numpy()");
  if (t.is_meta()) fail_type("numpy: a meta tensor has no values; it can't be converted to numpy");
  if (unknown_to_numpy(t.dtype()) && !lend)
    fail_type("numpy: Got unsupported ScalarType ", scalar_type(t.dtype()), "; convert with ",
              t.is_complex() ? ".to(clew.complex64)" : ".float()", " first");
  static PyObject* asarray = numpy_function("asarray");
  auto* b = PyObject_New(BufferObj, buffer_type);
  if (!b) throw PythonError();
  b->tensor = nullptr;
  b->shape = nullptr;
  new (&b->over) ArrayOver();
  Ref owner(reinterpret_cast<PyObject*>(b));
  int n = t.ndim();
  b->shape = new Py_ssize_t[static_cast<size_t>(2 * n + 1)];
  for (int i = 0; i < n; ++i) {
    b->shape[i] = t.size(i);
    b->shape[n + i] = t.stride(i) * static_cast<int64_t>(itemsize(t.dtype()));
  }
  settle_before_write(t);  // first: a gathered view gets its base's storage then
  // An alias of its own: the tensor itself may be set to another storage later.
  b->tensor = alias(t).release();
  if (!lend) b->over = ArrayOver(t->storage);
  return checked(PyObject_CallOneArg(asarray, owner.get()));
}

namespace {

std::string array_type_name(PyObject* array) {
  Ref dtype(checked(PyObject_GetAttrString(array, "dtype")));
  Ref type(checked(PyObject_GetAttrString(dtype.get(), "type")));
  return PyType_Check(type.get()) ? reinterpret_cast<PyTypeObject*>(type.get())->tp_name : "object";
}
[[noreturn]] void fail_array_type(PyObject* array) {
  fail_type("from_numpy: can't convert np.ndarray of type ", array_type_name(array),
            ". The only supported types are: float64, float32, float16, complex64, complex128, "
            "int64, int32, "
            "int16, int8, uint64, uint32, uint16, uint8, and bool.");
}

DType dtype_from_format(const char* format, Py_ssize_t size, PyObject* array) {
  std::string_view f(format ? format : "B");
  if (!f.empty() && (f[0] == '@' || f[0] == '=' || f[0] == '<')) f.remove_prefix(1);
  if (!f.empty() && (f[0] == '>' || f[0] == '!') && size > 1 && f.size() <= 3) {
    fail_value(
        "from_numpy: the array has byte order different from the native one; convert it with "
        ".astype(dtype.newbyteorder('='))");
  }
  if (f == "?") return DType::Bool;
  if (f.size() == 1 && std::string_view("BHILQ").find(f[0]) != f.npos) {
    switch (size) {
      case 1: return DType::UInt8;
      case 2: return DType::UInt16;
      case 4: return DType::UInt32;
      default: return DType::UInt64;
    }
  }
  if (f.size() == 1 && std::string_view("bhilq").find(f[0]) != f.npos) {
    switch (size) {
      case 1: return DType::Int8;
      case 2: return DType::Int16;
      case 4: return DType::Int32;
      default: return DType::Int64;
    }
  }
  if (f == "e") return DType::Float16;
  if (f == "f") return DType::Float32;
  if (f == "d") return DType::Float64;
  if (f == "Zf") return DType::Complex64;
  if (f == "Zd") return DType::Complex128;
  fail_array_type(array);
}

void drop_owner(Storage* s) { decref_in_turn(static_cast<PyObject*>(s->owner)); }

struct View {
  Py_buffer b;
  bool open = false;
  ~View() {
    if (open) PyBuffer_Release(&b);
  }
};

// A tensor over the memory of `owner`, which it keeps alive.
Tensor over_memory(PyObject* owner, char* data, DType dtype, const Dims& sizes,
                   const Dims& strides) {
  const Checked bytes = span_of(sizes, strides) * byte_count(itemsize(dtype));
  require(bytes.fits && bytes.value >= 0, "from_numpy: shape ", sizes, " with strides ", strides,
          " reaches beyond what an int64 can count");
  Py_INCREF(owner);
  Storage* storage = Storage::wrap(data, static_cast<size_t>(bytes.value), owner, drop_owner);
  Tensor t = empty(Dims{0}, dtype);
  set_storage(t, storage, 0, sizes, strides);
  storage->decref();
  return t;
}

}  // namespace

Tensor from_numpy(PyObject* array, bool warn) {
  if (!is_numpy_array(array))
    fail_type("from_numpy: expected np.ndarray (got ", Py_TYPE(array)->tp_name, ")");
  View view;
  if (PyObject_GetBuffer(array, &view.b, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
    PyErr_Clear();
    fail_array_type(array);
  }
  view.open = true;
  const Py_buffer& b = view.b;
  DType d = dtype_from_format(b.format, b.itemsize, array);
  if (b.ndim > max_dims) fail("from_numpy: at most ", max_dims, " dims; got ", b.ndim);
  if (b.readonly && warn &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "from_numpy: the given NumPy array is not writable, and clew has no "
                   "non-writable tensors: writing to "
                   "this tensor is undefined behavior. Copy the array first, or protect its data "
                   "by not writing.",
                   1) < 0) {
    throw PythonError();
  }
  Dims sizes(b.ndim), strides(b.ndim);
  for (int i = 0; i < b.ndim; ++i) {
    sizes[i] = b.shape[i];
    int64_t s = b.strides[i];
    if (s < 0) {
      fail_value(
          "from_numpy: at least one stride in the given numpy array is negative, and tensors with "
          "negative "
          "strides are not supported; make a copy with array.copy()");
    }
    if (s % b.itemsize != 0 && b.shape[i] > 1) {
      fail_value(
          "from_numpy: the array's strides must be multiples of its element size; make a copy with "
          "array.copy()");
    }
    strides[i] = s / b.itemsize;
  }
  if (b.len > 0 &&
      reinterpret_cast<uintptr_t>(b.buf) % (is_complex(d) ? itemsize(d) / 2 : itemsize(d)) != 0) {
    fail_value(
        "from_numpy: the array's memory is not aligned to its element size; make a copy with "
        "array.copy()");
  }
  return over_memory(array, static_cast<char*>(b.buf), d, sizes, strides);
}

namespace {

template <class T> PyObject* number_object(T v) {
  if constexpr (std::is_same_v<T, bool>)
    return PyBool_FromLong(v);
  else if constexpr (is_complex_v<T>) {
    return PyComplex_FromDoubles(static_cast<double>(v.real()), static_cast<double>(v.imag()));
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return PyLong_FromUnsignedLongLong(v);
  } else if constexpr (std::is_integral_v<T>) {
    return PyLong_FromLongLong(v);
  } else {
    return PyFloat_FromDouble(static_cast<double>(static_cast<compute_t<T>>(v)));
  }
}

template <class T> PyObject* nested_list(const Tensor& t, int dim, const T* at) {
  if (dim == t.ndim()) return checked(number_object(*at));
  Ref list(checked(PyList_New(t.size(dim))));
  int64_t step = t.stride(dim);
  if (dim + 1 == t.ndim()) {
    for (int64_t i = 0, n = t.size(dim); i < n; ++i) {
      PyList_SET_ITEM(list.get(), i, checked(number_object(at[i * step])));
    }
    return list.release();
  }
  for (int64_t i = 0; i < t.size(dim); ++i) {
    PyList_SET_ITEM(list.get(), i, nested_list(t, dim + 1, at + i * step));
  }
  return list.release();
}

}  // namespace

PyObject* to_list(const Tensor& given) {
  if (given.is_meta()) fail(ErrorKind::NotImplemented, "tolist: a meta tensor has no values");
  // Making a list may run finalizers, which may set the tensor to other memory: this keeps the old.
  const Tensor t = alias(given);
  PyObject* out = nullptr;
  dispatch(t.dtype(), EveryType{}, [&]<class T>() { out = nested_list(t, 0, t.data<T>()); });
  return checked(out);
}

namespace {

// A fast path for few contiguous elements; a comparison and a reduction would take longer.
constexpr int64_t most_compared_here = 256;
template <class T> bool same_elements(const Tensor& a, const Tensor& b) {
  const T* p = a.data<T>();
  return std::equal(p, p + a.numel(), b.data<T>());
}
std::optional<bool> compared_here(const Tensor& a, const Tensor& b) {
  const auto plain = [](const Tensor& t) {
    return t.is_contiguous() && t->storage->is_ready() && !is_batched(t);
  };
  if (a.numel() > most_compared_here || a.dtype() != b.dtype() || modes.intercept || !plain(a) ||
      !plain(b))
    return {};
  switch (a.dtype()) {
    case DType::Float32: return same_elements<float>(a, b);
    case DType::Float64: return same_elements<double>(a, b);
    case DType::Int64: return same_elements<int64_t>(a, b);
    default: return {};
  }
}

// Whether two tensors have the same shape and elements.
PyObject* method_equals(PyObject* self, PyObject* given) {
  return guarded([&] {
    if (!is_tensor(given))
      fail_type("equal(): argument 'other' must be Tensor, not ", Py_TYPE(given)->tp_name);
    const Tensor a = borrow(self), b = borrow(given);
    if (a.sizes() != b.sizes()) return PyBool_FromLong(0);
    if (const std::optional<bool> same = compared_here(a, b)) return PyBool_FromLong(*same);
    return PyBool_FromLong(item(all(eq(a, b))).i != 0);
  });
}

PyObject* method_item(PyObject* self, PyObject*) {
  return guarded([&] {
    Tensor t = borrow(self);
    require_elements(t, ".item()");
    require(t.numel() == 1, "item: a Tensor with ", t.numel(),
            " elements cannot be converted to Scalar; tolist() gives them all");
    if (t.is_meta()) fail("item: cannot be called on meta tensors, which have no values");
    TraceSpan trace("item");
    const Scalar value = item(t);
    note_leaving(t.get(), "item()", value.is_float() ? value.re : 0);
    return scalar_object(value);
  });
}
PyObject* method_tolist(PyObject* self, PyObject*) {
  return guarded([&] {
    require_elements(borrow(self), "tolist()");
    note_leaving(reinterpret_cast<TensorObj*>(self), "tolist()");
    TraceSpan trace("tolist");
    return to_list(borrow(self));
  });
}

PyObject* array_of(PyObject* self) {
  Tensor t = borrow(self);
  require(!modes.grad || !t.requires_grad(),
          "numpy: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
          "instead.");
  note_leaving(t.get(), "numpy()");
  return to_numpy(t);
}
PyObject* method_numpy(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    bool force = false;
    Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
    if (nargs || keywords > 1) fail_type("numpy() takes only the keyword argument 'force'");
    if (keywords) {
      PyObject* key = PyTuple_GET_ITEM(names, 0);
      if (!is_named(key, "force")) {
        fail_type("numpy() got an unexpected keyword argument '", printable(key), "'");
      }
      force = truth_of(args[0]);
    }
    if (force) {
      note_leaving(reinterpret_cast<TensorObj*>(self), "numpy()");
      const Tensor t = borrow(self);
      return to_numpy(t->flags & flag_conj ? builtins.clone(detach(t)) : detach(t));
    }
    return array_of(self);
  });
}
PyObject* method_array_view(PyObject* self, PyObject*) {
  return guarded([&] {
    const Tensor t = borrow(self);
    if (!is_stored(t.dtype()) || t.is_meta()) return to_numpy(t, true);
    const Tensor wide = empty(t.sizes(), widened_dtype(t.dtype()));
    copy_into(wide, t);
    return to_numpy(wide, true);
  });
}
PyObject* method_array(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&]() -> PyObject* {
    PyObject* dtype = nargs > 0 ? args[0] : Py_None;
    PyObject* copy = nargs > 1 ? args[1] : Py_None;
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
      PyObject* key = PyTuple_GET_ITEM(names, k);
      if (is_named(key, "dtype"))
        dtype = args[nargs + k];
      else if (is_named(key, "copy"))
        copy = args[nargs + k];
      else
        fail_type("__array__() got an unexpected keyword argument '", printable(key), "'");
    }
    Ref array(array_of(self));
    if (dtype == Py_None && copy != Py_True) return array.release();
    if (copy == Py_False) {
      Ref now(checked(PyObject_GetAttrString(array.get(), "dtype")));
      static PyObject* make = numpy_function("dtype");
      Ref wanted(checked(PyObject_CallOneArg(make, dtype)));
      int same = PyObject_RichCompareBool(now.get(), wanted.get(), Py_EQ);
      if (same < 0) throw PythonError();
      if (!same) fail_value("__array__: the dtype cannot change without a copy");
      return array.release();
    }
    if (dtype == Py_None) return checked(PyObject_CallMethod(array.get(), "copy", nullptr));
    static PyObject* with_copy = numpy_function("array");
    static PyObject* without = numpy_function("asarray");
    return checked(PyObject_CallFunctionObjArgs(copy == Py_True ? with_copy : without, array.get(),
                                                dtype, nullptr));
  });
}
PyObject* method_array_wrap(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* array;
    PyObject* context = nullptr;
    PyObject* scalar = nullptr;
    if (!PyArg_ParseTuple(args, "O|OO:__array_wrap__", &array, &context, &scalar))
      throw PythonError();
    if (is_numpy_array(array)) return wrap_made(from_numpy(array, false));
    return wrap_made(tensor_from(array, {}, Device::CPU));
  });
}
PyObject* scalar_int(const Scalar& s) {
  return s.is_big() ? PyLong_FromUnsignedLongLong(s.u) : PyLong_FromLongLong(s.i);
}

Scalar only_item(PyObject* self) {
  Tensor t = borrow(self);
  if (t.numel() != 1)
    fail_value("only one element tensors can be converted to Python scalars; got ", t);
  return item(t);
}
PyObject* method_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    const c128 v = only_item(self).to<c128>();
    return PyComplex_FromDoubles(v.real(), v.imag());
  });
}

}  // namespace

PyObject* tensor_float(PyObject* self) {
  return guarded([&] {
    Scalar s = only_item(self);
    note_leaving(reinterpret_cast<TensorObj*>(self), "float()", s.is_float() ? s.re : 0);
    require(!s.is_complex() || s.im == 0,
            "float: a complex value cannot be converted to type double without overflow");
    return PyFloat_FromDouble(s.to_double());
  });
}
PyObject* tensor_int(PyObject* self) {
  return guarded([&] {
    Scalar s = only_item(self);
    require(!s.is_complex() || s.im == 0,
            "int: a complex value cannot be converted to type int64 without overflow");
    return s.is_integral() ? scalar_int(s) : PyLong_FromDouble(s.re);
  });
}
PyObject* tensor_index(PyObject* self) {
  return guarded([&] {
    Tensor t = borrow(self);
    if (t.numel() != 1 || !is_integral(t.dtype())) {
      fail_type("only integer tensors of a single element can be converted to an index; got ", t);
    }
    return scalar_int(item(t));
  });
}

void add_convert(PyObject* module) {
  static PyType_Slot slots[] = {
      slot(Py_bf_getbuffer, buffer_get), slot(Py_tp_dealloc, buffer_dealloc), {0, nullptr}};
  static PyType_Spec spec = {"clew._C.Buffer", sizeof(BufferObj), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  buffer_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  static PyMethodDef functions[] = {{"from_numpy",
                                     [](PyObject*, PyObject* array) {
                                       return guarded([&] {
                                         Tensor t = from_numpy(array);
                                         mark_made(t.get());
                                         return wrap_made(std::move(t));
                                       });
                                     },
                                     METH_O, docs::from_numpy},
                                    fast_method("from_dlpack", dlpack_import, docs::from_dlpack),
                                    {}};
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
  Ref priority(PyLong_FromLong(1000));
  if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__array_priority__",
                             priority.get()) < 0) {
    throw PythonError();
  }
}

namespace {
constexpr int method_room = 48;
}
// Filled before the Tensor type is made: this file's own methods, then creation's and random's.
PyMethodDef convert_methods[method_room] = {
    {"_equals", method_equals, METH_O,
     "_equals($self, other, /)\n--\n\n"
     "Whether two tensors have the same shape and elements."},
    {"item", method_item, METH_NOARGS,
     "item($self)\n--\n\n"
     R"(The value of a one-element tensor as a Python number.

>>> clew.tensor([2.5]).item()
2.5
)"},
    {"tolist", method_tolist, METH_NOARGS,
     "tolist($self)\n--\n\n"
     R"(The elements as nested lists of Python numbers.

>>> clew.ones(2, 2).tolist()
[[1.0, 1.0], [1.0, 1.0]]
)"},
    fast_method("numpy", method_numpy,
                "numpy($self, *, force=False)\n--\n\n"
                R"(A NumPy array that shares the tensor's memory.

Args:
    force: detach the tensor first where it has history.

>>> clew.arange(3).numpy()
array([0, 1, 2])
)"),
    {"_array_view", method_array_view, METH_NOARGS,
     "_array_view($self)\n--\n\n"
     "A NumPy array over the memory, or a wider copy where NumPy lacks the dtype."},
    fast_method("__array__", method_array, nullptr),
    {"__array_wrap__", method_array_wrap, METH_VARARGS, nullptr},
    {"__complex__", method_complex, METH_NOARGS, nullptr},
    fast_method("__dlpack__", dlpack_export, nullptr),
    {"__dlpack_device__", dlpack_device, METH_NOARGS, nullptr},
};

void gather_methods() {
  int at = 0;
  while (convert_methods[at].ml_name) ++at;
  for (auto list : {creation_methods(), random_methods()}) {
    for (const PyMethodDef& m : list) {
      if (at + 1 >= method_room) fail_internal("too many conversion methods");
      convert_methods[at++] = m;
    }
  }
}

}  // namespace clew::python

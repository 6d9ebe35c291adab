// The small Python types: dtype, device, Size.
// May include: everything below python/.
// Invariant: there is one dtype object per DType and one device object per kind of device that has
// no index.
#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "graph/promotion.h"
#include "python/arguments.h"
#include "python/bridge.h"

namespace clew::python {

PyTypeObject* size_type = nullptr;
PyTypeObject* dtype_type = nullptr;
PyTypeObject* device_type = nullptr;
PyObject* out_of_memory_error = nullptr;

namespace {

// Kinds of numbers that programs name and compare; there are no tensors of them.
struct AbsentDType {
  const char* name;
  uint8_t itemsize;
  bool floating, complex, is_signed;
};
constexpr AbsentDType absent_dtypes[] = {{"float4_e2m1fn_x2", 1, true, false, true},
                                         {"qint8", 1, false, false, true},
                                         {"quint8", 1, false, false, false},
                                         {"qint32", 4, false, false, true},
                                         {"quint4x2", 1, false, false, false},
                                         {"quint2x4", 1, false, false, false},
                                         {"int1", 1, false, false, true},
                                         {"int2", 1, false, false, true},
                                         {"int3", 1, false, false, true},
                                         {"int4", 1, false, false, true},
                                         {"int5", 1, false, false, true},
                                         {"int6", 1, false, false, true},
                                         {"int7", 1, false, false, true},
                                         {"uint1", 1, false, false, false},
                                         {"uint2", 1, false, false, false},
                                         {"uint3", 1, false, false, false},
                                         {"uint4", 1, false, false, false},
                                         {"uint5", 1, false, false, false},
                                         {"uint6", 1, false, false, false},
                                         {"uint7", 1, false, false, false},
                                         {"bits8", 1, false, false, false},
                                         {"bits16", 2, false, false, false},
                                         {"bits1x8", 1, false, false, false},
                                         {"bits2x4", 1, false, false, false},
                                         {"bits4x2", 1, false, false, false}};
struct DTypeObj {
  PyObject_HEAD DType dtype;
  const AbsentDType* absent;  // null for dtypes that tensors have
};
// Tensors' devices have no index. A device object that a program made may have one and prints it.
constexpr int no_index = -1;
constexpr int most_devices = 127;
// Kinds of devices that programs name and compare without having one.
constexpr std::array<const char*, 18> absent_kinds = {
    "cuda", "mps",  "xpu",    "hip", "xla",    "hpu",    "mtia",  "ipu",    "lazy",
    "maia", "fpga", "vulkan", "ve",  "opengl", "opencl", "ideep", "mkldnn", "privateuseone"};
struct DeviceObj {
  PyObject_HEAD Device device;
  int index;
  const char* absent;  // one of absent_kinds: a name alone, nothing lies there; else null
};
// The entry of absent_kinds for the part of a text before its colon; null where it is none.
const char* absent_kind(const std::string& text) {
  const std::string kind = text.substr(0, text.find(':'));
  for (const char* known : absent_kinds)
    if (kind == known) return known;
  return nullptr;
}
PyObject* dtype_objects[num_dtypes];
PyObject* device_objects[2];

const AbsentDType* absent_dtype(PyObject* o) { return reinterpret_cast<DTypeObj*>(o)->absent; }
DType dtype_in(PyObject* o) {
  if (const AbsentDType* absent = absent_dtype(o))
    fail(ErrorKind::NotImplemented, "dtype: clew has no tensors of ", absent->name,
         "; only its name is known");
  return reinterpret_cast<DTypeObj*>(o)->dtype;
}
const char* dtype_name_of(PyObject* o) {
  return absent_dtype(o) ? absent_dtype(o)->name : name(dtype_in(o));
}

PyObject* dtype_repr(PyObject* o) { return PyUnicode_FromFormat("clew.%s", dtype_name_of(o)); }
PyObject* dtype_reduce(PyObject* o, PyObject*) { return PyUnicode_FromString(dtype_name_of(o)); }
PyObject* dtype_is_floating(PyObject* o, void*) {
  return PyBool_FromLong(absent_dtype(o) ? absent_dtype(o)->floating : is_floating(dtype_in(o)));
}
PyObject* dtype_is_complex(PyObject* o, void*) {
  return PyBool_FromLong(absent_dtype(o) ? absent_dtype(o)->complex : is_complex(dtype_in(o)));
}
PyObject* dtype_is_signed(PyObject* o, void*) {
  if (absent_dtype(o)) return PyBool_FromLong(absent_dtype(o)->is_signed);
  return PyBool_FromLong(!is_unsigned(dtype_in(o)) && dtype_in(o) != DType::Bool &&
                         dtype_in(o) != DType::Float8E8M0FNU);
}
PyObject* dtype_itemsize(PyObject* o, void*) {
  return PyLong_FromSize_t(absent_dtype(o) ? absent_dtype(o)->itemsize : itemsize(dtype_in(o)));
}
PyObject* dtype_name(PyObject* o, void*) { return PyUnicode_FromString(dtype_name_of(o)); }
PyObject* dtype_to_complex(PyObject* o, PyObject*) {
  return guarded([&] { return dtype_object(complex_of(dtype_in(o))); });
}
PyObject* dtype_to_real(PyObject* o, PyObject*) {
  return guarded([&] { return dtype_object(real_of(dtype_in(o))); });
}

PyGetSetDef dtype_getset[] = {
    {"is_floating_point", dtype_is_floating, nullptr,
     "Whether the numbers are floating point ones.", nullptr},
    {"is_complex", dtype_is_complex, nullptr, "Whether the numbers are complex.", nullptr},
    {"is_signed", dtype_is_signed, nullptr, "Whether there are negative numbers.", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "The bytes of one element.", nullptr},
    {"name", dtype_name, nullptr, "The name without the package's.", nullptr},
    {}};
PyMethodDef dtype_methods[] = {{"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
                               {"to_complex", dtype_to_complex, METH_NOARGS,
                                "to_complex($self)\n--\n\n"
                                "The complex dtype whose parts have this dtype."},
                               {"to_real", dtype_to_real, METH_NOARGS,
                                "to_real($self)\n--\n\n"
                                "The dtype of the parts of this complex dtype."},
                               {}};

Device device_of(PyObject* o) { return reinterpret_cast<DeviceObj*>(o)->device; }
int index_of(PyObject* o) { return reinterpret_cast<DeviceObj*>(o)->index; }
const char* absent_of(PyObject* o) { return reinterpret_cast<DeviceObj*>(o)->absent; }
const char* kind_of(PyObject* o) { return absent_of(o) ? absent_of(o) : name(device_of(o)); }
PyObject* device_repr(PyObject* o) {
  const char* type = kind_of(o);
  return index_of(o) == no_index
             ? PyUnicode_FromFormat("device(type='%s')", type)
             : PyUnicode_FromFormat("device(type='%s', index=%d)", type, index_of(o));
}
PyObject* device_str(PyObject* o) {
  const char* type = kind_of(o);
  return index_of(o) == no_index ? PyUnicode_FromString(type)
                                 : PyUnicode_FromFormat("%s:%d", type, index_of(o));
}
PyObject* device_get_type(PyObject* o, void*) { return PyUnicode_FromString(kind_of(o)); }
PyObject* device_get_index(PyObject* o, void*) {
  if (index_of(o) == no_index) Py_RETURN_NONE;
  return PyLong_FromLong(index_of(o));
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || Py_TYPE(b) != device_type) Py_RETURN_NOTIMPLEMENTED;
  const bool equal =
      device_of(a) == device_of(b) && index_of(a) == index_of(b) && absent_of(a) == absent_of(b);
  return PyBool_FromLong(equal == (op == Py_EQ));
}
Py_hash_t device_hash(PyObject* o) {
  const auto* kind = std::find(absent_kinds.begin(), absent_kinds.end(), absent_of(o));
  const auto number = absent_of(o) ? 2 + (kind - absent_kinds.begin())
                                   : static_cast<std::ptrdiff_t>(device_of(o).kind());
  return static_cast<Py_hash_t>(number * 1000 + index_of(o) + 2);
}
PyObject* device_reduce(PyObject* o, PyObject*) {
  const char* type = kind_of(o);
  auto* cls = reinterpret_cast<PyObject*>(device_type);
  return index_of(o) == no_index ? Py_BuildValue("O(s)", cls, type)
                                 : Py_BuildValue("O(si)", cls, type, index_of(o));
}
// Devices without an index are one object each.
PyObject* device_with_index(Device d, int index, const char* absent) {
  if (index == no_index && !absent) return device_object(d);
  auto* o = PyObject_New(DeviceObj, device_type);
  if (!o) throw PythonError();
  o->device = d;
  o->index = index;
  o->absent = absent;
  return reinterpret_cast<PyObject*>(o);
}
// The number behind the colon of "cpu:0"; none without a colon.
int index_in(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return no_index;
  int index = no_index;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, index);
  if (error != std::errc() || rest != end || index < 0 || index > most_devices ||
      (text.size() > colon + 2 && text[colon + 1] == '0'))
    fail("device: Invalid device string: '", text,
         "'; expected a type and perhaps an index from 0 to ", most_devices,
         ", such as 'cpu' or 'cpu:0'");
  return index;
}
PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"type", "index", nullptr};
    PyObject* type = nullptr;
    PyObject* index = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type,
                                     &index))
      return nullptr;
    const char* absent = Py_TYPE(type) == device_type ? absent_of(type)
                         : PyUnicode_Check(type)      ? absent_kind(printable(type))
                                                      : nullptr;
    auto d = absent ? Device::CPU : device_from(type);
    if (!d)
      fail_type("device: type must be a str such as 'cpu' or a device; got ",
                Py_TYPE(type)->tp_name);
    const int own = Py_TYPE(type) == device_type ? index_of(type) : index_in(printable(type));
    if (!index || index == Py_None) return device_with_index(*d, own, absent);
    if (Py_TYPE(type) == device_type || own != no_index)
      fail("device: the type must not have an index of its own where one is given; got '",
           printable(type), "'");
    if (!is_int(index)) fail_type("device: index must be an int; got ", Py_TYPE(index)->tp_name);
    const int64_t given = int_from(index);
    require(given >= 0 && given <= most_devices, "device: index must lie between 0 and ",
            most_devices, "; got ", given);
    return device_with_index(*d, static_cast<int>(given), absent);
  });
}
PyGetSetDef device_getset[] = {
    {"type", device_get_type, nullptr, "The kind of device, as a str.", nullptr},
    {"index", device_get_index, nullptr, "Which device of its kind, or None.", nullptr},
    {}};
// `with device:` makes it the device of new tensors.
thread_local std::vector<Device> devices_before;
PyObject* device_enter(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    const std::optional<Device> entered = device_from(o);  // raises where there is none
    devices_before.push_back(default_device());
    set_default_device(*entered);
    return Py_NewRef(o);
  });
}
PyObject* device_exit(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    require(!devices_before.empty(), "device: left more often than entered");
    set_default_device(devices_before.back());
    devices_before.pop_back();
    Py_RETURN_NONE;
  });
}
constexpr const char* device_doc =
    "device(type, index=None)\n--\n\n"
    R"(Where a tensor's bytes lie: 'cpu', or 'meta' for tensors that have none.

Args:
    type: the kind of device, alone or with an index ('cpu:0'), or another device.
    index: which device of its kind.

>>> clew.device("cpu"), clew.device("cpu", 0)
(device(type='cpu'), device(type='cpu', index=0))
)";
PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                {"__enter__", device_enter, METH_NOARGS, nullptr},
                                {"__exit__", device_exit, METH_VARARGS, nullptr},
                                {}};

// A Size of n items, still to be set; null with an error.
PyObject* new_size(Py_ssize_t n) {
  PyObject* out = size_type->tp_alloc(size_type, n);
#if PY_VERSION_HEX >= 0x030e0000                                 // where tuples keep their hash
  if (out) reinterpret_cast<PyTupleObject*>(out)->ob_hash = -1;  // not known yet
#endif
  return out;
}
PyObject* size_repr(PyObject* o) {
  Ref list(PySequence_List(o));
  if (!list) return nullptr;
  return PyUnicode_FromFormat("clew.Size(%R)", list.get());
}
PyObject* size_numel(PyObject* o, PyObject*) {
  return guarded([&] { return PyLong_FromLongLong(numel_of(ints_from(o))); });
}
PyObject* size_from_iterable(PyObject* tuple) {
  Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* out = new_size(n);
  if (!out) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* x = PyTuple_GET_ITEM(tuple, i);
    PyObject* as_int = PyNumber_Index(x);
    if (!as_int) {
      Py_DECREF(out);
      return nullptr;
    }
    PyTuple_SET_ITEM(out, i, as_int);
  }
  return out;
}
PyObject* size_new(PyTypeObject*, PyObject* args, PyObject*) {
  PyObject* items = nullptr;
  if (!PyArg_ParseTuple(args, "|O:Size", &items)) return nullptr;
  return guarded([&] {
    Ref tuple(!items                    ? checked(PyTuple_New(0))
              : PySequence_Check(items) ? items_of(items, "Size")
                                        : checked(PySequence_Tuple(items)));
    return size_from_iterable(tuple.get());
  });
}
PyObject* size_subscript(PyObject* o, PyObject* key) {
  PyObject* got = PyTuple_Type.tp_as_mapping->mp_subscript(o, key);
  if (!got || !PySlice_Check(key)) return got;
  Ref plain(got);
  return size_from_iterable(plain.get());
}
PyObject* size_concat(PyObject* a, PyObject* b) {
  PyObject* got = PyTuple_Type.tp_as_sequence->sq_concat(a, b);
  if (!got) return got;
  Ref plain(got);
  PyObject* out = size_from_iterable(plain.get());
  if (!out) PyErr_Clear(), out = plain.release();
  return out;
}
PyObject* size_repeat(PyObject* o, Py_ssize_t times) {
  PyObject* got = PyTuple_Type.tp_as_sequence->sq_repeat(o, times);
  if (!got) return got;
  Ref plain(got);
  return size_from_iterable(plain.get());
}
// As nb_add this also handles (3,) + size.
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return size_concat(a, b);
}
PyObject* size_reduce(PyObject* o, PyObject*) {
  Ref tuple(PyTuple_New(PyTuple_GET_SIZE(o)));
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    Py_INCREF(PyTuple_GET_ITEM(o, i));
    PyTuple_SET_ITEM(tuple.get(), i, PyTuple_GET_ITEM(o, i));
  }
  return Py_BuildValue("O(O)", reinterpret_cast<PyObject*>(size_type), tuple.get());
}
PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS,
                               "numel($self)\n--\n\n"
                               "Number of elements of a tensor of this size."},
                              {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                              {}};

PyTypeObject* make_type(PyType_Spec& spec, PyObject* bases = nullptr) {
  return reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases)));
}

}  // namespace

PyObject* dtype_object(DType d) {
  PyObject* o = dtype_objects[static_cast<int>(d)];
  Py_INCREF(o);
  return o;
}
PyObject* device_object(Device d) {
  PyObject* o = device_objects[static_cast<int>(d.kind())];
  Py_INCREF(o);
  return o;
}
bool is_dtype(PyObject* o) {
  return Py_TYPE(o) == dtype_type || o == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
         o == reinterpret_cast<PyObject*>(&PyLong_Type) ||
         o == reinterpret_cast<PyObject*>(&PyBool_Type) ||
         o == reinterpret_cast<PyObject*>(&PyComplex_Type);
}
DType dtype_from(PyObject* o) {
  if (Py_TYPE(o) == dtype_type) return dtype_in(o);
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::Float64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::Int64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::Bool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::Complex128;
  fail_type("dtype must be a clew.dtype, such as clew.float32; got ", Py_TYPE(o)->tp_name);
}

std::optional<Device> device_from(PyObject* o) {
  if (Py_TYPE(o) == device_type && !absent_of(o)) return device_of(o);
  if (Py_TYPE(o) != device_type && !PyUnicode_Check(o)) return std::nullopt;
  Ref spelled(checked(PyObject_Str(o)));
  const std::string text = printable(spelled.get());
  const std::string type = text.substr(0, text.find(':'));
  if (type == "cpu" || type == "meta") index_in(text);  // raises where it is none
  if (type == "cpu") return Device::CPU;
  if (type == "meta") return Device::Meta;
  if (absent_kind(type))
    fail("device: clew runs on the CPU here; there is no '", text,
         "' device (devices: 'cpu', 'meta')");
  fail("device: expected one of 'cpu', 'meta'; got '", text, "'");
}

PyObject* size_object(const Dims& d) {
  PyObject* out = new_size(d.size());
  if (!out) throw PythonError();
  for (int i = 0; i < d.size(); ++i) PyTuple_SET_ITEM(out, i, PyLong_FromLongLong(d[i]));
  return out;
}

PyObject* size_object(Shape* shape) {
  if (!shape->size_object) {
    // Kept alive: the allocation may run a finalizer that gives the tensor another shape or needs
    // the same object.
    const ShapeRef keep = ShapeRef::borrow(shape);
    Ref made(size_object(shape->sizes));
    if (!shape->size_object) shape->size_object = made.release();
    return Py_NewRef(shape->size_object);
  }
  return Py_NewRef(shape->size_object);
}

constexpr const char* dtype_doc = R"(The type of a tensor's elements, such as clew.float32.

>>> isinstance(clew.float32, clew.dtype), clew.float32.itemsize
(True, 4)
)";
constexpr const char* size_doc = R"(The sizes of a tensor's dims: a tuple of ints.

>>> clew.Size([2, 3]).numel()
6
)";

void add_types(PyObject* module) {
  static PyType_Slot dtype_slots[] = {slot(Py_tp_repr, dtype_repr),
                                      slot(Py_tp_getset, dtype_getset),
                                      slot(Py_tp_methods, dtype_methods),
                                      slot(Py_tp_doc, dtype_doc),
                                      {0, nullptr}};
  static PyType_Spec dtype_spec = {"clew.dtype", sizeof(DTypeObj), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   dtype_slots};
  dtype_type = make_type(dtype_spec);
  for (int i = 0; i < num_dtypes; ++i) {
    auto* o = PyObject_New(DTypeObj, dtype_type);
    if (!o) throw PythonError();
    o->dtype = static_cast<DType>(i);
    o->absent = nullptr;
    dtype_objects[i] = reinterpret_cast<PyObject*>(o);
    PyModule_AddObjectRef(module, name(o->dtype), dtype_objects[i]);
  }
  for (const AbsentDType& absent : absent_dtypes) {
    auto* o = PyObject_New(DTypeObj, dtype_type);
    if (!o) throw PythonError();
    o->dtype = DType::UInt8;
    o->absent = &absent;
    Ref owned(reinterpret_cast<PyObject*>(o));
    PyModule_AddObjectRef(module, absent.name, owned.get());
  }
  static PyType_Slot device_slots[] = {slot(Py_tp_repr, device_repr),
                                       slot(Py_tp_str, device_str),
                                       slot(Py_tp_new, device_new),
                                       slot(Py_tp_richcompare, device_compare),
                                       slot(Py_tp_hash, device_hash),
                                       slot(Py_tp_getset, device_getset),
                                       slot(Py_tp_methods, device_methods),
                                       slot(Py_tp_doc, device_doc),
                                       {0, nullptr}};
  static PyType_Spec device_spec = {"clew.device", sizeof(DeviceObj), 0, Py_TPFLAGS_DEFAULT,
                                    device_slots};
  device_type = make_type(device_spec);
  for (int i = 0; i < 2; ++i) {
    auto* o = PyObject_New(DeviceObj, device_type);
    if (!o) throw PythonError();
    o->device = Device(static_cast<DeviceKind>(i));
    o->index = no_index;
    o->absent = nullptr;
    device_objects[i] = reinterpret_cast<PyObject*>(o);
  }
  static PyType_Slot size_slots[] = {slot(Py_tp_repr, size_repr),
                                     slot(Py_tp_new, size_new),
                                     slot(Py_tp_methods, size_methods),
                                     slot(Py_tp_doc, size_doc),
                                     slot(Py_mp_subscript, size_subscript),
                                     slot(Py_sq_concat, size_concat),
                                     slot(Py_sq_repeat, size_repeat),
                                     slot(Py_nb_add, size_add),
                                     {0, nullptr}};
  static PyType_Spec size_spec = {"clew.Size", 0, 0, Py_TPFLAGS_DEFAULT, size_slots};
  Ref bases(PyTuple_Pack(1, &PyTuple_Type));
  size_type = make_type(size_spec, bases.get());
  PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(dtype_type));
  PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(device_type));
  PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(size_type));
  Ref errors(PyTuple_Pack(2, PyExc_RuntimeError, PyExc_MemoryError));
  out_of_memory_error = checked(PyErr_NewExceptionWithDoc(
      "clew.OutOfMemoryError", "Raised when memory for a tensor cannot be had.", errors.get(),
      nullptr));
  PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory_error);
}

}  // namespace clew::python

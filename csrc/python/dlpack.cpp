// DLPack both ways: tensors lent to other libraries and theirs lent to us, without copying.
// May include: everything below python/.
// Invariant: a capsule is consumed at most once; its deleter runs exactly once.
#include "graph/inplace.h"
#include "python/arguments.h"
#include "python/convert.h"
#include "tensor/extent.h"

namespace clew::python {

namespace {

// The structures of the DLPack 1.0 ABI.
struct DLDevice {
  int32_t type;
  int32_t id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManaged {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManaged*);
};
struct DLVersioned {
  struct {
    uint32_t major;
    uint32_t minor;
  } version;
  void* context;
  void (*deleter)(DLVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
constexpr int32_t dl_cpu = 1;
constexpr uint64_t flag_read_only = 1, flag_copied = 2;
enum : uint8_t {
  code_int = 0,
  code_uint = 1,
  code_float = 2,
  code_bfloat = 4,
  code_complex = 5,
  code_bool = 6,
  code_float8_e4m3fn = 10,
  code_float8_e4m3fnuz = 11,
  code_float8_e5m2 = 12,
  code_float8_e5m2fnuz = 13,
  code_float8_e8m0fnu = 14
};

DLDataType dl_type(DType d) {
  uint8_t code = code_float;
  if (d == DType::Bool)
    code = code_bool;
  else if (is_unsigned(d))
    code = code_uint;
  else if (is_integral(d))
    code = code_int;
  else if (d == DType::BFloat16)
    code = code_bfloat;
  else if (is_complex(d))
    code = code_complex;
  else if (is_float8(d))
    code = d == DType::Float8E4M3FN     ? code_float8_e4m3fn
           : d == DType::Float8E4M3FNUZ ? code_float8_e4m3fnuz
           : d == DType::Float8E5M2     ? code_float8_e5m2
           : d == DType::Float8E5M2FNUZ ? code_float8_e5m2fnuz
                                        : code_float8_e8m0fnu;
  return {code, static_cast<uint8_t>(8 * itemsize(d)), 1};
}
DType from_dl(const DLDataType& t) {
  for (int i = 0; i < num_dtypes; ++i) {
    DLDataType known = dl_type(static_cast<DType>(i));
    if (known.code == t.code && known.bits == t.bits && t.lanes == 1) return static_cast<DType>(i);
  }
  fail("from_dlpack: there is no dtype for DLPack type code ", int{t.code}, " with ", int{t.bits},
       " bits and ", t.lanes, " lanes");
}

// What an exported capsule points at: the structure, its shape and strides, and the tensor it keeps
// alive.
template <class M> struct Export {
  M managed{};
  Dims shape, strides;
  Tensor tensor;
  ArrayOver over;
};
template <class M> void delete_export(M* m) {
  // May be called from any thread, by the consumer of the capsule.
  PyGILState_STATE state = PyGILState_Ensure();
  delete static_cast<Export<M>*>(m->context);
  PyGILState_Release(state);
}
template <class M> Export<M>* make_export(const Tensor& t) {
  require_elements(t, "__dlpack__()");
  settle_before_write(t);
  auto* e = new Export<M>();
  e->over = ArrayOver(t->storage);
  e->shape = t.sizes();
  e->strides = t.strides();
  e->tensor = t;
  e->managed.tensor = {t->address(),    {dl_cpu, 0},       t.ndim(), dl_type(t.dtype()),
                       e->shape.data(), e->strides.data(), 0};
  e->managed.context = e;
  e->managed.deleter = delete_export<M>;
  return e;
}

constexpr const char* name_plain = "dltensor";
constexpr const char* name_versioned = "dltensor_versioned";

template <class M> void drop_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;  // the capsule was consumed
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (m && m->deleter) m->deleter(m);
}

template <class M> void release_import(Storage* s) {
  release_in_turn(
      [](void* owner) {
        auto* m = static_cast<M*>(owner);
        if (m->deleter) m->deleter(m);
      },
      s->owner);
}

template <class M> Tensor import(PyObject* capsule, const char* name, const char* used) {
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (!m) throw PythonError();
  const DLTensor& d = m->tensor;
  require(d.device.type == dl_cpu, "from_dlpack: the memory must be on the CPU; got device type ",
          d.device.type);
  require(d.ndim >= 0 && d.ndim <= max_dims, "from_dlpack: at most ", max_dims, " dims; got ",
          d.ndim);
  DType dtype = from_dl(d.dtype);
  Dims sizes(d.shape, d.ndim);
  for (int64_t s : sizes) require(s >= 0, "from_dlpack: sizes must not be negative; got ", sizes);
  Dims strides = d.strides ? Dims(d.strides, d.ndim) : contiguous_strides(sizes);
  const int64_t numel = numel_of(sizes);
  for (int i = 0; i < d.ndim; ++i) {
    require(strides[i] >= 0 || sizes[i] <= 1, "from_dlpack: strides must not be negative; got ",
            strides);
    if (strides[i] < 0) strides[i] = 1;
  }
  const Checked reach = span_of(sizes, strides);
  require((reach * byte_count(itemsize(dtype))).fits, "from_dlpack: shape ", sizes,
          " with strides ", strides, " reaches beyond what an int64 can count");
  const int64_t span = numel == 0 ? 0 : reach.value;
  char* data = static_cast<char*>(d.data) + d.byte_offset;
  if (span > 0) {
    size_t align = is_complex(dtype) ? itemsize(dtype) / 2 : itemsize(dtype);
    require(reinterpret_cast<uintptr_t>(data) % align == 0,
            "from_dlpack: the memory is not aligned to its element size");
  }
  if (PyCapsule_SetName(capsule, used) < 0) throw PythonError();
  Storage* storage =
      Storage::wrap(data, static_cast<size_t>(span) * itemsize(dtype), m, release_import<M>);
  Tensor t = empty(Dims{0}, dtype);
  set_storage(t, storage, 0, sizes, strides);
  storage->decref();
  return t;
}

Tensor import_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, name_versioned)) {
    auto* m = static_cast<DLVersioned*>(PyCapsule_GetPointer(capsule, name_versioned));
    require(m->version.major == 1, "from_dlpack: DLPack version 1 is spoken here; got ",
            m->version.major, ".", m->version.minor);
    return import <DLVersioned>(capsule, name_versioned, "used_dltensor_versioned");
  }
  if (PyCapsule_IsValid(capsule, name_plain))
    return import <DLManaged>(capsule, name_plain, "used_dltensor");
  fail(
      "from_dlpack: the capsule must be an unused DLPack one; a capsule can be consumed only once");
}

bool wants_versioned(PyObject* max_version) {
  if (!max_version || max_version == Py_None) return false;
  if (!PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) != 2 ||
      !is_int(PyTuple_GET_ITEM(max_version, 0))) {
    fail_type("__dlpack__: max_version must be a tuple (major, minor)");
  }
  return int_from(PyTuple_GET_ITEM(max_version, 0)) >= 1;
}

void require_cpu(const char* fn, PyObject* device) {
  if (!device || device == Py_None) return;
  bool ok = PyTuple_Check(device) && PyTuple_GET_SIZE(device) == 2 &&
            is_int(PyTuple_GET_ITEM(device, 0)) && int_from(PyTuple_GET_ITEM(device, 0)) == dl_cpu;
  if (!ok && !PyTuple_Check(device)) {
    auto d = device_from(device);
    ok = d && *d == Device::CPU;
  }
  if (!ok) fail(ErrorKind::Buffer, fn, ": the device must be the CPU, (1, 0)");
}

}  // namespace

PyObject* dlpack_export(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                        PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* names[] = {"stream", "max_version", "dl_device", "copy"};
    Arguments a("__dlpack__", names, -1, 0, args, nargs, kwnames);
    Tensor t = borrow(self);
    if (t.requires_grad()) {
      fail(ErrorKind::Buffer,
           "__dlpack__: Can't export tensors that require gradient, use tensor.detach()");
    }
    if (t->flags & flag_conj)
      fail(ErrorKind::Buffer,
           "__dlpack__: Can't export what conj() gave, which cannot be written to; export its "
           "resolve_conj()");
    if (t.is_meta()) fail(ErrorKind::Buffer, "__dlpack__: a meta tensor has no memory to export");
    if (a.has(0) && !(is_int(a.value[0]) && int_from(a.value[0]) == -1)) {
      fail(ErrorKind::Buffer, "__dlpack__: the CPU has no streams; stream must be None");
    }
    require_cpu("__dlpack__", a.value[2]);
    bool copy = a.boolean_or(3, "copy", false);
    t = copy ? dense_copy(t) : detach(t);
    if (wants_versioned(a.value[1])) {
      auto* e = make_export<DLVersioned>(t);
      e->managed.version = {1, 0};
      e->managed.flags = copy ? flag_copied : 0;
      return PyCapsule_New(&e->managed, name_versioned,
                           [](PyObject* c) { drop_capsule<DLVersioned>(c, name_versioned); });
    }
    auto* e = make_export<DLManaged>(t);
    return PyCapsule_New(&e->managed, name_plain,
                         [](PyObject* c) { drop_capsule<DLManaged>(c, name_plain); });
  });
}

PyObject* dlpack_device(PyObject* self, PyObject*) {
  return guarded([&] {
    if (borrow(self).is_meta())
      fail_value("__dlpack_device__: the meta device is unknown to DLPack");
    return Py_BuildValue("(ii)", dl_cpu, 0);
  });
}

PyObject* dlpack_import(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* names[] = {"ext_tensor", "device", "copy"};
    Arguments a("from_dlpack", names, -1, 0, args, nargs, kwnames);
    PyObject* source = a.need(0, "ext_tensor");
    require_cpu("from_dlpack", a.value[1]);
    Tensor t;
    if (PyCapsule_CheckExact(source)) {
      t = import_capsule(source);
    } else {
      if (!PyObject_HasAttrString(source, "__dlpack__")) {
        fail_type("from_dlpack: expected an object with __dlpack__ or a DLPack capsule; got ",
                  Py_TYPE(source)->tp_name);
      }
      if (PyObject_HasAttrString(source, "__dlpack_device__")) {
        Ref device(checked(PyObject_CallMethod(source, "__dlpack_device__", nullptr)));
        require_cpu("from_dlpack", device.get());
      }
      Ref method(checked(PyObject_GetAttrString(source, "__dlpack__")));
      Ref none(checked(PyTuple_New(0)));
      Ref keywords(checked(Py_BuildValue("{s:(ii)}", "max_version", 1, 0)));
      PyObject* capsule = PyObject_Call(method.get(), none.get(), keywords.get());
      if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        // Producers from before DLPack 1.0 do not know the argument.
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method.get());
      }
      Ref owned(checked(capsule));
      t = import_capsule(owned.get());
    }
    if (a.boolean_or(2, "copy", false)) t = dense_copy(t);
    return wrap_made(std::move(t));
  });
}

}  // namespace clew::python

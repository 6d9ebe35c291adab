// Creation functions that take data: numbers, sequences, arrays, buffers, tensors.
// May include: everything below python/.
// Invariant: all arguments are read and checked before memory is allocated.
#include <memory>

#include "graph/batch.h"
#include "graph/inplace.h"
#include "python/arguments.h"
#include "python/convert.h"
#include "python/creation_docs.h"

namespace clew::python {

namespace {

using Args = PyObject* const*;

// ---- from data ----

// Notes where numbers became a tensor: what they were computed from is out of sight.
Tensor made_here(Tensor t) {
  if (!t->cut) mark_made(t.get());
  return t;
}

// The device of a tensor that is made from another one.
Device wanted_device(const Tensor& of) {
  return default_device() == Device::CPU ? of.device() : default_device();
}

PyObject* tensor(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"data"};
    if (nargs > 1) fail_type("tensor() takes 1 positional argument but ", nargs, " were given");
    Arguments a("tensor", params, -1, opt_factory, args, nargs, names);
    PyObject* data = a.need(0, "data");
    if (is_tensor(data) && !holds_a_part(data)) refuse_placeholder(data, "tensor");
    if (is_tensor(data) && PyErr_WarnEx(PyExc_UserWarning,
                                        "tensor: To copy construct from a tensor, it is "
                                        "recommended to use sourceTensor.detach().clone() or "
                                        "sourceTensor.detach().clone().requires_grad_(True), "
                                        "rather than clew.tensor(sourceTensor).",
                                        1) < 0) {
      throw PythonError();
    }
    const Device where =
        a.device_or(is_tensor(data) ? wanted_device(borrow(data)) : default_device());
    return a.finish(made_here(tensor_from(data, a.dtype, where)));
  });
}

PyObject* scalar_tensor_(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"s"};
    Arguments a("scalar_tensor", params, -1, opt_factory, args, nargs, names);
    Scalar v = a.number(0, "s");
    DType d = a.dtype_or(v.is_complex() ? complex_of(default_dtype()) : default_dtype());
    require_fits("scalar_tensor", v, d);
    Tensor t = empty({}, d, a.where());
    fill_fresh(t, v);
    return a.finish(std::move(t));
  });
}

PyObject* as_tensor(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* params[] = {"data", "dtype", "device"};
    Arguments a("as_tensor", params, -1, opt_dtype | opt_device, args, nargs, names);
    PyObject* data = a.need(0, "data");
    if (a.has(1)) {
      if (!is_dtype(a.value[1])) fail_type("as_tensor(): argument 'dtype' must be clew.dtype");
      a.dtype = dtype_from(a.value[1]);
    }
    if (a.has(2)) a.device = device_from(a.value[2]);
    if (is_tensor(data)) {
      Tensor t = borrow(data);
      const Device where = a.device_or(wanted_device(t));
      bool same = (!a.dtype || *a.dtype == t.dtype()) && where == t.device();
      if (same) return wrap(std::move(t));
      // Through .to, which is recorded.
      Ref dtype(dtype_object(a.dtype_or(t.dtype()))), device(device_object(where));
      // What stands in the place of a ragged tensor's elements has no device that means anything.
      if (where == t.device()) return checked(PyObject_CallMethod(data, "to", "O", dtype.get()));
      return checked(PyObject_CallMethod(data, "to", "OO", device.get(), dtype.get()));
    }
    if (is_numpy_array(data) && a.device_or(default_device()) == Device::CPU) {
      Tensor t = from_numpy(data);
      if (!a.dtype || *a.dtype == t.dtype()) return a.finish(made_here(std::move(t)));
    }
    return a.finish(made_here(tensor_from(data, a.dtype, a.device_or(default_device()))));
  });
}

void drop_buffer(Storage* s) {
  release_in_turn(
      [](void* owner) {
        auto* b = static_cast<Py_buffer*>(owner);
        PyBuffer_Release(b);
        delete b;
      },
      s->owner);
}
PyObject* frombuffer(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"buffer", "dtype", "count", "offset"};
    Arguments a("frombuffer", params, -1, opt_requires_grad, args, nargs, names);
    PyObject* source = a.need(0, "buffer");
    if (!is_dtype(a.need(1, "dtype")))
      fail_type("frombuffer(): argument 'dtype' must be clew.dtype");
    DType d = dtype_from(a.value[1]);
    int64_t count = a.integer_or(2, "count", -1), offset = a.integer_or(3, "offset", 0);
    auto width = static_cast<int64_t>(itemsize(d));
    auto buffer = std::make_unique<Py_buffer>();
    bool read_only = PyObject_GetBuffer(source, buffer.get(), PyBUF_WRITABLE) < 0;
    if (read_only) {
      PyErr_Clear();
      if (PyObject_GetBuffer(source, buffer.get(), PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        fail_value("frombuffer: object does not implement the Python buffer protocol; got ",
                   Py_TYPE(source)->tp_name);
      }
    }
    int64_t have = buffer->len;
    auto give_back = [&](auto&&... text) {
      PyBuffer_Release(buffer.get());
      fail_value(text...);
    };
    if (have <= 0 || count == 0)
      give_back("frombuffer: both buffer length (", have, ") and count (", count,
                ") must not be 0");
    if (offset < 0 || offset >= have)
      give_back("frombuffer: offset must be in [0, ", have - 1, "]; got ", offset);
    int64_t rest = have - offset;
    if (count < 0 && rest % width != 0) {
      give_back("frombuffer: buffer length (", have, " bytes) after offset (", offset,
                " bytes) must be a multiple of element size (", width, ")");
    }
    if (count < 0) count = rest / width;
    if (count > rest / width) {
      give_back("frombuffer: requested buffer length (", count, " * ", width,
                " bytes) after offset (", offset,
                " bytes) must not be greater than actual buffer length (", have, " bytes)");
    }
    char* data = static_cast<char*>(buffer->buf) + offset;
    if (reinterpret_cast<uintptr_t>(data) % (is_complex(d) ? itemsize(d) / 2 : itemsize(d)) != 0) {
      give_back("frombuffer: the memory at this offset is not aligned to ", d,
                "; copy the bytes first");
    }
    if (read_only &&
        PyErr_WarnEx(
            PyExc_UserWarning,
            "frombuffer: the given buffer is not writable, and clew has no non-writable tensors: "
            "writing to this tensor is undefined behavior.",
            1) < 0) {
      PyBuffer_Release(buffer.get());
      throw PythonError();
    }
    Storage* storage =
        Storage::wrap(data, static_cast<size_t>(count * width), buffer.release(), drop_buffer);
    Tensor t = empty(Dims{0}, d);
    set_storage(t, storage, 0, Dims{count}, Dims{1});
    storage->decref();
    return a.finish(std::move(t));
  });
}

}  // namespace

bool holds_a_part(PyObject* tensor) {
  static PyObject* copied = PyUnicode_InternFromString("_copy_of_whole");
  return Py_TYPE(tensor) != tensor_type && PyObject_HasAttr(tensor, copied);
}

Scalar number_in(PyObject* tensor) {
  if (!holds_a_part(tensor)) return item(borrow(tensor));
  const Ref number(checked(PyObject_CallMethod(tensor, "item", nullptr)));
  Scalar s;
  if (!scalar_from(number.get(), s))
    fail_type("expected a number; got ", Py_TYPE(number.get())->tp_name);
  return s;
}

void refuse_placeholder(PyObject* tensor, const char* function) {
  if (Py_TYPE(tensor) == tensor_type) return;
  if (!borrow(tensor).is_meta() && !holds_a_part(tensor)) return;
  static PyObject* refuse = PyUnicode_InternFromString("_refuse");  // of clew._tensor.structured
  if (!PyObject_HasAttr(tensor, refuse)) return;
  const Ref name(checked(PyUnicode_FromString(function)));
  Ref(checked(PyObject_CallMethodOneArg(tensor, refuse, name.get())));
}

// A class whose objects hold only a part of what they stand for says how they are copied.
static Tensor copy_of_whole(PyObject* tensor, std::optional<DType> dtype, Device device) {
  if (!holds_a_part(tensor)) return {};
  const Ref d(checked(dtype_object(dtype.value_or(borrow(tensor).dtype()))));
  const Ref where(checked(device_object(device)));
  static PyObject* copied = PyUnicode_InternFromString("_copy_of_whole");
  const Ref made(
      checked(PyObject_CallMethodObjArgs(tensor, copied, d.get(), where.get(), nullptr)));
  if (!is_tensor(made.get()))
    fail_type("tensor: ", Py_TYPE(tensor)->tp_name, "._copy_of_whole() must return a Tensor; got ",
              Py_TYPE(made.get())->tp_name);
  return borrow(made.get());
}

Tensor tensor_from(PyObject* data, std::optional<DType> dtype, Device device) {
  Tensor source;
  bool lent = false;  // data's own memory
  if (is_tensor(data)) {
    if (Tensor whole = copy_of_whole(data, dtype, device); whole.defined()) return whole;
    source = borrow(data);
    lent = true;
    note_leaving(source.get(), "tensor()");
  } else if (PyList_CheckExact(data) || PyTuple_CheckExact(data))
    source = tensor_from_sequence(data, dtype);
  else if (is_numpy_array(data)) {
    source = from_numpy(data, false);
    lent = true;
  } else if (auto d = numpy_scalar_dtype(data))
    source = tensor_from_sequence(data, dtype ? dtype : d);
  else if (dtype || PyList_Check(data) || PyTuple_Check(data) || PyFloat_Check(data) ||
           PyLong_Check(data)) {
    source = tensor_from_sequence(data, dtype);
  } else if (PyObject_HasAttrString(data, "__array_interface__") ||
             PyObject_HasAttrString(data, "__array__")) {
    Ref numpy(checked(PyImport_ImportModule("numpy")));
    Ref array(checked(PyObject_CallMethod(numpy.get(), "asarray", "O", data)));
    source = from_numpy(array.get(), false);
  } else {
    source = tensor_from_sequence(data, dtype);
  }
  DType d = dtype.value_or(source.dtype());
  const bool fresh = !lent && source.device() == device && source.dtype() == d;
  if (fresh && source->storage->resizable) return source;
  if (source.is_meta() && device != Device::Meta) {
    fail(ErrorKind::NotImplemented, "tensor: a meta tensor has no values to copy");
  }
  if (is_batched(source)) return detach(builtins.clone(builtins.to_dtype(source, d)));
  Tensor out = empty(source.sizes(), d, device);
  if (device == Device::CPU) copy_into(out, source);
  return out;
}

void add_creation_data(PyObject* module) {
  static PyMethodDef functions[] = {
      fast_method("tensor", tensor, docs::tensor),
      fast_method("scalar_tensor", scalar_tensor_, docs::scalar_tensor),
      fast_method("as_tensor", as_tensor, docs::as_tensor),
      fast_method("frombuffer", frombuffer, docs::frombuffer),
      {}};
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace clew::python

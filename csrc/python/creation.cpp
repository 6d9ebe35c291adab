// Creation functions: from shapes, from values, from ranges, from data; and the new_* methods.
// May include: everything below python/.
// Invariant: all arguments are read and checked before memory is allocated.
#include <cmath>
#include <memory>

#include "kernels/range.h"
#include "python/arguments.h"
#include "python/convert.h"

namespace clew::python {

namespace {

using Args = PyObject* const*;

constexpr const char* size_name[] = {"size"};

void fill_fresh(const Tensor& t, const Scalar& v) {
  if (!t.is_meta()) kernels::fill(t.nd(), v);
}

// ---- from a shape ----

enum class With : uint8_t { nothing, zeros, ones };
void fill_with(const Tensor& t, With with) {
  if (with == With::nothing || t.is_meta()) return;
  if (with == With::ones)
    kernels::fill(t.nd(), Scalar(1));
  else if (t.is_contiguous())
    std::memset(t->data, 0, static_cast<size_t>(t.numel()) * itemsize(t.dtype()));
  else
    kernels::fill(t.nd(), Scalar(0));
}

PyObject* of_shape(const char* fn, With with, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    Arguments a(fn, size_name, 0, opt_factory | opt_out | opt_memory_format, args, nargs, names);
    Tensor t =
        a.fresh(a.size(0), a.dtype_or(a.out && !a.dtype ? borrow(a.out).dtype() : default_dtype()),
                a.where());
    fill_with(t, with);
    return a.finish(std::move(t));
  });
}
PyObject* zeros(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return of_shape("zeros", With::zeros, args, n, names);
}
PyObject* ones(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return of_shape("ones", With::ones, args, n, names);
}
PyObject* empty_(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return of_shape("empty", With::nothing, args, n, names);
}

// What a lone fill value asks for.
DType dtype_for(const Scalar& v) {
  return v.is_complex() ? complex_of(default_dtype()) : v.is_float() ? default_dtype() : v.dtype();
}
void check_fits(const char* fn, const Scalar& v, DType d) {
  require(!v.is_complex() || is_complex(d) || v.im == 0, fn,
          ": a complex value cannot be stored in ", d);
}

PyObject* full(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"size", "fill_value"};
    Arguments a("full", params, -1, opt_factory | opt_out, args, nargs, names);
    if (is_int(a.need(0, "size")))
      fail_type("full(): argument 'size' (position 1) must be tuple of ints, not int");
    Scalar v = a.number(1, "fill_value");
    DType d = a.dtype_or(a.out ? borrow(a.out).dtype() : dtype_for(v));
    check_fits("full", v, d);
    Tensor t = empty(a.size(0), d, a.where());
    fill_fresh(t, v);
    return a.finish(std::move(t));
  });
}

PyObject* empty_strided_(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"size", "stride"};
    Arguments a("empty_strided", params, -1, opt_factory, args, nargs, names);
    PyObject* stride = a.need(1, "stride");
    if (!is_int_sequence(stride)) {
      fail_type("empty_strided(): argument 'stride' must be tuple of ints, not ",
                Py_TYPE(stride)->tp_name);
    }
    return a.finish(empty_strided(a.size(0), ints_from(stride), a.float_dtype(), a.where()));
  });
}

// ---- like another tensor ----

Tensor input_of(const Arguments& a) {
  PyObject* x = a.need(0, "input");
  if (!is_tensor(x))
    fail_type(a.fn, "(): argument 'input' (position 1) must be Tensor, not ", Py_TYPE(x)->tp_name);
  return borrow(x);
}
// Layouts are kept where they are dense.
Tensor fresh_like(const Arguments& a, const Tensor& x) {
  DType d = a.dtype_or(x.dtype());
  Device where = a.device_or(x.device());
  bool keep = a.memory_format.value_or(MemoryFormat::preserve) == MemoryFormat::preserve;
  if (keep && !x.is_contiguous() && is_non_overlapping_and_dense(x.sizes(), x.strides())) {
    return empty_strided(x.sizes(), x.strides(), d, where);
  }
  return a.fresh(x.sizes(), d, where);
}
constexpr unsigned like_options = opt_factory | opt_memory_format;

PyObject* like(const char* fn, With with, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"input"};
    Arguments a(fn, params, -1, like_options, args, nargs, names);
    Tensor t = fresh_like(a, input_of(a));
    fill_with(t, with);
    return a.finish(std::move(t));
  });
}
PyObject* zeros_like(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return like("zeros_like", With::zeros, args, n, names);
}
PyObject* ones_like(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return like("ones_like", With::ones, args, n, names);
}
PyObject* empty_like(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return like("empty_like", With::nothing, args, n, names);
}
PyObject* full_like(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"input", "fill_value"};
    Arguments a("full_like", params, -1, like_options, args, nargs, names);
    Tensor x = input_of(a);
    Scalar v = a.number(1, "fill_value");
    check_fits("full_like", v, a.dtype_or(x.dtype()));
    Tensor t = fresh_like(a, x);
    fill_fresh(t, v);
    return a.finish(std::move(t));
  });
}

PyObject* new_of_shape(const char* fn, With with, PyObject* self, Args args, Py_ssize_t nargs,
                       PyObject* names) {
  return guarded([&] {
    Arguments a(fn, size_name, 0, opt_factory, args, nargs, names);
    Tensor x = borrow(self);
    Tensor t = empty(a.size(0), a.dtype_or(x.dtype()), a.device_or(x.device()));
    fill_with(t, with);
    return a.finish(std::move(t));
  });
}
PyObject* new_zeros(PyObject* self, Args args, Py_ssize_t n, PyObject* names) {
  return new_of_shape("new_zeros", With::zeros, self, args, n, names);
}
PyObject* new_ones(PyObject* self, Args args, Py_ssize_t n, PyObject* names) {
  return new_of_shape("new_ones", With::ones, self, args, n, names);
}
PyObject* new_empty(PyObject* self, Args args, Py_ssize_t n, PyObject* names) {
  return new_of_shape("new_empty", With::nothing, self, args, n, names);
}
PyObject* new_full(PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"size", "fill_value"};
    Arguments a("new_full", params, -1, opt_factory, args, nargs, names);
    Tensor x = borrow(self);
    Scalar v = a.number(1, "fill_value");
    DType d = a.dtype_or(x.dtype());
    check_fits("new_full", v, d);
    Tensor t = empty(a.size(0), d, a.device_or(x.device()));
    fill_fresh(t, v);
    return a.finish(std::move(t));
  });
}
PyObject* new_empty_strided(PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"size", "stride"};
    Arguments a("new_empty_strided", params, -1, opt_factory, args, nargs, names);
    Tensor x = borrow(self);
    if (!is_int_sequence(a.need(1, "stride")))
      fail_type("new_empty_strided(): argument 'stride' must be tuple of ints");
    return a.finish(empty_strided(a.size(0), ints_from(a.value[1]), a.dtype_or(x.dtype()),
                                  a.device_or(x.device())));
  });
}
PyObject* new_tensor(PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"data"};
    Arguments a("new_tensor", params, -1, opt_factory, args, nargs, names);
    Tensor x = borrow(self);
    return a.finish(tensor_from(a.need(0, "data"), a.dtype_or(x.dtype()), a.device_or(x.device())));
  });
}

// ---- ranges ----

constexpr unsigned range_options = opt_factory | opt_out;

DType range_dtype(const Arguments& a, std::initializer_list<Scalar> values) {
  if (a.dtype) return *a.dtype;
  if (a.out) return borrow(a.out).dtype();
  for (const Scalar& v : values) {
    if (!v.is_integral()) return default_dtype();
  }
  return DType::Int64;
}

void check_range(const char* fn, const Scalar& start, const Scalar& end, const Scalar& step) {
  for (const Scalar* v : {&start, &end, &step}) {
    require(!v->is_complex(), fn, ": start, end and step must be real");
  }
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  require(s != 0 && s == s, fn, ": step must be nonzero");
  require(std::isfinite(a) && std::isfinite(b), fn, ": unsupported range: ", a, " -> ", b);
  require((s > 0 && b >= a) || (s < 0 && b <= a), fn,
          ": upper bound and lower bound inconsistent with step sign; got start=", a, ", end=", b,
          ", step=", s);
}

PyObject* arange(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* one[] = {"end", "start", "step"};
    static constexpr const char* more[] = {"start", "end", "step"};
    // One positional argument is the end, unless end is named beside it.
    bool single = nargs <= 1;
    for (Py_ssize_t k = 0; nargs == 1 && names && k < PyTuple_GET_SIZE(names); ++k) {
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), "end") == 0) single = false;
    }
    Arguments a("arange", single ? std::span<const char* const>(one) : more, -1, range_options,
                args, nargs, names);
    Scalar start = 0, step = 1;
    int at_start = single ? 1 : 0, at_end = single ? 0 : 1;
    if (a.has(at_start)) start = a.number(at_start, "start");
    Scalar end = a.number(at_end, "end");
    if (a.has(2)) step = a.number(2, "step");
    check_range("arange", start, end, step);
    DType d = range_dtype(a, {start, end, step});
    require(d != DType::Bool, "arange: dtype must be a number's; got bool");
    int64_t n;
    // An int64 result has start, end and step cut to whole numbers first, as PyTorch has it.
    if (d == DType::Int64 || (start.is_integral() && end.is_integral() && step.is_integral())) {
      require(step.to_int() != 0, "arange: step must be nonzero");
      auto low = static_cast<__int128>(start.to_int()), high = static_cast<__int128>(end.to_int());
      auto s = static_cast<__int128>(step.to_int());
      __int128 count = s > 0 ? (high - low + s - 1) / s : (low - high - s - 1) / -s;
      require(count <= INT64_MAX, "arange: too many elements");
      n = static_cast<int64_t>(count);
    } else {
      double count = std::ceil((end.to_double() - start.to_double()) / step.to_double());
      require(count >= 0 && count < 9e18, "arange: too many elements: ", count);
      n = static_cast<int64_t>(count);
    }
    Tensor t = empty({n}, d, a.where());
    if (!t.is_meta()) kernels::range(t.nd(), start, step);
    return a.finish(std::move(t));
  });
}

// PyTorch's old range, whose end is included.
PyObject* range(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"start", "end", "step"};
    if (PyErr_WarnEx(PyExc_UserWarning,
                     "clew.range includes its end, unlike Python's range; use clew.arange",
                     1) < 0) {
      throw PythonError();
    }
    Arguments a("range", params, -1, range_options, args, nargs, names);
    if (nargs == 1 && !a.value[1]) std::swap(a.value[0], a.value[1]);
    Scalar start = a.has(0) ? a.number(0, "start") : Scalar(0), end = a.number(1, "end");
    Scalar step = a.has(2) ? a.number(2, "step") : Scalar(1);
    check_range("range", start, end, step);
    double count = std::floor((end.to_double() - start.to_double()) / step.to_double()) + 1;
    require(count < 9e18, "range: too many elements: ", count);
    DType d = a.dtype_or(a.out ? borrow(a.out).dtype() : default_dtype());
    Tensor t = empty({static_cast<int64_t>(count)}, d, a.where());
    if (!t.is_meta()) kernels::range(t.nd(), start, step);
    return a.finish(std::move(t));
  });
}

DType spaced_dtype(const Arguments& a, const Scalar& start, const Scalar& end) {
  bool complex_ends = start.is_complex() || end.is_complex();
  DType inferred = complex_ends ? complex_of(default_dtype()) : default_dtype();
  if (!a.dtype) return a.out ? borrow(a.out).dtype() : inferred;
  require(!complex_ends || is_complex(*a.dtype), a.fn, "(): inferred dtype ", inferred,
          " can't be safely cast to passed dtype ", *a.dtype);
  return *a.dtype;
}
int64_t steps_of(const Arguments& a) {
  int64_t n = a.integer(2, "steps");
  require(n >= 0, a.fn, ": number of steps must be non-negative; got ", n);
  return n;
}

PyObject* linspace(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"start", "end", "steps"};
    Arguments a("linspace", params, -1, range_options, args, nargs, names);
    Scalar start = a.number(0, "start"), end = a.number(1, "end");
    Tensor t = empty({steps_of(a)}, spaced_dtype(a, start, end), a.where());
    if (!t.is_meta() && t.numel()) kernels::linspace(t.nd(), start, end);
    return a.finish(std::move(t));
  });
}
PyObject* logspace(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"start", "end", "steps", "base"};
    Arguments a("logspace", params, -1, range_options, args, nargs, names);
    Scalar start = a.number(0, "start"), end = a.number(1, "end");
    double base = a.real_or(3, "base", 10.0);
    Tensor t = empty({steps_of(a)}, spaced_dtype(a, start, end), a.where());
    if (!t.is_meta() && t.numel()) kernels::logspace(t.nd(), start, end, base);
    return a.finish(std::move(t));
  });
}

PyObject* eye(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"n", "m"};
    Arguments a("eye", params, -1, range_options, args, nargs, names);
    int64_t n = a.integer(0, "n"), m = a.integer_or(1, "m", n);
    require(n >= 0, "eye: n must be greater or equal to 0, got ", n);
    require(m >= 0, "eye: m must be greater or equal to 0, got ", m);
    Tensor t =
        empty({n, m}, a.dtype_or(a.out ? borrow(a.out).dtype() : default_dtype()), a.where());
    if (!t.is_meta()) kernels::eye(t.nd());
    return a.finish(std::move(t));
  });
}

PyObject* triangle(const char* fn, bool lower, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"row", "col", "offset"};
    Arguments a(fn, params, -1, opt_dtype | opt_device | opt_layout, args, nargs, names);
    int64_t rows = a.integer(0, "row"), cols = a.integer(1, "col"),
            offset = a.integer_or(2, "offset", 0);
    require(rows >= 0 && cols >= 0, fn, ": row and col must not be negative; got ", rows, " and ",
            cols);
    // Beyond the matrix an offset changes nothing more, and the sums below cannot overflow.
    offset = std::clamp(offset, -rows - 1, cols + 1);
    DType d = a.dtype_or(DType::Int64);
    require(d == DType::Int64 || d == DType::Int32, fn, ": dtype must be int64 or int32; got ", d);
    Tensor t = empty({2, kernels::triangle_count(rows, cols, offset, lower)}, d, a.where());
    if (!t.is_meta()) kernels::triangle_indices(t.nd(), rows, cols, offset, lower);
    return a.finish(std::move(t));
  });
}
PyObject* tril_indices(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return triangle("tril_indices", true, args, n, names);
}
PyObject* triu_indices(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return triangle("triu_indices", false, args, n, names);
}

// ---- from data ----

PyObject* tensor(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"data"};
    if (nargs > 1) fail_type("tensor() takes 1 positional argument but ", nargs, " were given");
    Arguments a("tensor", params, -1, opt_factory, args, nargs, names);
    PyObject* data = a.need(0, "data");
    if (is_tensor(data) && PyErr_WarnEx(PyExc_UserWarning,
                                        "tensor: To copy construct from a tensor, it is "
                                        "recommended to use sourceTensor.detach().clone() or "
                                        "sourceTensor.detach().clone().requires_grad_(True), "
                                        "rather than clew.tensor(sourceTensor).",
                                        1) < 0) {
      throw PythonError();
    }
    Device where = a.device          ? *a.device
                   : is_tensor(data) ? borrow(data).device()
                                     : default_device();
    return a.finish(tensor_from(data, a.dtype, where));
  });
}

PyObject* scalar_tensor_(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"s"};
    Arguments a("scalar_tensor", params, -1, opt_factory, args, nargs, names);
    Scalar v = a.number(0, "s");
    DType d = a.dtype_or(v.is_complex() ? complex_of(default_dtype()) : default_dtype());
    check_fits("scalar_tensor", v, d);
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
      bool same = (!a.dtype || *a.dtype == t.dtype()) && (!a.device || *a.device == t.device());
      if (same) return wrap(std::move(t));
      // Through .to, which is recorded.
      Ref dtype(dtype_object(a.dtype_or(t.dtype()))),
          device(device_object(a.device_or(t.device())));
      return checked(PyObject_CallMethod(data, "to", "OO", device.get(), dtype.get()));
    }
    if (is_numpy_array(data) && a.device_or(default_device()) == Device::CPU) {
      Tensor t = from_numpy(data);
      if (!a.dtype || *a.dtype == t.dtype()) return a.finish(std::move(t));
    }
    return a.finish(tensor_from(data, a.dtype, a.device_or(default_device())));
  });
}

void drop_buffer(Storage* s) {
  auto* b = static_cast<Py_buffer*>(s->owner);
  PyBuffer_Release(b);
  delete b;
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

PyObject* set_device(PyObject*, PyObject* device) {
  return guarded([&]() -> PyObject* {
    if (device == Py_None) {
      set_default_device(Device::CPU);
      Py_RETURN_NONE;
    }
    auto d = device_from(device);
    if (!d)
      fail_type("set_default_device(): argument 'device' must be clew.device, not ",
                Py_TYPE(device)->tp_name);
    set_default_device(*d);
    Py_RETURN_NONE;
  });
}
PyObject* get_device(PyObject*, PyObject*) { return device_object(default_device()); }

}  // namespace

Tensor tensor_from(PyObject* data, std::optional<DType> dtype, Device device) {
  Tensor source;
  if (is_tensor(data))
    source = borrow(data);
  else if (is_numpy_array(data))
    source = from_numpy(data, false);
  else if (auto d = numpy_scalar_dtype(data))
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
  bool fresh =
      !is_tensor(data) && !is_numpy_array(data) && source.device() == device && source.dtype() == d;
  if (fresh && source->storage->resizable) return source;
  if (source.is_meta() && device != Device::Meta) {
    fail(ErrorKind::NotImplemented, "tensor: a meta tensor has no values to copy");
  }
  Tensor out = empty(source.sizes(), d, device);
  if (device == Device::CPU) copy_into(out, source);
  return out;
}

std::span<const PyMethodDef> creation_methods() {
  static const PyMethodDef methods[] = {
      fast_method("new_zeros", new_zeros, "A tensor of zeros with this one's dtype and device."),
      fast_method("new_ones", new_ones, "A tensor of ones with this one's dtype and device."),
      fast_method("new_empty", new_empty,
                  "An uninitialised tensor with this one's dtype and device."),
      fast_method("new_full", new_full, "A filled tensor with this one's dtype and device."),
      fast_method("new_empty_strided", new_empty_strided,
                  "An uninitialised tensor with given strides."),
      fast_method("new_tensor", new_tensor,
                  "A tensor with the given data and this one's dtype and device."),
  };
  return methods;
}

void add_creation(PyObject* module) {
  static PyMethodDef functions[] = {
      fast_method(
          "zeros", zeros,
          "zeros(*size, out=None, dtype=None, device=None, requires_grad=False) -> Tensor\n\n"
          "A tensor of zeros."),
      fast_method(
          "ones", ones,
          "ones(*size, out=None, dtype=None, device=None, requires_grad=False) -> Tensor\n\n"
          "A tensor of ones."),
      fast_method(
          "empty", empty_,
          "empty(*size, out=None, dtype=None, device=None, requires_grad=False) -> Tensor\n\n"
          "A tensor whose elements are whatever the memory held."),
      fast_method(
          "full", full,
          "full(size, fill_value, *, out=None, dtype=None, device=None, requires_grad=False) -> "
          "Tensor\n\nA tensor that holds fill_value everywhere."),
      fast_method("empty_strided", empty_strided_,
                  "empty_strided(size, stride, *, dtype=None, device=None) -> Tensor\n\n"
                  "An uninitialised tensor with the given strides."),
      fast_method("zeros_like", zeros_like,
                  "zeros_like(input, *, dtype=None, device=None) -> Tensor\n\n"
                  "Zeros with input's shape, dtype and device."),
      fast_method("ones_like", ones_like,
                  "ones_like(input, *, dtype=None, device=None) -> Tensor\n\n"
                  "Ones with input's shape, dtype and device."),
      fast_method("empty_like", empty_like,
                  "empty_like(input, *, dtype=None, device=None) -> Tensor\n\n"
                  "An uninitialised tensor with input's shape, dtype and device."),
      fast_method("full_like", full_like,
                  "full_like(input, fill_value, *, dtype=None, device=None) -> Tensor\n\n"
                  "fill_value everywhere, with input's shape, dtype and device."),
      fast_method("arange", arange,
                  "arange(start=0, end, step=1, *, out=None, dtype=None, device=None) -> Tensor\n\n"
                  "Numbers from start up to end, which is left out."),
      fast_method("range", range,
                  "range(start=0, end, step=1, *, out=None, dtype=None) -> Tensor\n\n"
                  "Numbers from start up to end, which is included; use arange."),
      fast_method("linspace", linspace,
                  "linspace(start, end, steps, *, out=None, dtype=None) -> Tensor\n\n"
                  "Equally spaced numbers, both ends included."),
      fast_method("logspace", logspace,
                  "logspace(start, end, steps, base=10.0, *, out=None, dtype=None) -> Tensor\n\n"
                  "Powers of base with equally spaced exponents."),
      fast_method("eye", eye,
                  "eye(n, m=None, *, out=None, dtype=None, device=None) -> Tensor\n\n"
                  "Ones on the diagonal, zeros elsewhere."),
      fast_method("tril_indices", tril_indices,
                  "tril_indices(row, col, offset=0, *, dtype=int64) -> Tensor\n\n"
                  "Rows and columns of the lower triangle, [2, count]."),
      fast_method("triu_indices", triu_indices,
                  "triu_indices(row, col, offset=0, *, dtype=int64) -> Tensor\n\n"
                  "Rows and columns of the upper triangle, [2, count]."),
      fast_method("tensor", tensor,
                  "tensor(data, *, dtype=None, device=None, requires_grad=False) -> Tensor\n\n"
                  "A tensor with a copy of data: a number, nested sequences, an array."),
      fast_method("scalar_tensor", scalar_tensor_,
                  "scalar_tensor(s, *, dtype=None) -> Tensor\n\n"
                  "A tensor without dims that holds s."),
      fast_method("as_tensor", as_tensor,
                  "as_tensor(data, dtype=None, device=None) -> Tensor\n\n"
                  "data as a tensor; copies only where it must."),
      fast_method("frombuffer", frombuffer,
                  "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> "
                  "Tensor\n\nA tensor over the memory of a bytes-like object."),
      {"_set_default_device", set_device, METH_O, nullptr},
      {"get_default_device", get_device, METH_NOARGS,
       "The device that creation functions use when none is given."},
      {}};
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace clew::python

// Creation functions that take a shape, or a tensor to be like; and the new_* methods.
// May include: everything below python/.
// Invariant: all arguments are read and checked before memory is allocated.
#include "ops/calls/random.h"
#include "python/arguments.h"
#include "python/convert.h"
#include "python/creation_docs.h"
#include "python/overrides.h"
#include "tensor/kernel_frame.h"
#include "tensor/layout.h"

namespace clew::python {

namespace {

using Args = PyObject* const*;

// ---- from a shape ----

enum class With : uint8_t { nothing, zeros, ones };
void fill_with(const Tensor& t, With with) {
  if (with == With::nothing || t.is_meta() || t.numel() == 0) return;
  NotedFresh noted(t, Fill::value, with == With::ones ? 1 : 0, nullptr);
  {
    const Held held{t};
    if (with == With::ones)
      kernels::fill(t.nd(), Scalar(1));
    else if (t.is_contiguous())
      kernels::clear(t->address(), t.numel() * static_cast<int64_t>(itemsize(t.dtype())));
    else
      kernels::fill(t.nd(), Scalar(0));
  }
  noted.filled(t);
}

// A tensor without elements, in the sparse layout that was asked for; made in Python.
PyObject* without_elements(const Arguments& a, const Dims& sizes, DType dtype) {
  const Ref home(checked(PyImport_ImportModule("clew.sparse._sizes")));
  const Ref shape(size_object(sizes));
  const Ref type(dtype_object(dtype));
  return checked(PyObject_CallMethod(home.get(), "without_elements", "sOOOO", a.fn, a.layout,
                                     shape.get(), type.get(),
                                     a.requires_grad ? Py_True : Py_False));
}

PyObject* of_shape(const char* fn, With with, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    Arguments a(fn, size_name, 0,
                opt_factory | opt_out | (with == With::nothing ? opt_memory_format : 0u) |
                    (with == With::ones ? 0u : opt_sparse_layout),
                args, nargs, names);
    require(!a.layout || !a.out, fn,
            ": a sparse layout does not match the layout of out parameter");
    if (a.layout) return without_elements(a, a.size(0), a.dtype_or(default_dtype()));
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

// The dtype that a fill value implies if no dtype is given.
DType dtype_for(const Scalar& v) {
  return v.is_complex() ? complex_of(default_dtype()) : v.is_float() ? default_dtype() : v.dtype();
}
PyObject* full(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"size", "fill_value"};
    Arguments a("full", params, -1, opt_factory | opt_out, args, nargs, names);
    if (is_int(a.need(0, "size")))
      fail_type("full(): argument 'size' (position 1) must be tuple of ints, not int");
    Scalar v = a.number(1, "fill_value");
    DType d = a.dtype_or(a.out ? borrow(a.out).dtype() : dtype_for(v));
    require_fits("full", v, d);
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
constexpr unsigned like_options = opt_factory | opt_memory_format;

PyObject* like(const char* fn, With with, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    if (overriding)
      if (PyObject* made = overridden_by_name(fn, args, nargs, names)) return made;
    static constexpr const char* params[] = {"input"};
    Arguments a(fn, params, -1, like_options | (with == With::ones ? 0u : opt_sparse_layout), args,
                nargs, names);
    Tensor x = input_of(a);
    if (a.layout) return without_elements(a, x.sizes(), a.dtype_or(x.dtype()));
    Tensor t = fresh_like(a, x);
    fill_with(t, with);
    return a.finish(room_for_samples(t, x));
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
    if (overriding)
      if (PyObject* made = overridden_by_name("full_like", args, nargs, names)) return made;
    static constexpr const char* params[] = {"input", "fill_value"};
    Arguments a("full_like", params, -1, like_options, args, nargs, names);
    Tensor x = input_of(a);
    Scalar v = a.number(1, "fill_value");
    require_fits("full_like", v, a.dtype_or(x.dtype()));
    Tensor t = fresh_like(a, x);
    fill_fresh(t, v);
    return a.finish(room_for_samples(t, x));
  });
}

PyObject* new_of_shape(const char* fn, With with, PyObject* self, Args args, Py_ssize_t nargs,
                       PyObject* names) {
  return guarded([&] {
    Arguments a(fn, size_name, 0, opt_factory, args, nargs, names);
    Tensor x = borrow(self);
    Tensor t = empty(a.size(0), a.dtype_or(x.dtype()), a.device_or(x.device()));
    fill_with(t, with);
    return a.finish(room_for_samples(t, x));
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
    require_fits("new_full", v, d);
    Tensor t = empty(a.size(0), d, a.device_or(x.device()));
    fill_fresh(t, v);
    return a.finish(room_for_samples(t, x));
  });
}
PyObject* new_empty_strided(PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"size", "stride"};
    Arguments a("new_empty_strided", params, -1, opt_factory, args, nargs, names);
    Tensor x = borrow(self);
    if (!is_int_sequence(a.need(1, "stride")))
      fail_type("new_empty_strided(): argument 'stride' must be tuple of ints");
    return a.finish(room_for_samples(empty_strided(a.size(0), ints_from(a.value[1]),
                                                   a.dtype_or(x.dtype()), a.device_or(x.device())),
                                     x));
  });
}
PyObject* new_tensor(PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"data"};
    Arguments a("new_tensor", params, -1, opt_factory, args, nargs, names);
    Tensor x = borrow(self);
    PyObject* data = a.need(0, "data");
    if (is_tensor(data) && !holds_a_part(data)) refuse_placeholder(data, "new_tensor");
    return a.finish(tensor_from(data, a.dtype_or(x.dtype()), a.device_or(x.device())));
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
PyObject* module_device(PyObject*, PyObject*) { return device_object(default_device()); }

}  // namespace

// What the options of all new_...() are.
inline constexpr Text like_this =
    "    dtype: element type; this tensor's when None.\n"
    "    device: where the elements are; this tensor's device when None.\n"
    "    requires_grad: whether operations on the result are recorded.\n"
    "    layout: strided, the only one here.\n"
    "    pin_memory: accepted without an effect.\n";

std::span<const PyMethodDef> creation_methods() {
  static const PyMethodDef methods[] = {
      fast_method("new_zeros", new_zeros,
                  joined<"new_zeros($self, *size, dtype=None, device=None, requires_grad=False, "
                         "layout=None, pin_memory=False)\n--\n\n"
                         R"(A tensor of zeros with this one's dtype and device.

Args:
    size: the shape, as ints or as one tuple.
)",
                         like_this, R"(
>>> clew.ones(2, dtype=clew.int64).new_zeros(3)
tensor([0, 0, 0])
)">),
      fast_method("new_ones", new_ones,
                  joined<"new_ones($self, *size, dtype=None, device=None, requires_grad=False, "
                         "layout=None, pin_memory=False)\n--\n\n"
                         R"(A tensor of ones with this one's dtype and device.

Args:
    size: the shape, as ints or as one tuple.
)",
                         like_this, R"(
>>> clew.zeros(2, dtype=clew.int64).new_ones(3)
tensor([1, 1, 1])
)">),
      fast_method("new_empty", new_empty,
                  joined<"new_empty($self, *size, dtype=None, device=None, requires_grad=False, "
                         "layout=None, pin_memory=False)\n--\n\n"
                         R"(An uninitialised tensor with this one's dtype and device.

Args:
    size: the shape, as ints or as one tuple.
)",
                         like_this, R"(
>>> clew.ones(2).new_empty(3, 4).shape
clew.Size([3, 4])
)">),
      fast_method("new_full", new_full,
                  joined<"new_full($self, size, fill_value, *, dtype=None, device=None, "
                         "requires_grad=False, layout=None, pin_memory=False)\n--\n\n"
                         R"(A tensor of one number with this one's dtype and device.

Args:
    size: the shape, as a tuple.
    fill_value: the number.
)",
                         like_this, R"(
>>> clew.ones(2).new_full((3,), 7)
tensor([7., 7., 7.])
)">),
      fast_method(
          "new_empty_strided", new_empty_strided,
          joined<"new_empty_strided($self, size, stride, *, dtype=None, device=None, "
                 "requires_grad=False, layout=None, pin_memory=False)\n--\n\n"
                 R"(An uninitialised tensor with given strides and this one's dtype and device.

Args:
    size: the shape, as a tuple.
    stride: the steps between elements, one for each dim.
)",
                 like_this, R"(
>>> clew.ones(2).new_empty_strided((2, 3), (1, 2)).stride()
(1, 2)
)">),
      fast_method("new_tensor", new_tensor,
                  joined<"new_tensor($self, data, *, dtype=None, device=None, requires_grad=False, "
                         "layout=None, pin_memory=False)\n--\n\n"
                         R"(A tensor with the given data and this one's dtype and device.

Args:
    data: numbers, nested lists of them, an array or a tensor; copied.
)",
                         like_this, R"(
>>> clew.ones(2, dtype=clew.float64).new_tensor([1, 2])
tensor([1., 2.], dtype=clew.float64)
)">),
  };
  return methods;
}

void add_creation(PyObject* module) {
  static PyMethodDef functions[] = {
      fast_method("zeros", zeros, docs::zeros),
      fast_method("ones", ones, docs::ones),
      fast_method("empty", empty_, docs::empty),
      fast_method("full", full, docs::full),
      fast_method("empty_strided", empty_strided_, docs::empty_strided),
      fast_method("zeros_like", zeros_like, docs::zeros_like),
      fast_method("ones_like", ones_like, docs::ones_like),
      fast_method("empty_like", empty_like, docs::empty_like),
      fast_method("full_like", full_like, docs::full_like),
      {"_set_default_device", set_device, METH_O, nullptr},
      {"get_default_device", module_device, METH_NOARGS,
       "get_default_device()\n--\n\n"
       "The device that creation functions use when none is given."},
      {}};
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace clew::python

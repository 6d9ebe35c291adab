// Methods of Tensor that are not ops, and the legacy constructor Tensor(2, 3).
// May include: everything below python/.
// Invariant: nothing here is recorded by autograd, except through the functions of graph/.
#include "python/tensor_methods.h"

#include "base/checked.h"
#include "graph/inplace.h"
#include "graph/promotion.h"
#include "python/arguments.h"
#include "python/autograd.h"
#include "python/convert.h"
#include "python/overrides.h"

namespace clew::python {

namespace {

// The one optional argument of a method, by position or by `keyword`; null when absent.
PyObject* optional_argument(const char* method, const char* keyword, PyObject* const* args,
                            Py_ssize_t nargs, PyObject* names) {
  Py_ssize_t kw = names ? PyTuple_GET_SIZE(names) : 0;
  if (nargs + kw > 1) fail_type(method, "() takes at most 1 argument (", nargs + kw, " given)");
  if (kw && !is_named(PyTuple_GET_ITEM(names, 0), keyword))
    fail_type(method, "() got an unexpected keyword argument '",
              printable(PyTuple_GET_ITEM(names, 0)), "'");
  return nargs + kw ? args[0] : nullptr;
}

PyObject* method_size(PyObject* o, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&]() -> PyObject* {
    PyObject* dim = optional_argument("size", "dim", args, nargs, names);
    if (!dim || dim == Py_None) return size_object(obj(o)->shape);
    if (!is_int(dim)) fail_type("size(): argument 'dim' must be int, not ", Py_TYPE(dim)->tp_name);
    if (obj(o)->shape->sizes.empty())
      fail_index("size: dimension specified as ", int_from(dim), " but tensor has no dimensions");
    return PyLong_FromLongLong(
        obj(o)->shape->sizes[wrap_dim(int_from(dim), obj(o)->shape->sizes.size(), "size")]);
  });
}
PyObject* method_stride(PyObject* o, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&]() -> PyObject* {
    PyObject* dim = optional_argument("stride", "dim", args, nargs, names);
    const ShapeRef shape = ShapeRef::borrow(obj(o)->shape);  // a finalizer may replace it
    const Dims& strides = shape->strides;
    if (dim && dim != Py_None) {
      if (!is_int(dim))
        fail_type("stride(): argument 'dim' must be int, not ", Py_TYPE(dim)->tp_name);
      if (strides.empty())
        fail_index("stride: dimension specified as ", int_from(dim),
                   " but tensor has no dimensions");
      return PyLong_FromLongLong(strides[wrap_dim(int_from(dim), strides.size(), "stride")]);
    }
    PyObject* tuple = checked(PyTuple_New(strides.size()));
    for (int i = 0; i < strides.size(); ++i)
      PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(strides[i]));
    return tuple;
  });
}
PyObject* method_dim(PyObject* o, PyObject*) {
  return PyLong_FromLong(obj(o)->shape->sizes.size());
}
PyObject* method_numel(PyObject* o, PyObject*) { return PyLong_FromLongLong(obj(o)->shape->numel); }
PyObject* method_element_size(PyObject* o, PyObject*) {
  return PyLong_FromSize_t(itemsize(obj(o)->dtype));
}
PyObject* method_data_ptr(PyObject* o, PyObject*) {
  return guarded([&] {
    require_elements(borrow(o), "data_ptr()");
    settle_before_write(borrow(o));
    obj(o)->storage->lent = 1;
    return PyLong_FromVoidPtr(obj(o)->address());
  });
}
PyObject* method_storage_offset(PyObject* o, PyObject*) {
  return PyLong_FromLongLong(borrow(o).storage_offset());
}
PyObject* method_is_dense(PyObject* o, PyObject*) {
  return PyBool_FromLong(
      is_non_overlapping_and_dense(obj(o)->shape->sizes, obj(o)->shape->strides));
}
PyObject* method_is_contiguous(PyObject* o, PyObject*) {
  return PyBool_FromLong(obj(o)->shape->contiguous);
}
PyObject* method_is_floating_point(PyObject* o, PyObject*) {
  return PyBool_FromLong(is_floating(obj(o)->dtype));
}
PyObject* method_is_complex(PyObject* o, PyObject*) {
  return PyBool_FromLong(is_complex(obj(o)->dtype));
}
PyObject* method_is_signed(PyObject* o, PyObject*) {
  return PyBool_FromLong(!is_unsigned(obj(o)->dtype) && obj(o)->dtype != DType::Bool);
}
PyObject* method_is_inference(PyObject* o, PyObject*) {
  return PyBool_FromLong(obj(o)->flags & flag_inference);
}
PyObject* method_is_conj(PyObject* o, PyObject*) {
  return PyBool_FromLong((obj(o)->flags & flag_conj) && is_complex(obj(o)->dtype));
}
PyObject* method_is_view(PyObject* o, PyObject*) {
  return PyBool_FromLong(obj(o)->base != nullptr);
}

PyObject* method_requires_grad_(PyObject* o, PyObject* const* args, Py_ssize_t nargs,
                                PyObject* names) {
  return guarded([&]() -> PyObject* {
    PyObject* on = optional_argument("requires_grad_", "requires_grad", args, nargs, names);
    if (on && !PyBool_Check(on))
      fail_type("requires_grad_(): argument 'requires_grad' must be bool, not ",
                Py_TYPE(on)->tp_name);
    set_requires_grad_flag(borrow(o), !on || on == Py_True);
    Py_INCREF(o);
    return o;
  });
}
PyObject* method_copy_(PyObject* o, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    Py_ssize_t kw = names ? PyTuple_GET_SIZE(names) : 0;
    if (nargs + kw < 1 || nargs + kw > 2)
      fail_type("copy_() takes src and non_blocking; got ", nargs + kw, " arguments");
    PyObject* from = nargs ? args[0] : nullptr;
    PyObject* non_blocking = nargs > 1 ? args[1] : nullptr;
    for (Py_ssize_t k = 0; k < kw; ++k) {
      PyObject* key = PyTuple_GET_ITEM(names, k);
      if (is_named(key, "src") && !from)
        from = args[nargs + k];
      else if (is_named(key, "non_blocking"))
        non_blocking = args[nargs + k];
      else
        fail_type("copy_() got an unexpected keyword argument '", printable(key), "'");
    }
    if (!from) fail_type("copy_() missing required argument 'src' (Tensor)");
    if (non_blocking && !PyBool_Check(non_blocking))
      fail_type("copy_(): argument 'non_blocking' must be bool, not ",
                Py_TYPE(non_blocking)->tp_name);
    Tensor src = tensor_or_number(from);
    if (!src.defined())
      fail_type("copy_(): argument 'src' must be Tensor, not ", Py_TYPE(from)->tp_name);
    if (overriding && is_tensor(from) && Py_TYPE(from) != tensor_type) {
      static PyObject* function =
          checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "copy_"));
      PyObject* all[3] = {o};
      std::copy_n(args, nargs + kw, all + 1);
      if (PyObject* result = overridden(function, all, 1 + nargs, names)) return result;
    }
    Tensor self = borrow(o);
    if (src.is_meta() && !self.is_meta()) refuse_placeholder(from, "copy_");
    for (int i = 0; i < self.ndim(); ++i)
      if (self.size(i) > 1 && self.stride(i) == 0 && self.numel() > 0)
        fail(
            "copy_: unsupported operation: more than one element of the written-to tensor refers "
            "to a single memory "
            "location; clone() it first");
    copy_(self, src);
    Py_INCREF(o);
    return o;
  });
}
PyObject* method_make_subclass(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* type;
    PyObject* source;
    int requires_grad = 0;
    if (!PyArg_ParseTuple(args, "O!O!|p:_make_subclass", &PyType_Type, &type, tensor_type, &source,
                          &requires_grad))
      return nullptr;
    auto* t = reinterpret_cast<PyTypeObject*>(type);
    if (!PyType_IsSubtype(t, tensor_type))
      fail_type("_make_subclass: ", t->tp_name, " is not a subclass of Tensor");
    const Tensor given = borrow(source);
    settle_gathered(given);
    Tensor made = make_subclass_instance(t, given);
    if (requires_grad) set_requires_grad_flag(made, true);
    return wrap(std::move(made));
  });
}
PyObject* method_as_subclass(PyObject* o, PyObject* type) {
  return guarded([&]() -> PyObject* {
    if (!PyType_Check(type) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type))
      fail_type("as_subclass: cls must be a subclass of Tensor");
    Tensor source = borrow(o);
    settle_gathered(source);
    // A recorded view, so that writes through either reach the other's history.
    Tensor view = builtins.view(source, source.sizes());
    Tensor made = make_subclass_instance(reinterpret_cast<PyTypeObject*>(type), view);
    mark_view(made, source, false);
    OwnedEdge e = gradient_edge(view);
    if (e.fn) set_grad_fn(made, e.fn.get(), e.nr);
    return wrap(std::move(made));
  });
}
PyObject* method_set_(PyObject* o, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* source;
    long long offset = 0;
    PyObject* size = nullptr;
    PyObject* stride = nullptr;
    if (!PyArg_ParseTuple(args, "O!|LOO:set_", tensor_type, &source, &offset, &size, &stride))
      return nullptr;
    Tensor self = borrow(o), src = borrow(source);
    require_elements(src, "set_()");
    settle_gathered(src);
    if (!(self->flags & flag_conj)) check_inplace(self, "set_", self.requires_grad());
    require(self.dtype() == src.dtype(), "set_: source must have dtype ", self.dtype(), "; got ",
            src.dtype());
    if (!size) {
      set_storage(self, src->storage, src->offset, src.sizes(), src.strides());
    } else {
      if (!is_int_sequence(size) || (stride && !is_int_sequence(stride)))
        fail_type("set_: size and stride must be tuples of ints");
      Dims sizes = ints_from(size);
      Dims strides = stride ? ints_from(stride) : contiguous_strides(sizes);
      require(strides.size() == sizes.size(), "set_: size and stride must have equal length");
      for (int64_t s : strides)
        require(s >= 0, "set_: strides must not be negative; got ", strides);
      require(offset >= 0, "set_: storage_offset must not be negative; got ", offset);
      const Checked first = Checked(offset) * byte_count(itemsize(self.dtype()));
      require(first.fits, "set_: storage_offset ", offset, " is too large");
      grow_to_hold(src, first.value, sizes, strides);  // as PyTorch does
      set_storage(self, src->storage, first.value, sizes, strides);
    }
    self->flags |= src->flags & flag_conj;
    bump_version(self);
    Py_INCREF(o);
    return o;
  });
}
PyObject* method_resize_(PyObject* o, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* params[] = {"size"};
    const Arguments a("resize_", params, 0, opt_memory_format, args, nargs, names);
    const Dims sizes = a.size(0);
    Tensor self = borrow(o);
    if (self.requires_grad()) fail("resize_: cannot resize variables that require grad");
    require(a.memory_format != MemoryFormat::preserve,
            "resize_: memory_format must be contiguous_format, channels_last or channels_last_3d; "
            "got preserve_format");
    std::optional<Dims> strides;
    if (a.memory_format) strides = a.strides_of(sizes);
    resize_(self, sizes);
    if (strides) take_shape(self.get(), Shape::strided(sizes, *strides));
    bump_version(self);
    Py_INCREF(o);
    return o;
  });
}
// A uint8 tensor over the whole storage: the bytes themselves, shared.
PyObject* method_storage_bytes(PyObject* o, PyObject*) {
  return guarded([&] {
    Tensor self = borrow(o);
    require_elements(self, "untyped_storage()");
    Tensor bytes = empty(Dims{0}, DType::UInt8, self.device());
    auto n = static_cast<int64_t>(self->storage->nbytes);
    set_storage(bytes, self->storage, 0, Dims{n}, Dims{1});
    return wrap(std::move(bytes));
  });
}
// The storage seen as elements of another dtype (for rebuilding tensors from bytes).
PyObject* method_reinterpret(PyObject* o, PyObject* dtype) {
  return guarded([&] {
    if (!is_dtype(dtype)) fail_type("_reinterpret: expected a dtype");
    Tensor self = borrow(o);
    require_elements(self, "_reinterpret");
    DType d = dtype_from(dtype);
    Tensor out = empty(Dims{0}, d, self.device());
    require(self.is_contiguous(), "_reinterpret: the tensor must be contiguous");
    int64_t bytes = self.numel() * static_cast<int64_t>(itemsize(self.dtype()));
    auto width = static_cast<int64_t>(itemsize(d));
    require(bytes % width == 0, "_reinterpret: ", bytes, " bytes are not a whole number of ", d,
            " elements");
    const int64_t offset = self->offset;
    require(offset % width == 0, "_reinterpret: the storage offset of ", offset,
            " bytes is not a multiple of ", width);
    set_storage(out, self->storage, offset, Dims{bytes / width}, Dims{1});
    return wrap(std::move(out));
  });
}
PyObject* method_address(PyObject* o, PyObject*) {
  const TensorObj* t = obj(o);
  const Storage* s = t->storage;
  return PyLong_FromVoidPtr(s->data && s->is_ready() ? s->at(t->offset) : nullptr);
}
PyObject* method_storage_key(PyObject* o, PyObject*) { return PyLong_FromVoidPtr(obj(o)->storage); }

}  // namespace

PyMethodDef tensor_methods[] = {
    {"size", keyworded(method_size), METH_FASTCALL | METH_KEYWORDS,
     "size($self, dim=None)\n--\n\n"
     R"(The sizes of all dims, or of one.

>>> clew.ones(2, 3).size(), clew.ones(2, 3).size(1)
(clew.Size([2, 3]), 3)
)"},
    {"stride", keyworded(method_stride), METH_FASTCALL | METH_KEYWORDS,
     "stride($self, dim=None)\n--\n\n"
     R"(The strides, in elements, of all dims, or of one.

>>> clew.ones(2, 3).stride(), clew.ones(2, 3).stride(0)
((3, 1), 3)
)"},
    {"dim", method_dim, METH_NOARGS,
     "dim($self)\n--\n\n"
     R"(The number of dims.

>>> clew.ones(2, 3).dim()
2
)"},
    {"ndimension", method_dim, METH_NOARGS,
     "ndimension($self)\n--\n\n"
     R"(The number of dims.

>>> clew.ones(2, 3).ndimension()
2
)"},
    {"numel", method_numel, METH_NOARGS,
     "numel($self)\n--\n\n"
     R"(The number of elements.

>>> clew.ones(2, 3).numel()
6
)"},
    {"nelement", method_numel, METH_NOARGS,
     "nelement($self)\n--\n\n"
     R"(The number of elements.

>>> clew.ones(2, 3).nelement()
6
)"},
    {"element_size", method_element_size, METH_NOARGS,
     "element_size($self)\n--\n\n"
     R"(The bytes of one element.

>>> clew.ones(2).element_size()
4
)"},
    {"data_ptr", method_data_ptr, METH_NOARGS,
     "data_ptr($self)\n--\n\n"
     R"(The address of the first element.

>>> x = clew.ones(2)
>>> x.data_ptr() == x.view(1, 2).data_ptr()
True
)"},
    {"storage_offset", method_storage_offset, METH_NOARGS,
     "storage_offset($self)\n--\n\n"
     R"(Where in the storage the first element lies, in elements.

>>> clew.ones(5)[2:].storage_offset()
2
)"},
    {"_is_contiguous", method_is_contiguous, METH_NOARGS,
     "_is_contiguous($self)\n--\n\n"
     "Whether the elements lie one after the other, in the order of the dims."},
    {"_is_dense", method_is_dense, METH_NOARGS,
     "_is_dense($self)\n--\n\n"
     "Whether the elements fill their memory without gaps, in whatever order."},
    {"is_floating_point", method_is_floating_point, METH_NOARGS,
     "is_floating_point($self)\n--\n\n"
     R"(Whether the dtype is a floating point one.

>>> clew.ones(2).is_floating_point()
True
)"},
    {"is_complex", method_is_complex, METH_NOARGS,
     "is_complex($self)\n--\n\n"
     R"(Whether the dtype is a complex one.

>>> clew.ones(2).is_complex()
False
)"},
    {"is_signed", method_is_signed, METH_NOARGS,
     "is_signed($self)\n--\n\n"
     R"(Whether the dtype has negative numbers.

>>> clew.ones(2, dtype=clew.uint8).is_signed()
False
)"},
    {"is_inference", method_is_inference, METH_NOARGS,
     "is_inference($self)\n--\n\n"
     R"(Whether the tensor was made in inference mode.

>>> with clew.inference_mode():
...     x = clew.ones(2)
>>> x.is_inference()
True
)"},
    {"is_conj", method_is_conj, METH_NOARGS,
     "is_conj($self)\n--\n\n"
     R"(Whether the tensor is what conj() gave, or a view of it, which cannot be written to.

>>> clew.tensor([1 + 1j]).conj().is_conj()
True
)"},
    {"_is_view", method_is_view, METH_NOARGS,
     "_is_view($self)\n--\n\n"
     "Whether the tensor shares the memory of another that it was made from."},
    {"requires_grad_", keyworded(method_requires_grad_), METH_FASTCALL | METH_KEYWORDS,
     "requires_grad_($self, requires_grad=True)\n--\n\n"
     R"(Sets in place whether operations on the tensor are recorded.

>>> clew.ones(2).requires_grad_().requires_grad
True
)"},
    {"copy_", keyworded(method_copy_), METH_FASTCALL | METH_KEYWORDS,
     "copy_($self, src, non_blocking=False)\n--\n\n"
     R"(Copies src into the tensor, broadcasting and converting.

Args:
    src: the tensor to copy.
    non_blocking: accepted; a copy is done when it returns.
Returns:
    the tensor itself.

>>> clew.zeros(2).copy_(clew.tensor([1, 2]))
tensor([1., 2.])
)"},
    {"_make_subclass", method_make_subclass, METH_VARARGS | METH_STATIC,
     "_make_subclass(cls, data, require_grad=False, /)\n--\n\n"
     "The elements of data as an instance of cls, without history."},
    {"as_subclass", method_as_subclass, METH_O,
     "as_subclass($self, cls, /)\n--\n\n"
     R"(The same elements and history as an instance of cls.

>>> type(clew.ones(2).as_subclass(clew.nn.Buffer)).__name__
'Buffer'
)"},
    {"_set_to", method_set_, METH_VARARGS,
     "_set_to($self, source, offset=0, size=None, stride=None, /)\n--\n\n"
     "Makes the tensor look at the storage of source."},
    {"resize_", keyworded(method_resize_), METH_FASTCALL | METH_KEYWORDS,
     "resize_($self, *size, memory_format=None)\n--\n\n"
     R"(Changes the size in place; new elements are uninitialised.

Args:
    size: the new shape, as ints or as one tuple.
    memory_format: the order of the dims in memory; None keeps it if the size does not change.
Returns:
    the tensor itself.

>>> clew.arange(6).resize_(2, 2)
tensor([[0, 1],
        [2, 3]])
)"},
    {"_storage_bytes", method_storage_bytes, METH_NOARGS,
     "_storage_bytes($self)\n--\n\n"
     "The whole storage as a uint8 tensor that shares its memory."},
    {"_reinterpret", method_reinterpret, METH_O,
     "_reinterpret($self, dtype, /)\n--\n\n"
     "The storage's bytes as elements of another dtype."},
    {"_address", method_address, METH_NOARGS,
     "_address($self)\n--\n\n"
     "Where the first element lies now, to be compared; 0 where it has no memory."},
    {"_storage_key", method_storage_key, METH_NOARGS,
     "_storage_key($self)\n--\n\n"
     "A number that tensors over one storage share."},
    {}};

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_GET_SIZE(kwargs) == 1 && PyDict_GetItemString(kwargs, "device")) {
      if (!device_from(PyDict_GetItemString(kwargs, "device")))
        fail_type("Tensor(): device must be a device or a str");
    } else if (kwargs && PyDict_GET_SIZE(kwargs)) {
      fail_type(
          "Tensor() takes sizes or data only; use clew.tensor(data, dtype=..., requires_grad=...)");
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    Tensor made;
    const auto fresh = [](const Dims& sizes) {
      Tensor t = empty(sizes, default_dtype());
      if (modes.inference) t->flags |= flag_inference;
      return t;
    };
    if (n == 1 && !is_int(PyTuple_GET_ITEM(args, 0))) {
      PyObject* data = PyTuple_GET_ITEM(args, 0);
      if (is_tensor(data)) {
        if (type == tensor_type) refuse_placeholder(data, "Tensor");
        made = borrow(data);
      } else if (Py_TYPE(data) == size_type) {
        made = fresh(ints_from(data));
      } else if (PyObject_HasAttrString(data, "untyped")) {  // a storage, which is shared
        made = fresh(Dims{0});
        Ref empty_one(wrap(alias(made)));
        Ref(checked(PyObject_CallMethod(empty_one.get(), "set_", "O", data)));
        made = borrow(empty_one.get());
      } else {
        Ref module(checked(PyImport_ImportModule("clew")));
        Ref make(checked(PyObject_GetAttrString(module.get(), "tensor")));
        Ref dtype(dtype_object(default_dtype()));
        Ref keywords(Py_BuildValue("{s:O,s:s}", "dtype", dtype.get(), "device", "cpu"));
        Ref positional(PyTuple_Pack(1, data));
        Ref t(checked(PyObject_Call(make.get(), positional.get(), keywords.get())));
        made = borrow(t.get());
      }
    } else {
      for (Py_ssize_t i = 0; i < n; ++i)
        if (!read_as_ints(PySequence_Fast_ITEMS(args), i + 1))
          fail_type("Tensor(): sizes must be ints; got ",
                    Py_TYPE(PyTuple_GET_ITEM(args, i))->tp_name);
      made = fresh(n ? ints_from(args) : Dims{0});
    }
    return wrap(type == tensor_type ? alias(made) : make_subclass_instance(type, made));
  });
}

}  // namespace clew::python

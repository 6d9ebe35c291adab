// The argument reader of creation functions.
// May include: everything below python/.
// Invariant: nothing is created before every argument has been read.
#include "python/arguments.h"

#include "graph/batch.h"
#include "graph/inplace.h"
#include "python/convert.h"
#include "python/out_rules.h"
#include "tensor/layout.h"

namespace clew::python {

static thread_local Device standard_device = Device::CPU;
Device default_device() { return standard_device; }
void set_default_device(Device d) { standard_device = d; }

static bool ends_with(PyObject* o, std::string_view tail) {
  Ref s(checked(PyObject_Str(o)));
  return printable(s.get()).ends_with(tail);
}

bool Arguments::take_option(PyObject* key, PyObject* v, unsigned options) {
  auto is = [&](const char* name) { return is_named(key, name); };
  auto truth = [&] {
    if (!PyBool_Check(v))
      fail_type(fn, "(): argument '", printable(key), "' must be bool, not ", Py_TYPE(v)->tp_name);
    return v == Py_True;
  };
  if ((options & opt_dtype) && is("dtype")) {
    if (v == Py_None) return true;
    if (!is_dtype(v))
      fail_type(fn, "(): argument 'dtype' must be clew.dtype, not ", Py_TYPE(v)->tp_name,
                "; such as clew.float32");
    dtype = dtype_from(v);
  } else if ((options & opt_device) && is("device")) {
    if (v == Py_None) return true;
    device = device_from(v);
    if (!device)
      fail_type(fn, "(): argument 'device' must be clew.device, not ", Py_TYPE(v)->tp_name);
  } else if ((options & opt_requires_grad) && is("requires_grad")) {
    requires_grad = v != Py_None && truth();
  } else if ((options & opt_out) && is("out")) {
    if (v == Py_None) return true;
    if (!is_tensor(v))
      fail_type(fn, "(): argument 'out' must be Tensor, not ", Py_TYPE(v)->tp_name);
    out = v;
  } else if ((options & opt_generator) && is("generator")) {
    if (v != Py_None && !is_generator(v)) {
      fail_type(fn, "(): argument 'generator' must be clew.Generator, not ", Py_TYPE(v)->tp_name);
    }
    generator = generator_from_python(v);
  } else if ((options & opt_memory_format) && is("memory_format")) {
    if (v == Py_None) return true;
    if (ends_with(v, "contiguous_format"))
      memory_format = MemoryFormat::contiguous;
    else if (ends_with(v, "preserve_format"))
      memory_format = MemoryFormat::preserve;
    else if (ends_with(v, "channels_last"))
      memory_format = MemoryFormat::channels_last;
    else if (ends_with(v, "channels_last_3d"))
      memory_format = MemoryFormat::channels_last_3d;
    else
      fail_type(fn, "(): argument 'memory_format' must be clew.memory_format, not ",
                Py_TYPE(v)->tp_name);
  } else if ((options & opt_layout) && is("layout")) {
    if (v == Py_None || ends_with(v, "strided")) return true;
    if (options & opt_sparse_layout) {
      layout = v;
      return true;
    }
    fail(fn, ": only strided tensors exist here; got layout=",
         printable(Ref(checked(PyObject_Str(v))).get()));
  } else if ((options & opt_layout) && is("pin_memory")) {
    if (v != Py_None && truth()) {
      fail(fn, ": pin_memory=True needs an accelerator, and there is none; leave it out");
    }
  } else if ((options & opt_layout) && is("names") && v == Py_None) {
    return true;
  } else {
    return false;
  }
  return true;
}

Arguments::Arguments(const char* function, std::span<const char* const> names, int size_at,
                     unsigned options, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames)
    : fn(function), trace(function) {
  int count = static_cast<int>(names.size());
  Py_ssize_t used = 0;
  for (int i = 0; i < count && used < nargs; ++i) {
    if (i == size_at && is_int(args[used])) {
      rest = args + used;
      rest_count = nargs - used;
      value[i] = args[used];
      used = nargs;
      break;
    }
    value[i] = args[used++];
  }
  if (used < nargs) {
    fail_type(fn, "() takes ", count, " positional argument", count == 1 ? "" : "s", " but ", nargs,
              " were given");
  }
  Py_ssize_t kwargs = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < kwargs; ++k) {
    PyObject* key = PyTuple_GET_ITEM(kwnames, k);
    PyObject* v = args[nargs + k];
    if (take_option(key, v, options)) continue;
    int at = -1;
    for (int i = 0; i < count && at < 0; ++i) {
      if (is_named(key, names[static_cast<size_t>(i)])) at = i;
    }
    if (at < 0) {
      std::string known;
      for (int i = 0; i < count; ++i)
        known += std::string(i ? ", " : "") + names[static_cast<size_t>(i)];
      fail_type(fn, "() got an unexpected keyword argument '", printable(key),
                "'; its arguments: ", known, " and options such as dtype");
    }
    if (value[at]) fail_type(fn, "() got multiple values for argument '", printable(key), "'");
    value[at] = v;
  }
}

Dims Arguments::size(int i) const {
  PyObject* v = need(i, "size");
  Dims d;
  auto refuse = [&](PyObject* const* items, Py_ssize_t n) {
    Py_ssize_t k = 0;
    while (k + 1 < n && read_as_ints(items, k + 1)) ++k;
    fail_type(fn, "(): argument 'size' must be tuple of ints, but found element of type ",
              Py_TYPE(items[k])->tp_name, " at pos ", k);
  };
  if (rest) {
    if (!read_as_ints(rest, rest_count)) refuse(rest, rest_count);
    for (Py_ssize_t k = 0; k < rest_count; ++k) d.push_back(int_from(rest[k]));
  } else if (is_int_sequence(v)) {
    d = ints_from(v);
  } else if (is_one_int(v)) {
    d.push_back(int_from(v));
  } else if (PyTuple_Check(v) || PyList_Check(v)) {
    refuse(PySequence_Fast_ITEMS(v), PySequence_Fast_GET_SIZE(v));
  } else {
    fail_type(fn, "(): argument 'size' (position ", i + 1, ") must be tuple of ints, not ",
              Py_TYPE(v)->tp_name);
  }
  for (int64_t s : d) {
    require(s >= 0, fn, ": Trying to create tensor with negative dimension ", s, ": ", d);
  }
  return d;
}

int64_t Arguments::integer(int i, const char* name) const {
  PyObject* v = need(i, name);
  if (!is_one_int(v))
    fail_type(fn, "(): argument '", name, "' must be int, not ", Py_TYPE(v)->tp_name);
  return int_from(v);
}

Scalar Arguments::number(int i, const char* name) const {
  PyObject* v = need(i, name);
  if (is_tensor(v)) {
    if (borrow(v).requires_grad())
      fail_type(
          fn, "(): argument '", name,
          "' must be Number, not Tensor that requires grad, as this argument has no gradient; "
          "compute with tensors where it is to be learned, and pass item() otherwise");
    if (holds_a_part(v) || borrow(v).numel() == 1) return number_in(v);
  } else {
    Scalar s;
    if (scalar_from(v, s)) return s;
  }
  fail_type(fn, "(): argument '", name, "' must be Number, not ", Py_TYPE(v)->tp_name);
}

bool Arguments::boolean_or(int i, const char* name, bool otherwise) const {
  if (!has(i)) return otherwise;
  if (!PyBool_Check(value[i]))
    fail_type(fn, "(): argument '", name, "' must be bool, not ", Py_TYPE(value[i])->tp_name);
  return value[i] == Py_True;
}

Dims Arguments::strides_of(const Dims& sizes) const {
  const auto format = memory_format.value_or(MemoryFormat::contiguous);
  if (format == MemoryFormat::contiguous || format == MemoryFormat::preserve)
    return contiguous_strides(sizes);
  const int rank = format == MemoryFormat::channels_last ? 4 : 5;
  require(sizes.size() == rank, fn, ": required rank ", rank,
          " tensor to use this channels-last format; got ", sizes);
  numel_of(sizes);  // raises where their product overflows
  return channels_last_strides(sizes);
}

Tensor Arguments::fresh(const Dims& sizes, DType d, Device where) const {
  if (!memory_format) return empty(sizes, d, where);
  return empty_strided(sizes, strides_of(sizes), d, where);
}

Tensor fresh_like(const Arguments& a, const Tensor& x) {
  DType d = a.dtype_or(x.dtype());
  Device where = a.device_or(x.device());
  bool keep = a.memory_format.value_or(MemoryFormat::preserve) == MemoryFormat::preserve;
  if (keep && !x.is_contiguous()) return empty_strided(x.sizes(), kept_strides(x), d, where);
  return a.fresh(x.sizes(), d, where);
}

Tensor room_for_samples(const Tensor& t, const Tensor& x) {
  if (!is_batched(x)) return t;
  check_alive(x);
  uint32_t levels = levels_of(x);
  Dims sizes = level_sizes(levels);
  for (int64_t n : t.sizes()) sizes.push_back(n);
  Tensor whole = empty(sizes, t.dtype(), t.device());
  copy_into(whole, t);
  return make_batched(whole, levels);
}

PyObject* Arguments::finish(Tensor t) const {
  if (out) {
    Tensor o = borrow(out);
    require(!dtype || *dtype == o.dtype(), fn, ": dtype ", dtype.value_or(o.dtype()),
            " does not match dtype of out parameter (", o.dtype(), ")");
    require(!device || *device == o.device(), fn, ": device ", clew::name(device_or(o.device())),
            " does not match the device of out parameter (", clew::name(o.device()), ")");
    check_out_written(o, fn);
    if (o.sizes() != t.sizes()) {
      // Among the functions that make tensors, PyTorch warns only in these.
      const std::string_view name = fn;
      if (o.numel() != 0 && (name == "arange" || name == "range") &&
          PyErr_WarnEx(
              PyExc_UserWarning,
              concat(fn, ": an output with one or more elements was resized since it had shape ",
                     o.sizes(), ", which does not match the required output shape ", t.sizes())
                  .c_str(),
              1) < 0) {
        throw PythonError();
      }
      resize_(o, t.sizes());
    }
    refuse_self_overlap(o, fn);
    if (is_batched(o) || is_batched(t)) {
      copy_(o, t);
    } else {
      copy_into(o, t);
      bump_version(o);
    }
    t = std::move(o);
  } else if (modes.inference) {
    t->flags |= flag_inference;
  }
  if (requires_grad) {
    require(is_inexact(t.dtype()), fn,
            ": Only Tensors of floating point and complex dtype can require gradients; got ",
            t.dtype());
    physical(t)->flags |= flag_requires_grad;
  }
  return wrap(std::move(t));
}

}  // namespace clew::python

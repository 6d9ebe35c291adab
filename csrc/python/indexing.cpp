// x[key] and x[key] = value: keys are parsed once into a basic part and index tensors.
// May include: everything below python/.
// Invariant: basic keys give one view, index tensors one op after it; nothing is written before the
// whole key is checked.
#include "python/indexing.h"
#include "python/overrides.h"

#include <cstring>
#include <string>
#include <vector>

#include "base/fits.h"
#include "graph/batch.h"
#include "graph/inplace.h"
#include "ops/calls/apart.h"
#include "ops/calls/comparison.h"
#include "ops/calls/indexing.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"

namespace clew::python {

namespace {

constexpr const char* indexing_name = "indexing";

[[noreturn]] void fail_key(PyObject* o) {
  fail_index(
      "indexing: only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
      "are valid indices "
      "(got ",
      Py_TYPE(o)->tp_name, ")");
}
[[noreturn]] void fail_scalar() {
  fail_index(
      "indexing: invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to "
      "a number");
}

bool is_array(PyObject* o) { return is_numpys(o, "numpy.ndarray"); }
// True, False and NumPy's: 1, 0; else -1.
int truth(PyObject* o) {
  if (o == Py_True) return 1;
  if (o == Py_False) return 0;
  if (is_numpys(o, "numpy.bool") || is_numpys(o, "numpy.bool_")) return truth_of(o);
  return -1;
}

// ---- lists and arrays as index tensors ----------------------------------------------------------

Tensor through_python(PyObject* o) {
  Ref module(checked(PyImport_ImportModule("clew")));
  Ref t(checked(PyObject_CallMethod(module.get(), is_array(o) ? "as_tensor" : "tensor", "O", o)));
  return borrow(t.get());
}

// A list of Python ints or bools, which is what most lists are; undefined when it is something
// else.
Tensor flat_list(PyObject* o) {
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  PyObject** items = PySequence_Fast_ITEMS(o);
  bool bools = n > 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!PyLong_Check(items[i])) return {};
    bools = bools && PyBool_Check(items[i]);
  }
  Tensor t = empty({n}, bools ? DType::Bool : DType::Int64);
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (bools)
      t.data<bool>()[i] = items[i] == Py_True;
    else
      t.data<int64_t>()[i] = int_from(items[i]);
  }
  return t;
}
Tensor index_tensor(PyObject* o) {
  if (is_tensor(o)) return borrow(o);
  if (PyList_Check(o) || PyTuple_Check(o)) {
    if (Tensor t = flat_list(o)) return t;
    return through_python(o);
  }
  if (is_array(o)) return through_python(o);
  if (PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o)) {
    Ref items(items_of(o, indexing_name));
    return index_tensor(items.get());
  }
  if (PyUnicode_Check(o)) fail_type("indexing: a tensor cannot be indexed by a str");
  fail_key(o);
}

// PyTorch reads a list that holds more than numbers as a tuple.
bool stands_for_tuple(PyObject* o) {
  if (!PyList_Check(o)) return false;
  Py_ssize_t n = PyList_GET_SIZE(o);
  if (n >= 32) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* e = PyList_GET_ITEM(o, i);
    if (e == Py_None || e == Py_Ellipsis || PySlice_Check(e) || PyList_Check(e) ||
        PyTuple_Check(e) || is_tensor(e) || is_array(e)) {
      if (PyErr_WarnEx(
              PyExc_UserWarning,
              "using a list that holds more than numbers as a key is deprecated; use x[tuple(key)]",
              1) < 0) {
        throw PythonError();
      }
      return true;
    }
  }
  return false;
}

// ---- keys ---------------------------------------------------------------------------------------

struct Range {
  int64_t start, step, length;
};
Range read_slice(PyObject* o, int64_t size) {
  Py_ssize_t start = 0;
  Py_ssize_t stop = 0;
  Py_ssize_t step = 0;
  if (PySlice_Unpack(o, &start, &stop, &step) < 0) throw PythonError();
  if (step <= 0)
    fail_value("indexing: slice step must be greater than zero; got ", step,
               "; flip() turns a dim round");
  Py_ssize_t length = PySlice_AdjustIndices(size, &start, &stop, step);
  // A step so large that it takes one element is no different from 1, and cannot overflow.
  return {std::min<int64_t>(start, size), length > 1 ? step : 1, length};
}
int64_t read_int(PyObject* o, int64_t size, int dim) {
  int64_t i = int_from(o);
  if (i < -size || i >= size) {
    fail_index("indexing: index ", i, " is out of bounds for dimension ", dim, " with size ", size);
  }
  return i < 0 ? i + size : i;
}

bool is_mask(DType d) { return d == DType::Bool || d == DType::UInt8; }

// What a key means for a tensor of given sizes.
struct Key {
  BasicIndex part;
  int out_dims = 0;   // of the view
  bool whole = true;  // the view is the tensor itself
  struct At {
    int dim;  // of the view: the first one it takes
    Tensor index;
    bool truth = false;  // True or False, which take all or nothing
  };
  std::vector<At> tensors;  // in order
  bool advanced() const { return !tensors.empty(); }
  // The indices as plan_index takes them: undefined for dims that are taken whole.
  std::vector<Tensor> indices() const {
    std::vector<Tensor> out;
    int dim = 0;
    for (const At& t : tensors) {
      for (; dim < t.dim; ++dim) out.emplace_back();
      out.push_back(t.index);
      dim += is_mask(t.index.dtype()) ? t.index.ndim() : 1;
    }
    return out;
  }

  void keep(int64_t size) {
    part.start.push_back(0);
    part.step.push_back(1);
    part.length.push_back(size);
    ++out_dims;
  }
  void add_dim() {
    if (out_dims >= max_dims) fail_index("indexing: more than ", max_dims, " dimensions");
    part.added |= static_cast<int64_t>(uint64_t{1} << out_dims++);
    whole = false;
  }
};

// A whole number that lies in a NumPy array without dimensions; one of uint8 is a mask.
bool is_array_of_one_int(PyObject* o) {
  Ref count(checked(PyObject_GetAttrString(o, "ndim")));
  if (int_from(count.get()) != 0) return false;
  Ref dtype(checked(PyObject_GetAttrString(o, "dtype")));
  Ref code(checked(PyObject_GetAttrString(dtype.get(), "char")));
  const char* letter = PyUnicode_AsUTF8(code.get());
  if (!letter) throw PythonError();
  return *letter && std::strchr("bhilqHILQ", *letter);
}
// One int, as it names a place; a uint8 tensor without dimensions is a mask.
bool is_place(PyObject* o) {
  if (is_array(o)) return is_array_of_one_int(o);
  return is_int(o) && !(is_tensor(o) && is_mask(reinterpret_cast<TensorObj*>(o)->dtype));
}

int dims_taken(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis || truth(o) >= 0) return 0;
  if (is_tensor(o)) {
    auto* t = reinterpret_cast<TensorObj*>(o);
    if (is_mask(t->dtype)) return t->shape->sizes.size();
  }
  return 1;
}

void read_item(Key& k, PyObject* o, const Dims& sizes, int& dim) {
  if (o == Py_None) {
    return k.add_dim();
  }
  int boolean = truth(o);
  if (boolean < 0 && is_tensor(o)) {
    auto* t = reinterpret_cast<TensorObj*>(o);
    if (is_mask(t->dtype) && t->shape->sizes.size() == 0) boolean = item(borrow(o)).to_int() != 0;
  }
  if (boolean >= 0) {  // adds a dimension of size 1, or of size 0 for False
    k.add_dim();
    Tensor which = empty({boolean}, DType::Int64);
    fill_(which, Scalar(0));
    k.tensors.push_back({k.out_dims - 1, std::move(which), true});
    return;
  }
  if (dim >= sizes.size())
    fail_index("indexing: too many indices for tensor of dimension ", sizes.size());
  int64_t size = sizes[dim];
  if (PySlice_Check(o)) {
    Range r = read_slice(o, size);
    k.part.start.push_back(r.start);
    k.part.step.push_back(r.step);
    k.part.length.push_back(r.length);
    k.whole = k.whole && r.length == size;
    ++k.out_dims;
    ++dim;
    return;
  }
  bool of_samples = is_tensor(o) && is_batched(borrow(o));
  if (is_place(o) && !of_samples) {
    k.part.start.push_back(read_int(o, size, dim));
    k.part.step.push_back(0);
    k.part.length.push_back(1);
    k.whole = false;
    ++dim;
    return;
  }
  Tensor t = index_tensor(o);
  bool mask = is_mask(t.dtype());
  int spans = mask ? t.ndim() : 1;
  if (mask && spans == 0) {  // a 0-d array
    Ref boolean_tensor(wrap(to_dtype(t, DType::Bool)));
    return read_item(k, boolean_tensor.get(), sizes, dim);
  }
  if (dim + spans > sizes.size())
    fail_index("indexing: too many indices for tensor of dimension ", sizes.size());
  if (t.dtype() == DType::UInt8 &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "indexing with dtype clew.uint8 is now deprecated, please use a dtype clew.bool "
                   "instead.",
                   1) < 0) {
    throw PythonError();
  }
  k.tensors.push_back({k.out_dims, std::move(t), false});
  for (int i = 0; i < spans; ++i) k.keep(sizes[dim++]);
}

void read_key(Key& k, PyObject* const* items, Py_ssize_t n, const Dims& sizes) {
  int taken = 0;
  for (Py_ssize_t i = 0; i < n; ++i)
    taken += is_array(items[i]) || PyList_Check(items[i]) ? 1 : dims_taken(items[i]);
  int dim = 0;
  bool seen_ellipsis = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (items[i] != Py_Ellipsis) {
      read_item(k, items[i], sizes, dim);
      continue;
    }
    // A second ellipsis covers no dimension.
    int rest = seen_ellipsis ? 0 : sizes.size() - taken;
    seen_ellipsis = true;
    for (; rest > 0 && dim < sizes.size(); --rest) k.keep(sizes[dim++]);
  }
  while (dim < sizes.size()) k.keep(sizes[dim++]);
}

void read_whole(Key& k, PyObject* key, const Dims& sizes) {
  if (PyTuple_Check(key) || stands_for_tuple(key)) {
    // Boolean arrays and nested lists of bools take as many dims as they have: make them tensors
    // before counting.
    Ref own(items_of(key, indexing_name));
    Py_ssize_t n = PyTuple_GET_SIZE(own.get());
    PyObject** items = PySequence_Fast_ITEMS(own.get());
    bool convert = false;
    bool ellipsis = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      convert = convert || is_array(items[i]) || PyList_Check(items[i]);
      ellipsis = ellipsis || items[i] == Py_Ellipsis;
    }
    if (!convert || !ellipsis) return read_key(k, items, n, sizes);
    std::vector<Ref> kept;
    std::vector<PyObject*> converted(items, items + n);
    for (auto& o : converted) {
      if (!is_array(o) && !PyList_Check(o)) continue;
      kept.emplace_back(wrap(index_tensor(o)));
      o = kept.back().get();
    }
    return read_key(k, converted.data(), n, sizes);
  }
  read_key(k, &key, 1, sizes);
}

// Checks that x keeps its sizes: reading a key may run Python code (a slice's bounds, warnings),
// which may resize x.
struct SameSizes {
  const Tensor& x;
  const ShapeRef shape = ShapeRef::borrow(x->shape);
  void check() const {
    if (x->shape != shape.get() && x.sizes() != shape->sizes)
      fail("indexing: the tensor's sizes changed from ", shape->sizes, " to ", x.sizes(),
           " while its key was read");
  }
};

void parse(Key& k, PyObject* key, const Tensor& x) {
  const SameSizes before{x};
  read_whole(k, key, before.shape->sizes);
  before.check();
}
Range read_slice(PyObject* key, const Tensor& x) {
  const SameSizes before{x};
  const Range r = read_slice(key, before.shape->sizes[0]);
  before.check();
  return r;
}

Tensor part_of(const Tensor& x, const Key& k) {
  return k.whole && k.advanced() ? x : basic_index(x, k.part);
}

// A key of tensors and `:` alone, which are short and dense. Nothing here runs Python code.
bool plan_few(const Tensor& x, PyObject* key, IndexPlan& plan) {
  constexpr Py_ssize_t most = 4;
  PyObject* const* items = &key;
  Py_ssize_t n = 1;
  if (PyTuple_CheckExact(key)) {
    items = PySequence_Fast_ITEMS(key);
    n = PyTuple_GET_SIZE(key);
  }
  if (n > most) return false;
  TensorObj* indices[most] = {};  // a Tensor is one pointer: they are lent, not counted
  bool any = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (is_tensor(items[i])) {
      indices[i] = reinterpret_cast<TensorObj*>(items[i]);
      any = true;
      continue;
    }
    if (!PySlice_Check(items[i])) return false;
    auto* s = reinterpret_cast<PySliceObject*>(items[i]);
    if (s->start != Py_None || s->stop != Py_None || s->step != Py_None) return false;
  }
  return any && clew::plan_few(
                    x, {reinterpret_cast<const Tensor*>(indices), static_cast<size_t>(n)}, plan);
}

Tensor get(const Tensor& x, PyObject* key) {
  if (PyLong_CheckExact(key)) {
    if (x.ndim() == 0) fail_scalar();
    return select(x, 0, read_int(key, x.size(0), 0));
  }
  if (PySlice_Check(key) && x.ndim() > 0) {
    Range r = read_slice(key, x);
    return slice(x, 0, r.start, r.length ? r.start + (r.length - 1) * r.step + 1 : r.start, r.step);
  }
  if (key == Py_None) return unsqueeze(x, 0);
  if (x.ndim() == 0 && is_place(key)) fail_scalar();
  if (IndexPlan plan; plan_few(x, key, plan)) return index_at(x, plan.places, plan.dims);
  Key k;
  parse(k, key, x);
  Tensor part = part_of(x, k);
  if (!k.advanced()) return part;
  std::vector<Tensor> indices = k.indices();
  if (uint32_t levels = levels_of(indices)) {
    indices.insert(indices.begin(), part);
    Tensors outs;
    for_each_sample(indices, levels | levels_of(part), outs, [](auto in, Tensors& o) {
      IndexPlan plan = plan_index(in[0], in.subspan(1), indexing_name);
      o.push_back(index_at(in[0], plan.places, plan.dims));
    });
    return outs[0];
  }
  IndexPlan plan = plan_index(part, indices, indexing_name);
  return index_at(part, plan.places, plan.dims);
}

// ---- assignment ---------------------------------------------------------------------------------

// The value without leading dimensions of size 1 that the target has no room for.
Tensor trimmed(const Tensor& value, int ndim) {
  if (value.ndim() <= ndim) return value;
  int drop = 0;
  while (drop < value.ndim() - ndim && value.size(drop) == 1) ++drop;
  if (!drop) return value;
  return reshape(value, Dims(value.sizes().data() + drop, value.ndim() - drop));
}

Tensor value_tensor(PyObject* value, const Tensor& x) {
  if (is_tensor(value)) return borrow(value);
  Scalar s;
  if (scalar_from(value, s)) {
    if (!keeps_parts(s, x.dtype()) || is_integral(x.dtype()))
      require_fits(indexing_name, s, x.dtype());
    return x.is_meta() ? empty({}, x.dtype(), Device::Meta) : scalar_tensor(s, x.dtype());
  }
  Tensor t = tensor_or_number(value);
  if (!t)
    fail_type("indexing: can't assign a ", Py_TYPE(value)->tp_name, " to a ", x.dtype(), " tensor");
  return t;
}

// A mask that names the places of one number takes it in any dtype, as masked_fill_ does.
void check_dtype(const Tensor& x, const Tensor& v, const Key& key) {
  if (v.dtype() == x.dtype()) return;
  const Key::At& first = key.tensors[0];
  if (key.tensors.size() == 1 &&
      (first.truth || (v.numel() == 1 && first.index.dtype() == DType::Bool)))
    return;
  fail("indexing: what is put at places that tensors name must have the tensor's dtype; got ",
       v.dtype(), " for ", x.dtype(), ". Convert it with .to(x.dtype)");
}
void put(const Tensor& x, const IndexPlan& plan, Tensor v) {
  if (v.dtype() != x.dtype()) v = to_dtype(v, x.dtype());
  const int ndim = x.ndim() - plan.dims.size() + plan.places.ndim();
  index_put_(x, trimmed(v, ndim), plan.places, plan.dims, false);
}

void write(const Tensor& part, const Tensor& v) {
  refuse_self_overlap(part, "indexing");
  copy_(part, trimmed(v.numel() < part.numel() ? apart_from(v, part) : v, part.ndim()));
}

// Whether a mask names the places of one number, and nothing is recorded.
bool is_filled(const Tensor& x, const Tensor& mask, const Tensor& value) {
  return mask.dtype() == DType::Bool && value.ndim() == 0 && value.dtype() == x.dtype() &&
         x.ndim() > 0 && x.has_sizes_of(mask) && x.is_meta() == mask.is_meta() &&
         !((x->flags | mask->flags | value->flags) & flag_batched) &&
         !(modes.grad && (x.requires_grad() || value.requires_grad()));
}
void set(const Tensor& x, PyObject* key, PyObject* value) {
  Tensor v = value_tensor(value, x);
  if (key == Py_False) return;  // names no element, so any value fits
  if (PyLong_CheckExact(key)) {
    if (x.ndim() == 0) fail_scalar();
    return write(select(x, 0, read_int(key, x.size(0), 0)), v);
  }
  if (x.ndim() == 0 && is_place(key)) fail_scalar();
  if (is_tensor(key) && is_filled(x, borrow(key), v)) return masked_fill_(x, borrow(key), v);
  if (IndexPlan plan; v.dtype() == x.dtype() && plan_few(x, key, plan))
    return put(x, plan, std::move(v));
  Key k;
  parse(k, key, x);
  if (!k.advanced()) return write(k.whole ? x : basic_index(x, k.part), v);
  check_dtype(x, v, k);
  Tensor part = part_of(x, k);
  if (k.tensors.size() == 1 && k.tensors[0].truth) refuse_self_overlap(part, indexing_name);
  std::vector<Tensor> all = k.indices();
  all.insert(all.begin(), {part, v});
  if (levels_of(k.indices())) {
    uint32_t levels = levels_of(all);
    if (levels & ~levels_of(part))
      fail(
          "vmap: indexing: the tensor assigned to is shared by all samples, while what is "
          "assigned differs between them; make it from a batched one (zeros_like, new_zeros)");
    Tensors none;
    for_each_sample(all, levels, none, [](auto in, Tensors&) {
      IndexPlan plan = plan_index(in[0], in.subspan(2), indexing_name);
      int ndim = in[0].ndim() - plan.dims.size() + plan.places.ndim();
      index_put_(in[0], trimmed(to_dtype(in[1], in[0].dtype()), ndim), plan.places, plan.dims,
                 false);
    });
    return;
  }
  put(part, plan_index(part, k.indices(), indexing_name), std::move(v));
}

}  // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* key) {
  return guarded([&] {
    if (overriding) {
      PyObject* both[2] = {self, key};
      if (PyObject* result = overridden_method("__getitem__", both, 2)) return result;
    }
    return wrap(get(Tensor::borrow(reinterpret_cast<TensorObj*>(self)), key));
  });
}

int tensor_setitem(PyObject* self, PyObject* key, PyObject* value) {
  return guarded_int([&] {
    if (!value) fail_type("indexing: a tensor does not support deleting items");
    if (overriding && is_tensor(value) && Py_TYPE(value) != tensor_type &&
        Py_TYPE(self) != Py_TYPE(value)) {
      PyObject* all[3] = {self, key, value};
      if (Ref result{overridden_method("__setitem__", all, 3)}; result.get()) return;
    }
    set(Tensor::borrow(reinterpret_cast<TensorObj*>(self)), key, value);
  });
}

}  // namespace clew::python

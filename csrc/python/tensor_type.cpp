// The Tensor type: life cycle, operators, attributes.
// May include: everything below python/.
// Invariant: an operator slot does no more than parse its operands and call apply().
#include "graph/batch.h"
#include "graph/deferral.h"
#include "graph/gather.h"
#include "graph/inplace.h"
#include "ops/calls/unary.h"
#include "python/autograd.h"
#include "python/bridge.h"
#include "python/convert.h"
#include "python/indexing.h"
#include "python/overrides.h"
#include "python/signature.h"
#include "python/tensor_methods.h"

namespace clew::python {

namespace {

PyObject* py(TensorObj* o) { return reinterpret_cast<PyObject*>(o); }

void tensor_dealloc(PyObject* o) { free_tensor_obj(obj(o)); }

// What Python objects a node holds.
int visit_node(Node& n, visitproc visit, void* arg) {
  Py_VISIT(n.python_object());
  const Node& inner = n.inner();
  const bool shared = &inner != &n && inner.refs > 1;  // other nodes own `inner` too
  for (const Saved& s : shared ? std::span<const Saved>() : n.saved_tensors()) {
    if (s.kind == Saved::Kind::object) {
      Py_VISIT(s.tensor);
    } else if (s.kind == Saved::Kind::packed) {
      Py_VISIT(s.hooked->value);
      Py_VISIT(s.hooked->unpack);
    }
  }
  if (!n.extra) return 0;
  for (const auto& h : n.extra->tensor_hooks) Py_VISIT(h.dict);
  Py_VISIT(n.extra->pre_hooks);
  Py_VISIT(n.extra->post_hooks);
  Py_VISIT(n.extra->metadata);
  return 0;
}

// Only tensors with a __dict__ or hooks, or made by a function written in Python, can be part of a
// cycle, and only those are tracked.
int tensor_traverse(PyObject* o, visitproc visit, void* arg) {
  TensorObj* t = obj(o);
  Py_VISIT(t->dict);
  Py_VISIT(t->base);
  Py_VISIT(t->grad);
  if (t->extra) {
    Py_VISIT(t->extra->hooks);
    Py_VISIT(t->extra->post_accumulate_hooks);
  }
  // If this tensor alone holds its node, the node's references count as the tensor's own.
  if (t->grad_fn && t->grad_fn->refs == 1)
    if (int status = visit_node(*t->grad_fn, visit, arg)) return status;
  Py_VISIT(Py_TYPE(o));
  return 0;
}
int tensor_clear(PyObject* o) {
  TensorObj* t = obj(o);
  Py_CLEAR(t->dict);
  if (t->extra) {
    Py_CLEAR(t->extra->hooks);
    Py_CLEAR(t->extra->post_accumulate_hooks);
  }
  return 0;
}

// Setting an attribute makes a __dict__, so the object may from then on be part of a cycle.
int tensor_setattro(PyObject* o, PyObject* name, PyObject* value) {
  int status = PyObject_GenericSetAttr(o, name, value);
  if (obj(o)->dict) track(obj(o));
  return status;
}

// ---- operators ----

struct OperatorOp {
  Overload* overload = nullptr;
};
const Overload* lookup(const char* name) {
  FunctionEntry* e = find_entry(name);
  if (!e) fail_internal("the operator needs an operation called ", name);
  return e->overloads.front().get();
}

// Operator tables are filled when first used: names to overloads.
template <class Tag> const Overload& cached(const char* name) {
  static const Overload* o = lookup(name);
  return *o;
}

template <size_t N> struct Name {
  char text[N];
  constexpr Name(const char (&s)[N]) { std::copy_n(s, N, text); }
};

template <size_t N> constexpr Name<N + 1> with_underscore(const Name<N>& name) {
  char text[N + 1] = {};
  std::copy_n(name.text, N - 1, text);
  text[N - 1] = '_';
  return Name<N + 1>(text);
}

PyObject* apply_to(const Overload& o, std::span<const Tensor> in) {
  return wrap(apply_one(*o.op, in, o.defaults));
}

// A product with a NumPy array, whose dtype is seldom meant, has the common dtype of both.
void match_dtypes(Tensor (&in)[2]) {
  if (in[0].dtype() == in[1].dtype()) return;
  DType d = promote(in[0].dtype(), in[1].dtype());
  for (Tensor& t : in) t = to_dtype(t, d);
}

bool is_subclassed(PyObject* o) { return is_tensor(o) && Py_TYPE(o) != tensor_type; }

// The method that classes are asked for where the tensor is the right operand; those of sums,
// products and bits are those of the left one.
constexpr const char* reflected(std::string_view name) {
  constexpr std::pair<std::string_view, const char*> methods[] = {
      {"sub", "__rsub__"},
      {"div", "__rtruediv__"},
      {"floor_divide", "__rfloordiv__"},
      {"remainder", "__rmod__"},
      {"pow", "__rpow__"},
      {"matmul", "__rmatmul__"},
      {"bitwise_left_shift", "__rlshift__"},
      {"bitwise_right_shift", "__rrshift__"}};
  for (const auto& [operation, method] : methods)
    if (operation == name) return method;
  return nullptr;
}

template <Name name> PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    static const Overload& o = *lookup(name.text);
    // Reached by super().__add__(), by Tensor.__radd__(), and when the left operand's class is not
    // a base of the right one's.
    bool declined = false;
    if (overriding && (is_subclassed(a) || is_subclassed(b))) {
      static constexpr const char* turned = reflected(name.text);
      Ref result(is_tensor(a) ? overridden_operator(name.text, a, b, &declined)
                              : overridden_operator(turned ? turned : name.text, b, a, &declined));
      if (declined || result.get() != Py_NotImplemented) return result.release();
    }
    if (is_tensor(a) && is_tensor(b)) {
      TensorObj* pair[2] = {obj(a),
                            obj(b)};  // Tensor is one pointer: borrowed operands need no counting
      static_assert(sizeof(Tensor) == sizeof(TensorObj*));
      return apply_to(o, {reinterpret_cast<const Tensor*>(pair), 2});
    }
    Tensor in[2] = {tensor_or_number(a), tensor_or_number(b)};
    if (!in[0].defined() || !in[1].defined())
      return overridden_operator(name.text, a, b, &declined);
    if constexpr (std::string_view(name.text) == "matmul") {
      if (in[is_tensor(a) ? 1 : 0].ndim() == 0) Py_RETURN_NOTIMPLEMENTED;  // a number
      match_dtypes(in);
    }
    return apply_to(o, in);
  });
}

template <Name name> PyObject* binary_inplace(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    static const Overload& o = *lookup(name.text);
    static constexpr auto in_place = with_underscore(name);
    if (overriding && is_subclassed(b) && !is_subclassed(a)) {
      bool declined = false;
      Ref result(overridden_operator(in_place.text, a, b, &declined));
      if (declined || result.get() != Py_NotImplemented) return result.release();
    }
    Tensor in[2] = {tensor_or_number(a), tensor_or_number(b)};
    if (!in[0].defined() || !in[1].defined()) Py_RETURN_NOTIMPLEMENTED;
    apply_inplace(*o.op, in, o.defaults);
    Py_INCREF(a);
    return a;
  });
}

template <Name name> PyObject* unary(PyObject* a) {
  return guarded([&]() -> PyObject* {
    static const Overload& o = *lookup(name.text);
    if (overriding && is_subclassed(a))
      if (PyObject* result = overridden_method(name.text, &a, 1)) return result;
    TensorObj* one[1] = {obj(a)};
    return apply_to(o, {reinterpret_cast<const Tensor*>(one), 1});
  });
}

PyObject* invert(PyObject* a) {
  return guarded([&]() -> PyObject* {
    const DType d = borrow(a).dtype();
    if (is_inexact(d) && !is_subclassed(a))
      fail_type("~: only of integers and truth values; got ", d,
                "; compare to get truth values, or convert first, e.g. with .long()");
    return unary<"bitwise_not">(a);
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow: a modulus is not supported for tensors");
    return nullptr;
  }
  return binary<"pow">(a, b);
}
PyObject* power_inplace(PyObject* a, PyObject* b, PyObject*) { return binary_inplace<"pow">(a, b); }
PyObject* positive(PyObject* a) {
  Py_INCREF(a);
  return a;
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT: return binary<"lt">(a, b);
    case Py_LE: return binary<"le">(a, b);
    case Py_EQ: return binary<"eq">(a, b);
    case Py_NE: return binary<"ne">(a, b);
    case Py_GT: return binary<"gt">(a, b);
    default: return binary<"ge">(a, b);
  }
}

Py_hash_t tensor_hash(PyObject* o) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(o) >> 4);
}

Py_ssize_t tensor_len(PyObject* o) {
  if (obj(o)->shape->sizes.empty()) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return obj(o)->shape->sizes[0];
}

int tensor_bool(PyObject* o) {
  int result = 0;
  int status = guarded_int([&] {
    TensorObj* t = obj(o);
    if (t->shape->numel != 1)
      fail("Boolean value of Tensor with ",
           t->shape->numel == 0 ? "no values" : "more than one value",
           " is ambiguous; use .any() or .all(); got ", borrow(o));
    Scalar s = item(borrow(o));
    result = s.is_complex() ? (s.re != 0 || s.im != 0) : s.is_float() ? s.re != 0 : s.i != 0;
  });
  return status < 0 ? -1 : result;
}

PyObject* tensor_iter(PyObject* o) {
  if (obj(o)->shape->sizes.empty()) {
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
    return nullptr;
  }
  Ref parts(PyObject_CallMethod(o, "unbind", "i", 0));
  return parts ? PyObject_GetIter(parts.get()) : nullptr;
}

// ---- attributes ----

PyObject* get_shape(PyObject* o, void*) {
  return guarded([&] { return size_object(obj(o)->shape); });
}
PyObject* get_dtype(PyObject* o, void*) { return dtype_object(obj(o)->dtype); }
PyObject* get_device(PyObject* o, void*) { return device_object(borrow(o).device()); }
PyObject* get_ndim(PyObject* o, void*) { return PyLong_FromLong(obj(o)->shape->sizes.size()); }
// A view made while nothing was recorded gives its base's requires_grad, as in PyTorch.
PyObject* get_requires_grad(PyObject* o, void*) {
  const Tensor t = borrow(o);
  const bool follows = t->base && !is_batched(t) && is_inexact(t.dtype());
  return PyBool_FromLong(t.requires_grad() || (follows && t.view_as_base().requires_grad()));
}
int set_requires_grad(PyObject* o, PyObject* value, void*) {
  return guarded_int([&] {
    if (!value || !PyBool_Check(value)) fail_type("requires_grad must be a bool");
    set_requires_grad_flag(borrow(o), value == Py_True);
  });
}
PyObject* get_is_leaf(PyObject* o, void*) {
  return guarded([&] { return PyBool_FromLong(grad_fn_of(borrow(o)) == nullptr); });
}
PyObject* get_grad(PyObject* o, void*) {
  TensorObj* t = obj(o);
  if (!t->grad) {
    if (t->grad_fn && !(t->extra && t->extra->retains_grad) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. "
                     "Its .grad attribute won't "
                     "be populated during autograd.backward(). Call .retain_grad() on it before "
                     "backward() if you want it.",
                     1) < 0)
      return nullptr;
    Py_RETURN_NONE;
  }
  Py_INCREF(py(t->grad));
  return py(t->grad);
}
int set_grad(PyObject* o, PyObject* value, void*) {
  return guarded_int([&] {
    TensorObj* t = obj(o);
    Tensor fresh;
    if (value && value != Py_None) {
      if (!is_tensor(value))
        fail_type("grad: assigned grad must be a Tensor or None; got ", Py_TYPE(value)->tp_name);
      fresh = borrow(value);
      require(!is_batched(fresh) || (t->flags & flag_batched),
              "vmap: a batched tensor cannot become the .grad of one that all samples share");
      require(value != o, "grad: can't assign a tensor as its own grad");
      require(fresh.sizes() == t->shape->sizes, "grad: assigned grad must have the tensor's shape ",
              t->shape->sizes, "; got ", fresh);
      require(fresh.dtype() == t->dtype, "grad: assigned grad must have dtype ", t->dtype, "; got ",
              fresh.dtype());
      require(gradient_device(fresh) == borrow(o).device(),
              "grad: assigned grad must be on the tensor's device");
    }
    std::swap(t->grad, *reinterpret_cast<TensorObj**>(&fresh));
  });
}
PyObject* get_grad_fn(PyObject* o, void*) {
  return guarded([&] { return node_object(grad_fn_of(borrow(o))); });
}
PyObject* get_data(PyObject* o, void*) {
  return guarded([&] {
    Tensor t = alias(borrow(o));
    carry_cut(t.get(), reinterpret_cast<TensorObj*>(o), CutKind::data);
    t->flags |= flag_own_version;
    if (is_batched(t)) t->base->flags |= flag_own_version;
    return wrap(std::move(t));
  });
}
int set_data(PyObject* o, PyObject* value, void*) {
  return guarded_int([&] {
    if (!value || !is_tensor(value))
      fail_type("data must be set to a Tensor; got ", value ? Py_TYPE(value)->tp_name : "nothing");
    Tensor self = borrow(o), source = borrow(value);
    require_elements(self, "setting .data");
    require_elements(source, "setting .data");
    if (Py_TYPE(o) != Py_TYPE(value)) refuse_placeholder(value, "setting .data");
    if (self.requires_grad() && !is_inexact(source.dtype()))
      fail(
          "data: a tensor that requires grad can only be set to floating point or complex data; "
          "got ",
          source);
    settle_gathered(source);
    // Waiting calls must read the old contents.
    if (self->storage->awaited || (self->flags & flag_gathered)) settle_storage(self->storage);
    Storage* s = source->storage;
    self->dtype = source.dtype();
    set_storage(self, s, source->offset, source.sizes(), source.strides());
  });
}
PyObject* get_version(PyObject* o, void*) {
  if (obj(o)->flags & flag_inference)
    return guarded([]() -> PyObject* {
      fail(
          "_version: inference tensors do not track version counters; clone() gives a tensor that "
          "does");
    });
  return PyLong_FromUnsignedLong(obj(o)->storage->version);
}
PyObject* get_base(PyObject* o, void*) {
  bool view = obj(o)->base && !(obj(o)->flags & flag_batched);
  PyObject* base = view ? py(obj(o)->base) : Py_None;
  Py_INCREF(base);
  return base;
}
PyObject* get_output_nr(PyObject* o, void*) {
  return PyLong_FromUnsignedLong(physical(borrow(o))->output_nr);
}
PyObject* get_itemsize(PyObject* o, void*) { return PyLong_FromSize_t(itemsize(obj(o)->dtype)); }
PyObject* get_nbytes(PyObject* o, void*) {
  return PyLong_FromLongLong(obj(o)->shape->numel * static_cast<int64_t>(itemsize(obj(o)->dtype)));
}
PyObject* get_retains_grad(PyObject* o, void*) {
  return PyBool_FromLong(obj(o)->grad_fn && obj(o)->extra && obj(o)->extra->retains_grad);
}
PyObject* get_is_meta(PyObject* o, void*) { return PyBool_FromLong(obj(o)->storage->is_meta()); }
PyObject* get_is_cpu(PyObject* o, void*) { return PyBool_FromLong(!obj(o)->storage->is_meta()); }
PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }
template <Name name> PyObject* get_by_op(PyObject* o, void*) { return unary<name>(o); }
PyObject* get_weakly_number(PyObject* o, void*) {
  return PyBool_FromLong(obj(o)->flags & flag_wrapped_number);
}

PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, nullptr, "The sizes of all dims.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type.", nullptr},
    {"device", get_device, nullptr, "Where the elements are.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dims.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad,
     "Whether operations on the tensor are recorded.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Whether no recorded operation made the tensor.", nullptr},
    {"grad", get_grad, set_grad, "The gradient gathered by backward(), or None.", nullptr},
    {"_grad", get_grad, set_grad, nullptr, nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node of the operation that made the tensor, or None.",
     nullptr},
    {"data", get_data, set_data,
     "The same elements without history; writes through it go unnoticed by autograd.", nullptr},
    {"_version", get_version, nullptr, "How many in-place writes the storage has seen.", nullptr},
    {"_base", get_base, nullptr, "The tensor this one is a view of, or None.", nullptr},
    {"output_nr", get_output_nr, nullptr, "Which output of grad_fn the tensor is.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "Whether a non-leaf keeps its gradient.", nullptr},
    {"is_meta", get_is_meta, nullptr, "Whether the tensor has a shape but no elements.", nullptr},
    {"is_cpu", get_is_cpu, nullptr, "Whether the elements are in main memory.", nullptr},
    {"is_cuda", get_false, nullptr, "Whether the elements are on a CUDA device: False.", nullptr},
    {"is_mps", get_false, nullptr, "Whether the elements are on an MPS device: False.", nullptr},
    {"is_xpu", get_false, nullptr, "Whether the elements are on an XPU device: False.", nullptr},
    {"is_ipu", get_false, nullptr, "Whether the elements are on an IPU device: False.", nullptr},
    {"is_maia", get_false, nullptr, "Whether the elements are on a MAIA device: False.", nullptr},
    {"is_mtia", get_false, nullptr, "Whether the elements are on an MTIA device: False.", nullptr},
    {"is_vulkan", get_false, nullptr, "Whether the elements are on a Vulkan device: False.",
     nullptr},
    {"is_xla", get_false, nullptr, "Whether the elements are on an XLA device: False.", nullptr},
    {"is_mkldnn", get_false, nullptr, "Whether the elements are in oneDNN's layout: False.",
     nullptr},
    {"is_sparse", get_false, nullptr, "Whether the tensor is sparse in coordinates.", nullptr},
    {"is_quantized", get_false, nullptr, "Whether the elements are quantized: False.", nullptr},
    {"is_nested", get_false, nullptr, "Whether the tensor is a ragged one.", nullptr},
    {"_is_wrapped_number", get_weakly_number, nullptr, nullptr, nullptr},
    {}};

PyMemberDef tensor_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObj, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObj, weakrefs), READONLY, nullptr},
    {}};
PyObject* get_dict(PyObject* o, void*) {
  PyObject* dict = PyObject_GenericGetDict(o, nullptr);
  if (dict) track(obj(o));  // its holder can make a cycle
  return dict;
}
int set_dict(PyObject* o, PyObject* value, void*) {
  int status = PyObject_GenericSetDict(o, value, nullptr);
  if (status == 0) track(obj(o));
  return status;
}
PyGetSetDef dict_getset = {"__dict__", get_dict, set_dict, nullptr, nullptr};

}  // namespace

Tensor make_subclass_instance(PyTypeObject* type, const Tensor& source) {
  if (type == tensor_type) return alias(source);
  require_elements(source, type->tp_name);
  auto* t = reinterpret_cast<TensorObj*>(checked(type->tp_alloc(type, 0)));
  enlist(t);
  t->shape = ShapeRef::borrow(source->shape).release();
  t->storage = source->storage;
  t->storage->incref();
  t->offset = source->offset;
  t->dtype = source->dtype;
  t->view_kind = ViewKind::plain;
  t->flags = source->flags & (flag_own_version | flag_inference | flag_conj);
  track(t);  // which its allocation did
  return Tensor::steal(t);
}

void set_requires_grad_flag(const Tensor& t, bool on) {
  if (is_batched(t)) return set_requires_grad_flag(physical(t), on);
  if (collects()) deferral.run_collected();  // gathered calls go on to its history
  if (grad_fn_of(t)) {
    if (!on)
      fail(
          "requires_grad: you can only change requires_grad flags of leaf variables; use detach() "
          "for a tensor without history");
    return;
  }
  if (on && !is_inexact(t.dtype()))
    fail(
        "requires_grad: only Tensors of floating point and complex dtype can require gradients; "
        "got ",
        t);
  if (on && (t->flags & flag_inference) && !modes.inference)
    fail(
        "requires_grad: setting requires_grad=True on an inference tensor outside InferenceMode is "
        "not allowed");
  if (on)
    t->flags |= flag_requires_grad;
  else
    t->flags &= static_cast<uint8_t>(~flag_requires_grad);
}

namespace {
constexpr const char* tensor_doc =
    R"(Tensor(*data, device=None)
--

A regular grid of numbers of one dtype, which may know the operations that made it.

Make one with clew.tensor(data), clew.zeros(sizes) and their like. An operation on a tensor that
requires grad is recorded as it runs; backward() follows the record and adds gradients to the
.grad of the tensors it began with.

Args:
    data: sizes as ints, or one sequence of values; of the default dtype.
    device: "cpu".

Example:
    >>> x = clew.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
)";
}  // namespace

void add_tensor_type(PyObject* module) {
  std::vector<PyMethodDef>* methods =
      new std::vector<PyMethodDef>();  // the type keeps pointing at it
  for (PyMethodDef* table : {tensor_methods, history_methods, convert_methods})
    for (PyMethodDef* m = table; m->ml_name; ++m) methods->push_back(*m);
  methods->push_back({});
  std::vector<PyGetSetDef>* getset = new std::vector<PyGetSetDef>();
  for (PyGetSetDef* g = tensor_getset; g->name; ++g) getset->push_back(*g);
  getset->push_back(dict_getset);
  getset->push_back({});
  PyType_Slot slots[] = {slot(Py_tp_dealloc, tensor_dealloc),
                         slot(Py_tp_traverse, tensor_traverse),
                         slot(Py_tp_clear, tensor_clear),
                         slot(Py_tp_setattro, tensor_setattro),
                         slot(Py_tp_hash, tensor_hash),
                         slot(Py_tp_richcompare, compare),
                         slot(Py_tp_iter, tensor_iter),
                         slot(Py_tp_new, tensor_new),
                         slot(Py_tp_methods, methods->data()),
                         slot(Py_tp_getset, getset->data()),
                         slot(Py_tp_members, tensor_members),
                         slot(Py_tp_doc, tensor_doc),
                         slot(Py_nb_add, binary<"add">),
                         slot(Py_nb_subtract, binary<"sub">),
                         slot(Py_nb_multiply, binary<"mul">),
                         slot(Py_nb_true_divide, binary<"div">),
                         slot(Py_nb_floor_divide, binary<"floor_divide">),
                         slot(Py_nb_remainder, binary<"remainder">),
                         slot(Py_nb_power, power),
                         slot(Py_nb_matrix_multiply, binary<"matmul">),
                         slot(Py_nb_and, binary<"bitwise_and">),
                         slot(Py_nb_or, binary<"bitwise_or">),
                         slot(Py_nb_xor, binary<"bitwise_xor">),
                         slot(Py_nb_lshift, binary<"bitwise_left_shift">),
                         slot(Py_nb_rshift, binary<"bitwise_right_shift">),
                         slot(Py_nb_inplace_add, binary_inplace<"add">),
                         slot(Py_nb_inplace_subtract, binary_inplace<"sub">),
                         slot(Py_nb_inplace_multiply, binary_inplace<"mul">),
                         slot(Py_nb_inplace_true_divide, binary_inplace<"div">),
                         slot(Py_nb_inplace_floor_divide, binary_inplace<"floor_divide">),
                         slot(Py_nb_inplace_remainder, binary_inplace<"remainder">),
                         slot(Py_nb_inplace_power, power_inplace),
                         slot(Py_nb_inplace_and, binary_inplace<"bitwise_and">),
                         slot(Py_nb_inplace_or, binary_inplace<"bitwise_or">),
                         slot(Py_nb_inplace_xor, binary_inplace<"bitwise_xor">),
                         slot(Py_nb_inplace_lshift, binary_inplace<"bitwise_left_shift">),
                         slot(Py_nb_inplace_rshift, binary_inplace<"bitwise_right_shift">),
                         slot(Py_nb_negative, unary<"neg">),
                         slot(Py_nb_positive, positive),
                         slot(Py_nb_absolute, unary<"abs">),
                         slot(Py_nb_invert, invert),
                         slot(Py_nb_bool, tensor_bool),
                         slot(Py_nb_float, tensor_float),
                         slot(Py_nb_int, tensor_int),
                         slot(Py_nb_index, tensor_index),
                         slot(Py_mp_length, tensor_len),
                         slot(Py_mp_subscript, tensor_getitem),
                         slot(Py_mp_ass_subscript, tensor_setitem),
                         {0, nullptr}};
  PyType_Spec spec = {"clew.Tensor", sizeof(TensorObj), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  tensor_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type));
}

}  // namespace clew::python

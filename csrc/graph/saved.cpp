// Saved tensors: keeping them for backward, bringing them back, saved-tensor hooks.
// May include: graph.
// Invariant: a gradient rule gets what the forward pass saved, in shape, dtype, device and layout.
#include <memory>

#include "graph/batch.h"
#include "graph/explain.h"
#include "graph/node.h"
#include "tensor/bits.h"

namespace clew {

// Where elements say which others are used: of integers and truth values.
static bool has_fingerprint(const Tensor& t) {
  return !is_inexact(t.dtype()) && !t.is_meta() && !(t->flags & flag_batched);
}

// Packs t by the innermost hook. `for_rule`: one of clew's gradient rules will use what is
// unpacked.
static Packed* pack(const Tensor& t, bool for_rule) {
  PyObject* hooks =  // owned: the hook may take itself off
      Py_NewRef(
          PyList_GET_ITEM(modes.saved_hook_stack, PyList_GET_SIZE(modes.saved_hook_stack) - 1));
  auto packed = std::make_unique<Packed>();
  packed->unpack = Py_NewRef(PyTuple_GET_ITEM(hooks, 1));
  packed->device = t.device();
  packed->batched = t->flags & flag_batched;
  if (for_rule && has_fingerprint(t)) packed->fingerprint = fingerprint_of(t);
  Tensor plain = alias(t);
  const uint32_t version = plain->storage->version;
  GradMode off(false);
  packed->value =
      PyObject_CallOneArg(PyTuple_GET_ITEM(hooks, 0), reinterpret_cast<PyObject*>(plain.get()));
  Py_DECREF(hooks);
  if (!packed->value) throw PythonError();
  if (plain->storage->version != version)
    fail(
        "saved_tensors_hooks: A saved tensor pack hook is modifying its input in place. Tensors "
        "provided as input to pack hook can not be modified by in-place operations, since others "
        "use them; change a clone() instead");
  return packed.release();
}

// A copy of t that lies as a tensor of this shape does; a view's gaps are closed.
static Tensor in_layout(const Tensor& t, const Shape& shape) {
  Tensor own = is_non_overlapping_and_dense(shape.sizes, shape.strides)
                   ? empty_strided(shape.sizes, shape.strides, t.dtype(), t.device())
                   : empty(shape.sizes, t.dtype(), t.device());
  copy_into(own, t);
  return own;
}

// Checks what the unpack hook gives back. Rules rely on what the forward pass checked: shape,
// dtype, device and, for integers and bools, the elements. They rely on its layout as well, so a
// tensor with another layout is copied.
static Tensor unpack(const Node& node, const Packed& packed, Shape* saved_shape, DType dtype) {
  const ShapeRef shape = saved_shape ? ShapeRef::borrow(saved_shape) : ShapeRef();
  const Device device = packed.device;
  const bool batched = packed.batched;
  const uint64_t fingerprint = packed.fingerprint;
  PyObject* hook = Py_NewRef(packed.unpack);  // the call may release what was saved
  PyObject* value = Py_NewRef(packed.value);
  PyObject* got = PyObject_CallOneArg(hook, value);
  Py_DECREF(hook);
  Py_DECREF(value);
  if (!got) throw PythonError();
  if (!PyObject_TypeCheck(got, tensor_type)) {
    std::string type = Py_TYPE(got)->tp_name;
    Py_DECREF(got);
    fail_type("saved_tensors_hooks: the unpack hook must return a Tensor; got ", type);
  }
  Tensor t = Tensor::steal(reinterpret_cast<TensorObj*>(got));
  if (!shape) return t;  // a function written in Python gets it
  GradMode off(false);
  const bool converts =
      is_inexact(dtype) && is_inexact(t.dtype()) && is_complex(dtype) == is_complex(t.dtype());
  if (t.sizes() != shape->sizes || t.device() != device || (t.dtype() != dtype && !converts) ||
      (t->flags & flag_batched) != (batched ? flag_batched : 0))
    fail("saved_tensors_hooks: ", node.name(), " needs what it saved, ", dtype, shape->sizes,
         " on ", name(device), ", but the unpack hook returned ", t, " on ", name(t.device()),
         "; return a tensor of the same shape, dtype and device");
  if (t.dtype() != dtype) t = builtins.to_dtype(t, dtype);
  t = alias(t);
  if (batched) return t;
  // A checkpoint that does not keep the random state draws a new mask on purpose, so masks are not
  // compared.
  const auto* made = dynamic_cast<const OpNode*>(&node);
  const bool drawn = dtype == DType::Bool && made && is_random(*made->op);
  if (!drawn && has_fingerprint(t) && fingerprint_of(t) != fingerprint)
    fail("saved_tensors_hooks: the unpack hook returned other elements than ", node.name(),
         " saved; integers and truth values (indices, masks, targets) must come back unchanged");
  return t.strides() == shape->strides ? t : in_layout(t, *shape);
}

// Whether parts are enough to name the output: they do not hold an output number, so only output 0
// qualifies.
static bool output_nr_is_told(const Tensor& t, bool output) { return !output || t->output_nr == 0; }

static int64_t address_of(const Storage* storage) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(storage));
}

void Saved::save(const Tensor& t, bool output, bool as_object) {
  is_output = output;
  version = t->storage->version;
  if (t->flags & flag_inference && !modes.inference)
    fail(
        "autograd: inference tensors cannot be saved for backward; make a normal tensor of it with "
        "clone() first");
  if (modes.saved_hooks && !t.is_wrapped_number()) {
    const ShapeRef given = ShapeRef::borrow(t->shape);
    const DType given_dtype = t.dtype();
    const uint32_t nr = output ? t->output_nr : 0;
    hooked = pack(t, !as_object);
    kind = Kind::packed;
    version = nr;
    dtype = given_dtype;
    shape = as_object ? nullptr : ShapeRef(given).release();
    return;
  }
  // A function in Python gets another object then, with the same place in the graph.
  const bool may_go = keeps_recipes() && !t->dict && !t->weakrefs && output_nr_is_told(t, output);
  if ((as_object && !may_go) || !parts_tell_all(t)) [[unlikely]] {
    tensor = output ? alias(t).release() : Tensor(t).release();
    kind = Kind::object;
    offset = address_of(t->storage);
    if (as_object) return;
    shape = t->shape;
    shape->incref();
    dtype = t->dtype;
    was_meta = t.is_meta();
    return;
  }
  save_parts(t, output);
}

Tensor Saved::values() const {
  if (kind == Kind::object) return Tensor::borrow(tensor);
  if (kind == Kind::parts) return over_parts(storage, shape, offset, dtype, flags);
  return {};
}

// Saved indices and masks are outputs, too, but no gradient flows to them.
static bool has_history(const Tensor& t, const Node* fn) { return fn && is_inexact(t.dtype()); }

static Tensor with_history(const Tensor& data, Node* fn, uint32_t nr) {
  Tensor t = alias(data);
  // For a leaf, fn is its accumulator: gradients for the stand-in reach the leaf itself.
  if (has_history(t, fn)) set_grad_fn(t, fn, nr);
  return t;
}

Tensor Saved::unpack_for(const Node& node, const Edge* edge, uint32_t output_nr,
                         Tensor* once) const {
  Node* fn = edge ? edge->fn : const_cast<Node*>(&node);
  uint32_t nr = edge ? edge->nr : output_nr;
  if (kind == Kind::packed) {
    const NodeRef keep = NodeRef::borrow(fn);
    Tensor t = once && once->defined() ? *once : unpack(node, *hooked, shape, dtype);
    if (once) *once = t;
    // A function written in Python may ask whether it requires grad.
    return fn && (modes.grad || !shape) ? with_history(t, fn, nr) : t;
  }
  if (kind == Kind::none) fail_consumed(node);
  if (kind == Kind::parts) {
    if (storage->version != version) [[unlikely]]
      fail_written(node, values(), version, is_output, fn, nr);
    if (fn && fn->is_accumulator) {  // the leaf itself, while it still shows what was saved
      const Tensor& leaf = static_cast<AccumulateGrad*>(fn)->variable;
      if (leaf->storage == storage && leaf->offset == offset && leaf->shape == shape &&
          leaf->dtype == dtype)
        return leaf;
    }
    Tensor t = values();
    const bool asked = counted && const_cast<Node&>(node).python_object();
    if ((modes.grad || asked) && has_history(t, fn)) set_grad_fn(t, fn, nr);
    return t;
  }
  Tensor t = Tensor::borrow(tensor);
  // Data that was set since (.data =) counts its own writes, and the rule takes it as it is.
  if (t->storage->version != version && (address_of(t->storage) == offset || t->storage->moved))
    fail_written(node, t, version, is_output, fn, nr);
  // Rules rely on what the forward pass checked.
  const bool as_saved =
      !shape || (t->shape == shape && t.dtype() == dtype && t.is_meta() == was_meta);
  if (!as_saved && (t.sizes() != shape->sizes || t.dtype() != dtype || t.is_meta() != was_meta))
    fail(node.name(), ": a tensor that was saved for backward as ", dtype, shape->sizes,
         " was given other data since (.data =), and is now ", t, " on ", name(t.device()));
  if (!as_saved && t.strides() != shape->strides) {
    t = in_layout(t, *shape);
    return modes.grad ? with_history(t, fn, nr) : t;
  }
  if (!modes.grad && shape) return t;
  if (is_output) return with_history(t, fn, nr);
  if (t->grad_fn == fn ? t->output_nr == nr : (!t->grad_fn && (!fn || fn->is_accumulator)))
    return t;
  return with_history(t, fn, nr);
}

void Saved::clear() {
  switch (std::exchange(kind, Kind::none)) {
    case Kind::none: break;
    case Kind::parts:
      if (std::exchange(counted, false)) [[unlikely]]
        retention.uncount(storage);
      storage->decref();
      shape->decref();
      break;
    case Kind::object:
      Py_DECREF(reinterpret_cast<PyObject*>(tensor));
      if (Shape* s = std::exchange(shape, nullptr)) s->decref();
      break;
    case Kind::packed:
      if (Shape* s = std::exchange(shape, nullptr)) s->decref();
      delete hooked;
      break;
  }
}

}  // namespace clew

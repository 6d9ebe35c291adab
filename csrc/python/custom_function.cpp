// Functions that Python defines: how a call becomes a node, and how its backward is called.
// May include: everything below python/.
// Invariant: as custom_function.h.
#include "python/custom_function.h"

#include <algorithm>

#include "graph/deferral.h"
#include "graph/explain.h"
#include "graph/gather.h"
#include "graph/inplace.h"

namespace clew::python {

void PyFunctionNode::run(std::span<const Tensor> grads, Tensor* out) {
  Ref args(checked(PyTuple_New(static_cast<Py_ssize_t>(grads.size()))));
  for (size_t k = 0; k < grads.size(); ++k) {
    Tensor g = grads[k];
    if (!g.defined() && materialize && !no_tensor[k]) {
      const OutMeta& m = meta(static_cast<uint32_t>(k));
      g = empty(m.sizes(), m.dtype, m.device);
      fill_(g, Scalar(0));
    }
    PyObject* o = g.defined() ? wrap(std::move(g)) : Py_NewRef(Py_None);
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(k), o);
  }
  Ref got(PyObject_CallMethod(ctx, "_run_backward", "(O)", args.get()));
  if (!got) throw PythonError();
  if (!PyTuple_Check(got.get()) ||
      PyTuple_GET_SIZE(got.get()) != static_cast<Py_ssize_t>(edge_count))
    throw Explained(
        {ErrorKind::Runtime,
         concat(label, ": backward returned an incorrect number of gradients (expected ",
                edge_count, ", got ", PyTuple_Check(got.get()) ? PyTuple_GET_SIZE(got.get()) : 1,
                ")")},
        describe_gradient(*this, -1));
  for (uint32_t i = 0; i < edge_count; ++i) {
    PyObject* g = PyTuple_GET_ITEM(got.get(), i);
    if (g == Py_None) continue;
    if (!is_tensor(g))
      throw Explained(
          {ErrorKind::Type, concat(label, ": backward must return tensors or None; gradient ", i,
                                   " is ", Py_TYPE(g)->tp_name)},
          describe_gradient(*this, i));
    if (!edges[i].fn) continue;
    check_gradient_device(edges[i], borrow(g), *this, i);
    out[i] = borrow(g);
    // Gradients may be written to. A result of conj() may not, so it loses its flag; if the user's
    // backward kept it, it is copied first.
    if (out[i]->flags & flag_conj) [[unlikely]] {
      if (Py_REFCNT(g) > 2) out[i] = builtins.clone(out[i]);
      out[i]->flags &= static_cast<uint8_t>(~flag_conj);
    }
  }
}

namespace {

// Bytes of outputs that contexts of custom Functions hold. Each such output and its node form a
// cycle, which only the garbage collector frees. The collector runs after many objects, but these
// may be few and large, so it is called here when the bytes have grown by half of the live bytes.
struct KeptOutputs {
  int64_t since = 0;  // the last collection
  int64_t most = least;
  static constexpr int64_t least = int64_t{64} << 20;

  void collect_if_many() {
    if (since < most) return;
    since = 0;
    PyGC_Collect();
    most = std::max(least, memory_stats().live_bytes / 2);
  }
  // `but`: tuples that the context is about to release.
  void count(PyObject* ctx, PyObject* outputs, std::span<PyObject* const> but) {
    PyObject* dict = node_obj(ctx)->dict;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; dict && PyDict_Next(dict, &at, &key, &value);) {
      if (!PyTuple_Check(value) && !PyList_Check(value)) {
        count_one(value, outputs);
        continue;
      }
      if (std::find(but.begin(), but.end(), value) != but.end()) continue;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i)
        count_one(PySequence_Fast_GET_ITEM(value, i), outputs);
    }
  }

 private:
  void count_one(PyObject* o, PyObject* outputs) {
    if (!is_tensor(o)) return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i)
      if (PyTuple_GET_ITEM(outputs, i) == o)
        since += static_cast<int64_t>(reinterpret_cast<TensorObj*>(o)->storage->nbytes);
  }
} kept_outputs;

}  // namespace

std::vector<Tensor> tensors_from(PyObject* seq, const char* what, bool none_allowed) {
  if (!PyTuple_Check(seq) && !PyList_Check(seq)) fail_type(what, " must be a tuple of Tensors");
  std::vector<Tensor> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq); ++i) {
    PyObject* o = PySequence_Fast_GET_ITEM(seq, i);
    if (none_allowed && o == Py_None)
      out.push_back(Tensor());
    else if (is_tensor(o))
      out.push_back(borrow(o));
    else
      fail_type(what, ": expected Tensors; element ", i, " is ", Py_TYPE(o)->tp_name);
  }
  return out;
}

namespace {

bool contains(PyObject* tuple, PyObject* o) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (PyTuple_GET_ITEM(tuple, i) == o) return true;
  return false;
}

// A call of a custom Function that becomes a node.
struct Attached {
  PyFunctionNode* node;
  const char* name;
  PyObject *inputs, *dirty, *fixed;
  Py_ssize_t outputs;
  // An object that forward returned, and the tensor that is used for it.
  struct Made {
    PyObject* given;
    Tensor used;
  };
  std::vector<Made> made = {};

  // An input that forward wrote over.
  void take_written(const Tensor& t, uint32_t k, bool differentiable) {
    check_inplace(t, name, true);
    if (!differentiable) return;
    if (!t->base) return set_grad_fn(t, node, k);
    if (outputs > 1)
      fail(name, ": a view written in place must be the only output of the Function");
    rebase_history(t, NodeRef::borrow(node));
  }
  // Gives the k-th output its history; returns the tensor that the caller gets.
  Tensor take(PyObject* o, uint32_t k) {
    Tensor t = borrow(o);
    node->add_meta(k, t);
    const bool is_input = contains(inputs, o), written = contains(dirty, o);
    const bool differentiable = is_inexact(t.dtype()) && !contains(fixed, o);
    if (written) {
      if (!is_input)
        fail(name,
             ": mark_dirty only accepts input tensors, but an output that is not an input was "
             "marked");
      take_written(t, k, differentiable);
    } else if (is_input) {
      // An input handed through becomes another tensor object, so that the input keeps its own
      // history.
      const Tensor given = t;
      t = alias(given);
      if (differentiable) {
        set_grad_fn(t, node, k);
        mark_view(t, given, false);
        t->view_kind = ViewKind::custom_function;
      }
    } else if (differentiable) {
      set_grad_fn(t, node, k);
      if (t->base) {
        t->view_version = t->storage->version;
        t->view_kind = ViewKind::custom_function;
      }
    } else if (t->grad_fn) {
      t = detach(t);
    }
    track(t.get());  // the context may keep it
    // An input handed through stays saved as the input.
    if (!is_input || written) made.push_back({o, t});
    return t;
  }
  void save(const Tensor& t) {
    Saved s;
    if (t.defined()) {
      Tensor use = t;
      for (const Made& m : made)
        if (m.given == reinterpret_cast<PyObject*>(t.get())) use = m.used;
      const bool output = use->grad_fn == node;
      const uint32_t nr = use->output_nr;
      s.save(use, output, true);
      if (output && s.kind == Saved::Kind::object) s.tensor->output_nr = nr;
    }
    node->saved.push_back(s);
    node->saved_edges.push_back(t.defined() && !s.is_output && t.requires_grad() ? gradient_edge(t)
                                                                                 : OwnedEdge{});
  }
};

}  // namespace

PyObject* attach_function(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *ctx, *inputs, *outputs, *saved, *dirty, *fixed;
    const char* name;
    int materialize;
    if (!PyArg_ParseTuple(args, "O!sO!O!OO!O!p", node_type, &ctx, &name, &PyTuple_Type, &inputs,
                          &PyTuple_Type, &outputs, &saved, &PyTuple_Type, &dirty, &PyTuple_Type,
                          &fixed, &materialize))
      return nullptr;
    kept_outputs.collect_if_many();
    if (collects()) deferral.run_collected();  // edges point to nodes made before this one
    if (node_obj(ctx)->owns || node_obj(ctx)->node)
      fail(name, ": this function context belongs to a graph already");
    const std::vector<Tensor> ins = tensors_from(inputs, name, true);
    const std::vector<Tensor> keep = tensors_from(saved, "save_for_backward", true);
    for (const Tensor& t : ins)
      if (t.defined() && t->base) grad_fn_of(t);  // so here
    auto* node = new PyFunctionNode();
    const NodeRef guard = NodeRef::steal(node);
    node->label = name;
    node->materialize = materialize;
    node->allocate_edges(static_cast<uint32_t>(ins.size()));
    for (size_t i = 0; i < ins.size(); ++i)
      if (ins[i].defined() && ins[i].requires_grad())
        node->set_edge(static_cast<uint32_t>(i), ins[i]);
    const Py_ssize_t count = PyTuple_GET_SIZE(outputs);
    node->set_output_count(static_cast<uint32_t>(count));
    node->no_tensor.resize(static_cast<size_t>(count));
    const Ref result(checked(PyTuple_New(count)));
    Attached attached{node, name, inputs, dirty, fixed, count};
    for (Py_ssize_t k = 0; k < count; ++k) {
      PyObject* o = PyTuple_GET_ITEM(outputs, k);
      if (is_tensor(o)) {
        PyTuple_SET_ITEM(result.get(), k, wrap(attached.take(o, static_cast<uint32_t>(k))));
        continue;
      }
      PyTuple_SET_ITEM(result.get(), k, Py_NewRef(o));
      node->add_meta(static_cast<uint32_t>(k), scalar_tensor(Scalar(0.0), DType::Float32));
      node->no_tensor[static_cast<size_t>(k)] = true;
    }
    for (const Tensor& t : keep) attached.save(t);
    node->ctx = Py_NewRef(ctx);
    node_obj(ctx)->node = node;
    PyObject* const passing[] = {saved, dirty, fixed};
    kept_outputs.count(ctx, result.get(), passing);
    return Py_NewRef(result.get());
  });
}

}  // namespace clew::python

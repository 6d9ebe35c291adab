// Calling ops from Python: overloads, out= and in-place forms, result wrapping.
// May include: everything below python/.
// Invariant: an argument is converted only after the whole overload has matched.
#include <cstring>
#include <map>

#include "graph/batch.h"
#include "graph/inplace.h"
#include "graph/promotion.h"
#include "ops/calls/reduction.h"
#include "python/attributes.h"
#include "python/bridge.h"
#include "python/call_at_once.h"
#include "python/match.h"
#include "python/out_rules.h"
#include "python/overrides.h"
#include "python/signature.h"

namespace clew {
std::span<const OpList> all_ops();  // ops/registry.cpp
}

namespace clew::python {

namespace {

std::map<std::string, FunctionEntry, std::less<>> entries;

struct FunctionObj {
  PyObject_HEAD vectorcallfunc vectorcall;
  FunctionEntry* entry;
  bool inplace;
  PyObject* attributes;  // what programs set on a function; functions live as long as the process
};
PyTypeObject* function_type = nullptr;
PyTypeObject* method_type = nullptr;

// The named tuple of a function's results. Overloads with the same fields share it, and
// clew._C._return_types knows it by name, so that results can be pickled.
PyTypeObject* named_result(const std::string& name, const std::vector<std::string>& outputs) {
  static PyObject* known = [] {
    PyObject* dict = checked(PyDict_New());
    PyObject* module = PyImport_AddModule("clew._C");
    if (!module || PyObject_SetAttrString(module, "_return_types", dict) < 0) throw PythonError();
    return dict;
  }();
  if (PyObject* found = PyDict_GetItemString(known, name.c_str())) {
    if (!PyType_Check(found)) fail_type("clew._C._return_types holds something else than types");
    auto* type = reinterpret_cast<PyTypeObject*>(found);
    size_t same = 0;
    while (same < outputs.size() && type->tp_members && type->tp_members[same].name &&
           outputs[same] == type->tp_members[same].name)
      ++same;
    if (same == outputs.size() && !type->tp_members[same].name) return type;
  }
  auto* fields = new PyStructSequence_Field[outputs.size() + 1]();  // lives as long as the type
  for (size_t i = 0; i < outputs.size(); ++i) fields[i] = {outputs[i].c_str(), nullptr};
  auto* type_name = new std::string("clew.return_types." + name);
  PyStructSequence_Desc desc{type_name->c_str(), nullptr, fields, static_cast<int>(outputs.size())};
  PyTypeObject* type = PyStructSequence_NewType(&desc);
  if (!type) throw PythonError();
  Ref key(checked(PyUnicode_FromString(name.c_str())));
  if (!PyDict_SetDefault(known, key.get(), reinterpret_cast<PyObject*>(type))) throw PythonError();
  return type;
}

}  // namespace

PyObject* wrap_outputs(const FunctionEntry& e, Overload& o, Tensors& outs) {
  if (outs.size() == 1 && !o.returns_list && o.output_count == 1) return wrap(std::move(outs[0]));
  if (o.outputs.empty()) {
    PyObject* tuple = checked(PyTuple_New(outs.size()));
    for (int i = 0; i < outs.size(); ++i) PyTuple_SET_ITEM(tuple, i, wrap(std::move(outs[i])));
    return tuple;
  }
  if (!o.result_type) o.result_type = named_result(e.short_name(), o.outputs);
  PyObject* result = checked(PyStructSequence_New(o.result_type));
  for (int i = 0; i < outs.size(); ++i)
    PyStructSequence_SetItem(result, i, wrap(std::move(outs[i])));
  return result;
}

namespace {

void store_out(const FunctionEntry& e, const Tensor& out, const Tensor& result, OutDtype rule) {
  if (result.is_meta() != out.is_meta())
    fail(e.name, ": out must be on the result's device; got ", name(out.device()), " for ",
         name(result.device()));
  if (result.dtype() != out.dtype() && rule < OutDtype::any) {
    if (!(rule == OutDtype::own_or_uint8 && result.dtype() == DType::Bool &&
          out.dtype() == DType::UInt8))
      fail(e.name, ": Expected out tensor to have dtype ", result.dtype(), ", but got ",
           out.dtype(), " instead");
  }
  if (rule != OutDtype::any && !can_cast(result.dtype(), out.dtype()))
    fail(e.name, ": result type ", result.dtype(), " can't be cast to the desired output type ",
         out.dtype());
  if (out.sizes() != result.sizes()) {
    if (out.numel() != 0 &&
        PyErr_WarnEx(
            PyExc_UserWarning,
            concat(e.name, ": an output with one or more elements was resized since it had shape ",
                   out.sizes(), ", which does not match the required output shape ", result.sizes())
                .c_str(),
            1) < 0)
      throw PythonError();
    resize_(out, result.sizes());
  }
  refuse_self_overlap(out, e.name);
  if (is_batched(out) || is_batched(result)) return copy_(out, result);
  copy_into(out, result);
  bump_version(out);
}

PyObject* return_into_out(const FunctionEntry& e, Overload& o, Tensors& outs, PyObject* given) {
  // A warning about one of them may run code that changes the list.
  Ref own(PyList_Check(given) ? checked(PyList_AsTuple(given)) : Py_NewRef(given));
  PyObject* out = own.get();
  if (outs.size() == 1 && is_tensor(out)) {
    store_out(e, borrow(out), outs[0], o.op->out_dtype);
    Py_INCREF(out);
    return out;
  }
  if (!PyTuple_Check(out) || PyTuple_GET_SIZE(out) != outs.size())
    fail_type(e.name, "(): argument 'out' must be ",
              outs.size() == 1 ? "a Tensor" : "a tuple of Tensors", "; got ",
              Py_TYPE(given)->tp_name);
  for (int i = 0; i < outs.size(); ++i) {
    PyObject* t = PyTuple_GET_ITEM(out, i);
    if (!is_tensor(t))
      fail_type(e.name, "(): argument 'out' must hold Tensors; got ", Py_TYPE(t)->tp_name);
    store_out(e, borrow(t), outs[i], OutDtype::own);
    outs[i] = borrow(t);
  }
  return wrap_outputs(e, o, outs);
}

// With out=, the dtype that sums and products are computed in, as OutDtype says.
void choose_dtype(const FunctionEntry& e, const Overload& o, const Bound& b, const Tensor& x,
                  char* attrs) {
  const OutDtype rule = o.op->out_dtype;
  const bool running = rule == OutDtype::running, total = rule == OutDtype::chosen;
  if (!running && !total && rule != OutDtype::given) return;
  const DType d = borrow(b.out).dtype();
  for (size_t i = 0; i < o.params.size(); ++i) {
    const Param& p = o.params[i];
    if (p.kind != ParamKind::DType) continue;
    auto* asked = reinterpret_cast<std::optional<DType>*>(
        attrs + o.op->attrs->fields[static_cast<size_t>(p.field)].offset);
    if (!*asked && (running || (total && (is_complex(d) || !x.is_complex())))) *asked = d;
    if (*asked && **asked != d)
      fail(e.name, ": Expected out tensor to have dtype ", **asked, ", but got ", d, " instead");
  }
}

PyObject* run(FunctionEntry& e, Overload& o, Bound& b, bool inplace) {
  Tensors in;
  AttrBuffer attrs;
  const OpDef& op = *o.op;
  if (op.attrs) attrs.init(o);
  size_t n = o.params.size();
  for (size_t i = 0; i < n; ++i) {
    const Param& p = o.params[i];
    PyObject* v = b.value[i];
    if (p.field >= 0) {
      if (!v) continue;
      char* field = attrs.bytes + op.attrs->fields[static_cast<size_t>(p.field)].offset;
      if (b.varargs && p.varargs) {
        store_ints(field, p.kind, {b.varargs, static_cast<size_t>(b.varargs_count)});
      } else {
        store(field, p.kind, p.repeat, v);
      }
    } else if (p.kind == ParamKind::TensorList) {
      if (!v) continue;
      Py_ssize_t count = PySequence_Fast_GET_SIZE(v);
      for (Py_ssize_t k = 0; k < count; ++k) {
        PyObject* t = PySequence_Fast_GET_ITEM(v, k);
        in.push_back(t == Py_None ? Tensor() : borrow(t));
      }
    } else if (p.kind == ParamKind::Inplace) {
      if (v == Py_True) inplace = true;
    } else {
      in.push_back(!v || v == Py_None ? Tensor() : tensor_or_number(v));
    }
  }
  if (b.out && is_tensor(b.out)) choose_dtype(e, o, b, in[0], attrs.bytes);
  const void* a = op.attrs ? attrs.bytes : nullptr;
  if (inplace) {
    apply_inplace(op, in, a);
    return wrap(in[0]);
  }
  if (b.out) {
    Tensors outs;
    AutocastMode off(false);
    const auto check = [&](const Tensor& out) {
      const bool has_slope = op.kind == OpKind::Composite
                                 ? is_inexact(out.dtype())
                                 : !op.no_vjp && op.result != Result::boolean;
      if (modes.grad && has_slope && any_requires_grad(in))
        fail(e.name,
             "(): functions with out=... arguments don't support automatic differentiation, but "
             "one of the arguments requires grad; call it without out=, or inside no_grad()");
      check_out_written(out, e.name);
      check_out_memory(op, in, out);
    };
    if (PyTuple_Check(b.out) || PyList_Check(b.out)) {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(b.out); ++k)
        if (PyObject* t = PySequence_Fast_GET_ITEM(b.out, k); is_tensor(t)) check(borrow(t));
    }
    if (is_tensor(b.out)) {
      Tensor target = borrow(b.out);
      check(target);
      if (apply_into(op, in, a, {&target, 1})) return wrap(std::move(target));
    }
    apply(op, in, a, outs);
    return return_into_out(e, o, outs, b.out);
  }
  Tensors outs;
  apply(op, in, a, outs);
  return wrap_outputs(e, o, outs);
}

// numpy.max(tensor, axis) calls tensor.max(axis=axis, out=None) and wants the values alone; null
// when the call is not of that kind.
[[gnu::noinline]] PyObject* numpy_extremum(const FunctionEntry& e, PyObject* const* args,
                                           Py_ssize_t nargs, PyObject* kwnames) {
  if (nargs != 1) return nullptr;
  bool largest = e.name == "max";
  if (!largest && e.name != "min") return nullptr;
  bool out = false, keep = false;
  Dims dims;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k) {
    auto is = [&](const char* key) { return is_named(PyTuple_GET_ITEM(kwnames, k), key); };
    PyObject* v = args[nargs + k];
    if (is("out") && v == Py_None)
      out = true;
    else if (is("keepdims") && PyBool_Check(v))
      keep = v == Py_True;
    else if (is("axis") && is_int(v))
      dims = Dims{int_from(v)};
    else if (is("axis") && is_int_sequence(v))
      dims = ints_from(v);
    else if (!is("axis") || v != Py_None)
      return nullptr;
  }
  if (!out) return nullptr;
  Tensor x = borrow(args[0]);
  return wrap(largest ? amax(x, dims, keep) : amin(x, dims, keep));
}

// The arguments of a call, where they are nothing but tensors, by position.
class TensorArguments {
  static constexpr int most = 8;
  TensorObj* in_[most] = {};  // a Tensor is one pointer: the arguments are lent, not counted
  Py_ssize_t count_ = 0;

 public:
  TensorArguments(PyObject* const* args, Py_ssize_t nargs) {
    if (nargs > most) return;
    for (Py_ssize_t i = 0; i < nargs; ++i) {
      if (!is_tensor(args[i])) return;
      in_[i] = reinterpret_cast<TensorObj*>(args[i]);
    }
    count_ = nargs;
  }
  explicit operator bool() const { return count_ > 0; }
  // Whether the overload takes so many.
  bool fit(const Overload& o, bool method) const {
    return count_ >= o.fewest && count_ <= o.most && !(method && o.op->offer == Offer::function);
  }
  std::span<const Tensor> of(const Overload& o) const {
    return {reinterpret_cast<const Tensor*>(in_), static_cast<size_t>(o.tensors)};
  }
};

// The most frequent form of call: nothing but tensors. Null when it is another one.
PyObject* call_with_tensors(FunctionEntry& e, bool method, bool inplace, PyObject* const* args,
                            Py_ssize_t nargs) {
  const TensorArguments given(args, nargs);
  if (!given) return nullptr;
  for (auto& o : e.overloads) {
    if (!given.fit(*o, method) || (inplace && !o->op->inplace)) continue;
    const std::span<const Tensor> tensors = given.of(*o);
    if (inplace) {
      apply_inplace(*o->op, tensors, o->defaults);
      return Py_NewRef(args[0]);
    }
    if (o->op->kind == OpKind::Elementwise) return wrap(apply_one(*o->op, tensors, o->defaults));
    Tensors outs;
    apply(*o->op, tensors, o->defaults, outs);
    return wrap_outputs(e, *o, outs);
  }
  return nullptr;
}

// The same of an elementwise operation into out=, which fits. Null, and nothing done, where it is
// another case.
PyObject* call_into(FunctionEntry& e, bool method, PyObject* const* args, Py_ssize_t nargs,
                    PyObject* kwnames) {
  static PyObject* name = PyUnicode_InternFromString("out");
  if (PyTuple_GET_SIZE(kwnames) != 1 || PyTuple_GET_ITEM(kwnames, 0) != name ||
      !is_tensor(args[nargs]))
    return nullptr;
  const TensorArguments given(args, nargs);
  if (!given) return nullptr;
  const Tensor out = borrow(args[nargs]);
  for (auto& o : e.overloads) {
    if (!given.fit(*o, method)) continue;
    const OpDef& op = *o->op;
    const std::span<const Tensor> in = given.of(*o);
    const bool chooses = op.out_dtype > OutDtype::converted;  // the dtype that it computes in
    if (op.kind != OpKind::Elementwise || chooses || !is_freely_written(out) ||
        (modes.grad && any_requires_grad(in)))
      return nullptr;
    check_out_memory(op, in, out);
    AutocastMode off(false);
    return apply_into(op, in, o->defaults, {&out, 1}) ? Py_NewRef(args[nargs]) : nullptr;
  }
  return nullptr;
}

// Matches all other calls, and raises for arguments that fit no overload.
[[gnu::noinline]] PyObject* call_matching(PyObject* self, FunctionEntry& e, bool method,
                                          bool inplace, PyObject* const* args, Py_ssize_t nargs,
                                          PyObject* kwnames) {
  // With several overloads, one that takes the arguments as they are goes before one that reads a
  // 0-d tensor as a number.
  bool several = e.overloads.size() > 1;
  for (bool strict : {true, false}) {
    if (strict && !several) continue;
    for (auto& o : e.overloads) {
      if (inplace && !o->op->inplace) continue;
      if (method && o->op->offer == Offer::function) continue;
      Bound b(*o);
      if (!match(e, *o, args, nargs, kwnames, b, strict, nullptr)) continue;
      // Otherwise a NumPy function would get a pair of results.
      if (method && b.out_given && o->outputs.size() > 1) {
        fail_type(e.name,
                  "(): a method with several results takes no out (which NumPy's functions "
                  "pass); call clew.",
                  e.name, "(...), or convert with .numpy() first");
      }
      return run(e, *o, b, inplace);
    }
  }
  if (PyObject* result = overridden(self, args, nargs, kwnames)) return result;
  std::string text;
  for (auto& o : e.overloads) {
    if (inplace && !o->op->inplace) continue;
    Bound b(*o);
    std::string why;
    match(e, *o, args, nargs, kwnames, b, false, &why);
    text += concat("\n  ", o->op->signature, "\n    ", why);
    if (!several) fail_type(why);
  }
  fail_type(e.name, inplace ? "_" : "", "() received an invalid combination of arguments - got ",
            describe_arguments(args, nargs, kwnames), ", but expected one of:", text);
}

PyObject* call(PyObject* self, FunctionEntry& e, bool method, bool inplace, PyObject* const* args,
               Py_ssize_t nargs, PyObject* kwnames) {
  if (overriding)
    if (PyObject* result = overridden(self, args, nargs, kwnames)) return result;
  if (!kwnames) {
    if (PyObject* result = call_with_tensors(e, method, inplace, args, nargs)) return result;
    if (nargs == 1 && !method && !inplace)
      if (PyObject* result = call_with_list(e, args[0])) return result;
  }
  if (PyObject* result = call_at_once(e, method, inplace, args, nargs, kwnames)) return result;
  if (kwnames && !inplace)
    if (PyObject* result = call_into(e, method, args, nargs, kwnames)) return result;
  if (method && kwnames) {
    if (PyObject* found = numpy_extremum(e, args, nargs, kwnames)) return found;
  }
  return call_matching(self, e, method, inplace, args, nargs, kwnames);
}

PyObject* function_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf,
                              PyObject* kwnames) {
  auto* f = reinterpret_cast<FunctionObj*>(self);
  return guarded([&] {
    return call(self, *f->entry, Py_TYPE(self) == method_type, f->inplace, args,
                PyVectorcall_NARGS(nargsf), kwnames);
  });
}

PyObject* function_repr(PyObject* self) {
  auto* f = reinterpret_cast<FunctionObj*>(self);
  return PyUnicode_FromFormat("<%s clew.%s%s>",
                              Py_TYPE(self) == method_type ? "method" : "function",
                              f->entry->name.c_str(), f->inplace ? "_" : "");
}
PyObject* function_name(PyObject* self, void*) {
  auto* f = reinterpret_cast<FunctionObj*>(self);
  return PyUnicode_FromFormat("%s%s", f->entry->short_name().c_str(), f->inplace ? "_" : "");
}
PyObject* function_module(PyObject* self) {
  auto* f = reinterpret_cast<FunctionObj*>(self);
  size_t dot = f->entry->name.rfind('.');
  return dot == std::string::npos
             ? PyUnicode_FromString("clew")
             : PyUnicode_FromFormat("clew.%s", f->entry->name.substr(0, dot).c_str());
}
// Handled here, not by a getset entry: the type's own __module__ would then be that entry.
PyObject* function_getattr(PyObject* self, PyObject* key) {
  if (is_named(key, "__module__")) return function_module(self);
  return PyObject_GenericGetAttr(self, key);
}
PyObject* function_doc(PyObject* self, void*) {
  auto* f = reinterpret_cast<FunctionObj*>(self);
  std::string s;
  for (auto& o : f->entry->overloads) s += std::string(o->op->signature) + "\n";
  for (auto& o : f->entry->overloads)
    if (o->op->doc && *o->op->doc) {
      s.append(1, '\n').append(o->op->doc).append(1, '\n');
      break;
    }
  return PyUnicode_FromString(s.c_str());
}
PyObject* function_signatures(PyObject* self, void*) {
  auto* f = reinterpret_cast<FunctionObj*>(self);
  PyObject* list = PyList_New(0);
  for (auto& o : f->entry->overloads) {
    Ref s(PyUnicode_FromString(o->op->signature));
    PyList_Append(list, s.get());
  }
  return list;
}
PyObject* function_reduce(PyObject* self, PyObject*) {
  auto* f = reinterpret_cast<FunctionObj*>(self);
  Ref module(PyImport_ImportModule("clew"));
  if (!module) return nullptr;
  Ref find(PyObject_GetAttrString(
      module.get(), Py_TYPE(self) == method_type ? "_find_method" : "_find_function"));
  if (!find) return nullptr;
  return Py_BuildValue("O(s)", find.get(), (f->entry->name + (f->inplace ? "_" : "")).c_str());
}
PyGetSetDef function_getset[] = {{"__name__", function_name, nullptr, nullptr, nullptr},
                                 {"__qualname__", function_name, nullptr, nullptr, nullptr},
                                 {"__doc__", function_doc, nullptr, nullptr, nullptr},
                                 {"signatures", function_signatures, nullptr, nullptr, nullptr},
                                 {}};
PyMethodDef function_methods[] = {{"__reduce__", function_reduce, METH_NOARGS, nullptr}, {}};
PyMemberDef method_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObj, vectorcall), READONLY, nullptr}, {}};
PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObj, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObj, attributes), READONLY, nullptr},
    {}};

PyObject* make_function(PyTypeObject* type, FunctionEntry* e, bool inplace) {
  auto* f = PyObject_New(FunctionObj, type);
  if (!f) throw PythonError();
  f->vectorcall = function_vectorcall;
  f->entry = e;
  f->inplace = inplace;
  f->attributes = nullptr;
  return reinterpret_cast<PyObject*>(f);
}

PyTypeObject* make_function_type(const char* name, bool method) {
  std::vector<PyType_Slot> slots = {slot(Py_tp_call, PyVectorcall_Call),
                                    slot(Py_tp_repr, function_repr),
                                    slot(Py_tp_getattro, function_getattr),
                                    slot(Py_tp_getset, function_getset),
                                    slot(Py_tp_methods, function_methods),
                                    {Py_tp_members, method ? method_members : function_members}};
  if (method) slots.push_back(slot(Py_tp_descr_get, bound_like_function));
  slots.push_back({0, nullptr});
  unsigned flags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  if (method) flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
  PyType_Spec spec = {name, sizeof(FunctionObj), 0, flags, slots.data()};
  return reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
}

}  // namespace

FunctionEntry* find_entry(std::string_view name) {
  auto it = entries.find(name);
  return it == entries.end() ? nullptr : &it->second;
}

namespace {
constexpr const char* kind_names[] = {"elementwise", "view", "general", "composite"};

bool same_text(const char* a, const char* b) { return a == b || (a && b && !std::strcmp(a, b)); }

// (signature, flops, backward_flops, is_product) of the first overload that says how much it
// computes. The others of that name that do must say the same, of tensors in the same order.
PyObject* costs_of(const FunctionEntry& e) {
  const OpDef* op = nullptr;
  for (const auto& o : e.overloads) {
    if (!o->op->flops && !o->op->backward_flops) continue;
    if (!op) op = o->op;
    if (!same_text(op->flops, o->op->flops) ||
        !same_text(op->backward_flops, o->op->backward_flops) ||
        op->is_product != o->op->is_product)
      fail_internal(e.name, ": two of its forms count their work in different ways");
  }
  if (!op) op = e.overloads.front()->op;
  return checked(Py_BuildValue("(szzO)", op->signature, op->flops, op->backward_flops,
                               op->is_product ? Py_True : Py_False));
}
}  // namespace

// functions: dotted public name -> function. ops: every op by its last name, private ones too.
// _operation_kinds: name -> what the op is made by. _operation_costs: name -> costs_of(). Methods
// are set on the Tensor type.
void add_functions(PyObject* module) {
  function_type = make_function_type("clew.OpFunction", false);
  method_type = make_function_type("clew.OpMethod", true);
  for (const OpList& list : all_ops())
    for (auto* p = list.begin; p != list.end; ++p) {
      std::string name(op_name(**p));
      FunctionEntry& e = entries[name];
      e.name = name;
      e.overloads.push_back(parse_signature(**p));
    }
  Ref functions(checked(PyDict_New()));
  Ref ops(checked(PyModule_New("clew._C.ops")));
  auto* type = reinterpret_cast<PyObject*>(tensor_type);
  Ref kinds(checked(PyDict_New())), costs(checked(PyDict_New()));
  for (auto& [name, e] : entries) {
    Ref kind(
        checked(PyUnicode_FromString(kind_names[static_cast<int>(e.overloads.front()->op->kind)])));
    if (PyDict_SetItemString(kinds.get(), name.c_str(), kind.get()) < 0) throw PythonError();
    Ref cost(costs_of(e));
    if (PyDict_SetItemString(costs.get(), name.c_str(), cost.get()) < 0) throw PythonError();
    bool any_inplace = false, any_method = false, any_function = false;
    for (auto& o : e.overloads) {
      any_inplace = any_inplace || o->op->inplace;
      any_method =
          any_method ||
          (o->op->offer != Offer::function && !o->params.empty() && o->params[0].name == "input" &&
           (o->params[0].kind == ParamKind::Tensor || o->params[0].kind == ParamKind::Operand));
      any_function = any_function || o->op->offer != Offer::method;
    }
    std::string last = e.short_name();
    bool dotted = name.find('.') != std::string::npos;
    bool hidden = last[0] == '_';
    for (bool inplace : {false, true}) {
      if (inplace && !any_inplace) continue;
      std::string suffix = inplace ? "_" : "";
      Ref f(make_function(function_type, &e, inplace));
      PyObject_SetAttrString(ops.get(), (last + suffix).c_str(), f.get());
      if (!hidden && any_function)
        PyDict_SetItemString(functions.get(), (name + suffix).c_str(), f.get());
      if (!hidden && !dotted && any_method) {
        Ref m(make_function(method_type, &e, inplace));
        if (PyObject_SetAttrString(type, (last + suffix).c_str(), m.get()) < 0) throw PythonError();
      }
    }
  }
  PyModule_AddObjectRef(module, "functions", functions.get());
  PyModule_AddObjectRef(module, "ops", ops.get());
  PyModule_AddObjectRef(module, "_operation_kinds", kinds.get());
  PyModule_AddObjectRef(module, "_operation_costs", costs.get());
}

}  // namespace clew::python

// Calls whose arguments are of Python's own types: matched, read and run in one pass.
// May include: everything below python/.
// Invariant: as call_at_once.h.
#include "python/call_at_once.h"

#include "python/attributes.h"
#include "python/bridge.h"

namespace clew::python {

namespace {

uint16_t own_type(PyObject* v) {
  const PyTypeObject* type = Py_TYPE(v);
  if (type == tensor_type) return own_tensor;
  if (type == &PyLong_Type) return own_int;
  if (type == &PyBool_Type) return own_bool;
  if (type == &PyTuple_Type || type == &PyList_Type || type == size_type) return own_list;
  if (type == &PyFloat_Type) return own_float;
  if (v == Py_None) return own_none;
  if (type == dtype_type) return own_dtype;
  if (type == &PyUnicode_Type) return own_text;
  return is_tensor(v) ? own_tensor : own_other;
}

enum class Fit : uint8_t { yes, no, unsure };

// One call's arguments laid beside an overload's parameters.
struct Laid {
  uint32_t given = 0;  // bits of the parameters that have a value
  uint16_t types = 0;  // of all arguments
  PyObject* value[max_params];
  PyObject* const* rest = nullptr;  // the ints of size(2, 3)
  Py_ssize_t rest_count = 0;
};

bool are_ints(PyObject* const* items, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!PyLong_CheckExact(items[i])) return false;
  return true;
}
bool are_tensors(PyObject* const* items, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!is_tensor(items[i])) return false;
  return true;
}

[[gnu::always_inline]] inline Fit put(const Place& p, int at, PyObject* v, Laid& laid) {
  const uint16_t type = own_type(v);
  if (!(p.takes & type)) return p.refuses & type ? Fit::no : Fit::unsure;
  if (type == own_list) {
    PyObject** items = PySequence_Fast_ITEMS(v);
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
    if (p.kind == ParamKind::TensorList ? !are_tensors(items, n) : !are_ints(items, n))
      return Fit::unsure;
    if (p.kind == ParamKind::TensorList) laid.types |= own_tensor;
  }
  laid.types |= type;
  laid.given |= 1u << at;
  laid.value[at] = v;
  return Fit::yes;
}

bool has_key(const Overload& o, PyObject* key) {
  for (const Place& p : o.places)
    if (p.key == key) return true;
  return false;
}

Fit lay(const FunctionEntry& e, const Overload& o, PyObject* const* args, Py_ssize_t nargs,
        PyObject* kwnames, Laid& laid) {
  const Place* places = o.places.data();
  const auto n = static_cast<int>(o.places.size());
  int at = 0;
  for (Py_ssize_t used = 0; used < nargs; ++at) {
    if (at == n || places[at].keyword_only) return Fit::no;
    if (places[at].varargs && (nargs - used > 1 || PyLong_CheckExact(args[used]))) {
      if (!are_ints(args + used, nargs - used)) return Fit::unsure;
      laid.rest = args + used;
      laid.rest_count = nargs - used;
      laid.value[at] = Py_None;
      laid.given |= 1u << at++;
      break;
    }
    if (const Fit fit = put(places[at], at, args[used++], laid); fit != Fit::yes) return fit;
  }
  const Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < named; ++k) {
    PyObject* key = PyTuple_GET_ITEM(kwnames, k);
    int to = at;
    while (to < n && places[to].key != key) ++to;
    if (to == n) {
      // If another overload has this keyword, the call is not for this one. Any other keyword may
      // be NumPy's name for a parameter.
      if (has_key(o, key)) return Fit::unsure;
      for (const auto& other : e.overloads)
        if (has_key(*other, key)) return Fit::no;
      return Fit::unsure;
    }
    if (const Fit fit = put(places[to], to, args[nargs + k], laid); fit != Fit::yes) return fit;
  }
  if (o.required & ~laid.given) return Fit::no;
  return o.needs_tensor && !(laid.types & own_tensor) ? Fit::unsure : Fit::yes;
}

// The tensors of a call. Tensors that are arguments themselves are borrowed, the rest are owned.
struct Operands {
  static constexpr int most = 64;
  TensorObj* at[most];  // each as wide as a Tensor
  int count = 0;
  uint64_t owned = 0;

  Operands() = default;
  Operands(const Operands&) = delete;
  ~Operands() {
    for (int i = 0; owned >> i; ++i)
      if (owned >> i & 1) Py_DECREF(reinterpret_cast<PyObject*>(at[i]));
  }
  void lend(PyObject* v) { at[count++] = reinterpret_cast<TensorObj*>(v); }
  void own(Tensor t) {
    owned |= uint64_t{1} << count;
    at[count++] = t.release();
  }
  std::span<const Tensor> tensors() const {
    return {reinterpret_cast<const Tensor*>(at), static_cast<size_t>(count)};
  }
};

PyObject* run(FunctionEntry& e, Overload& o, const Laid& laid, bool inplace) {
  Operands in;
  AttrBuffer attrs;
  const OpDef& op = *o.op;
  if (op.attrs) attrs.init(o);
  const auto n = static_cast<int>(o.places.size());
  for (int i = 0; i < n; ++i) {
    const Place& p = o.places[static_cast<size_t>(i)];
    const bool given = laid.given >> i & 1;
    switch (p.kind) {
      case ParamKind::Tensor:
      case ParamKind::OptTensor:
        in.lend(given && laid.value[i] != Py_None ? laid.value[i] : nullptr);
        break;
      case ParamKind::Operand:
        if (given && is_tensor(laid.value[i]))
          in.lend(laid.value[i]);
        else
          in.own(given ? tensor_or_number(laid.value[i]) : Tensor());
        break;
      case ParamKind::TensorList:
        // Another thread, or code that the operation runs, may change the list.
        if (given)
          for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(laid.value[i]); ++k)
            in.own(borrow(PySequence_Fast_GET_ITEM(laid.value[i], k)));
        break;
      case ParamKind::Int:
        if (given) *reinterpret_cast<int64_t*>(attrs.bytes + p.offset) = int_from(laid.value[i]);
        break;
      case ParamKind::Bool:
        if (given) *reinterpret_cast<bool*>(attrs.bytes + p.offset) = laid.value[i] == Py_True;
        break;
      case ParamKind::Inplace: inplace = inplace || (given && laid.value[i] == Py_True); break;
      default:
        if (!given) break;
        if (p.varargs && laid.rest) {
          store_ints(attrs.bytes + p.offset, p.kind,
                     {laid.rest, static_cast<size_t>(laid.rest_count)});
        } else {
          store(attrs.bytes + p.offset, p.kind, p.repeat, laid.value[i]);
        }
    }
  }
  const void* a = op.attrs ? attrs.bytes : nullptr;
  if (inplace) {
    apply_inplace(op, in.tensors(), a);
    return Py_NewRef(reinterpret_cast<PyObject*>(in.at[0]));
  }
  if (o.output_count == 1 && !o.returns_list && (op.kind != OpKind::Composite || op.quick))
    return wrap(apply_one(op, in.tensors(), a));
  Tensors outs;
  apply(op, in.tensors(), a, outs);
  return wrap_outputs(e, o, outs);
}

// Whether there is room for the tensors of a list.
bool fits_operands(const Overload& o, const Laid& laid) {
  for (size_t i = 0; i < o.places.size(); ++i)
    if (o.places[i].kind == ParamKind::TensorList && (laid.given >> i & 1) &&
        PySequence_Fast_GET_SIZE(laid.value[i]) + o.tensors > Operands::most)
      return false;
  return true;
}

}  // namespace

PyObject* call_with_list(FunctionEntry& e, PyObject* list) {
  if (e.overloads.size() != 1 || !e.overloads[0]->list_alone) return nullptr;
  if (!PyList_CheckExact(list) && !PyTuple_CheckExact(list)) return nullptr;
  constexpr Py_ssize_t most = 8;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
  if (n == 0 || n > most) return nullptr;
  // Counted: another thread, or code that the operation runs, may change the list.
  struct Counted {
    TensorObj* at[most];
    Py_ssize_t count = 0;
    ~Counted() {
      for (Py_ssize_t i = 0; i < count; ++i) Py_DECREF(reinterpret_cast<PyObject*>(at[i]));
    }
  } in;
  for (PyObject** item = PySequence_Fast_ITEMS(list); in.count < n; ++item) {
    if (!is_tensor(*item)) return nullptr;
    in.at[in.count++] = reinterpret_cast<TensorObj*>(Py_NewRef(*item));
  }
  const Overload& o = *e.overloads[0];
  return wrap(apply_one(*o.op, {reinterpret_cast<const Tensor*>(in.at), static_cast<size_t>(n)},
                        o.defaults));
}

PyObject* call_at_once(FunctionEntry& e, bool method, bool inplace, PyObject* const* args,
                       Py_ssize_t nargs, PyObject* kwnames) {
  for (auto& o : e.overloads) {
    if (inplace && !o->op->inplace) continue;
    if (method && o->op->offer == Offer::function) continue;
    Laid laid;
    const Fit fit = lay(e, *o, args, nargs, kwnames, laid);
    if (fit == Fit::no) continue;
    if (fit == Fit::unsure || (o->takes_list && !fits_operands(*o, laid))) return nullptr;
    return run(e, *o, laid, inplace);
  }
  return nullptr;
}

}  // namespace clew::python

// Interning of places and module paths, cut marks, and the text that messages show of them.
// May include: graph; Python.h for frames and code objects.
// Invariant: capturing never fails and never runs Python code; describing may, and keeps no error.
#include "graph/provenance.h"

#include <array>
#include <cmath>
#include <cstdarg>

#include "graph/frames.h"
#include "graph/node.h"
#include "graph/trace.h"
#include "tensor/bits.h"

namespace clew {

namespace {

bool enabled = true;
std::string library_folder;

// A table of origins by instruction and scope. It is direct-mapped, so it keeps a bounded number of
// origins alive. Both keys are stored in the entry, so one access decides whether it matches.
struct Known {
  const void* at = nullptr;  // null where the origin has a caller
  Scope* scope = nullptr;
  Origin* origin = nullptr;  // owned
};
std::array<Known, 4096> origins;
struct KnownCode {
  PyCodeObject* code = nullptr;  // owned, so that its address stays its own
  bool library = false;
};
std::array<KnownCode, 1024> codes;
std::array<Cut*, 256> cuts;
std::array<Leaving, kept_leavings> leavings;
size_t leaving_count = 0;

[[maybe_unused]] const bool origins_installed = (
    release_origin = [](Origin* o) { o->decref(); }, true);

size_t mix(const void* a, const void* b) {
  auto x = reinterpret_cast<uintptr_t>(a) * 0x9E3779B97F4A7C15u;
  auto y = reinterpret_cast<uintptr_t>(b) * 0xC2B2AE3D27D4EB4Fu;
  uintptr_t both = x ^ y;
  both = (both ^ both >> 32) * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(both >> 40);
}

// Bytes of a path that are no UTF-8 stand as they are.
std::string path_text(PyObject* path) {
  PyObject* bytes = PyUnicode_EncodeFSDefault(path);
  if (!bytes) PyErr_Clear();
  std::string text = bytes ? std::string(PyBytes_AS_STRING(bytes)) : "";
  Py_XDECREF(bytes);
  return text;
}

bool in_library(PyCodeObject* code) {
  KnownCode& known = codes[mix(code, nullptr) % codes.size()];
  if (known.code == code) [[likely]]
    return known.library;
  std::string file = path_text(code->co_filename);
  bool library = (!library_folder.empty() && file.starts_with(library_folder)) ||
                 file == "<shim>" || file == "__init__" ||  // the interpreter's own
                 file.starts_with("<frozen ") ||
                 // Hands on what another line does.
                 PyUnicode_CompareWithASCIIString(code->co_name, "__torch_function__") == 0;
  Py_INCREF(reinterpret_cast<PyObject*>(code));
  PyCodeObject* before = std::exchange(known.code, code);
  known.library = library;
  Py_XDECREF(reinterpret_cast<PyObject*>(before));
  return library;
}

struct Place {
  PyCodeObject* code;
  const void* at;
  int32_t offset;
};
Place place_of(const Frames& frame) { return {frame.code(), frame.at(), frame.offset()}; }

Origin* new_origin(const Place& p, Scope* scope, Origin* caller) {
  auto* o = new Origin();
  o->at = p.at;
  o->instruction = p.offset;
  o->code = p.code;
  Py_INCREF(reinterpret_cast<PyObject*>(o->code));
  o->scope = scope;
  if (scope) scope->incref();
  o->caller = kept(caller);
  return o;
}

// Whole stacks that were seen lately, by a number made of all their instructions.
struct KnownStack {
  uint64_t key = 0;
  Origin* caller = nullptr;  // owned
};
std::array<KnownStack, 64> stacks;

// The user's frames from the outermost inwards, each with its caller.
Origin* caller_of(Frames& innermost) {
  uint64_t key = 1469598103934665603u;
  innermost.next();
  for (Frames f = innermost; f; f.next())
    key = (key ^ reinterpret_cast<uintptr_t>(f.at())) * 0x9E3779B97F4A7C15u;
  KnownStack& known = stacks[(key >> 40) % stacks.size()];
  if (key == known.key) return known.caller;
  constexpr int most = 128;
  Place places[most];
  int count = 0;
  for (; innermost && count < most; innermost.next())
    if (!in_library(innermost.code())) places[count++] = place_of(innermost);
  Origin* chain = nullptr;
  while (count > 0) {
    Origin* inner = new_origin(places[--count], nullptr, chain);
    if (chain) chain->decref();
    chain = inner;
  }
  known.key = key;
  Origin* before = std::exchange(known.caller, chain);
  if (before) before->decref();
  return chain;
}

}  // namespace

void Scope::destroy(Scope* s) {
  while (s) {
    Scope* parent = s->parent;
    delete s;
    s = parent && --parent->refs == 0 ? parent : nullptr;
  }
}

void Origin::destroy(Origin* o) {
  while (o) {
    Origin* caller = o->caller;
    Py_DECREF(reinterpret_cast<PyObject*>(o->code));
    if (o->scope) o->scope->decref();
    delete o;
    o = caller && --caller->refs == 0 ? caller : nullptr;
  }
}

void Cut::destroy(Cut* c) {
  if (c->where) c->where->decref();
  if (c->source) c->source->decref();
  if (c->region) c->region->decref();
  delete c;
}

std::string path_of(const Scope* scope) {
  std::string path;
  for (; scope; scope = scope->parent) {
    if (scope->name.empty()) continue;
    path = path.empty() ? scope->name : concat(scope->name, ".", path);
  }
  return path;
}

Origin* origin_here() {
  if (!enabled) return nullptr;
  Frames frame;
  if (!frame) return nullptr;
  Scope* scope = modes.scope;
  if (!modes.whole_stacks) [[likely]] {  // an instruction that is known is none of the library's
    const Known& known = origins[mix(frame.at(), scope) % origins.size()];
    if (known.at == frame.at() && known.scope == scope) [[likely]]
      return known.origin;
  }
  while (frame && in_library(frame.code())) frame.next();
  if (!frame) return nullptr;
  Place here = place_of(frame);
  Origin* caller = modes.whole_stacks ? caller_of(frame) : nullptr;
  Known& slot = origins[mix(here.at, scope) % origins.size()];
  const Origin* found = slot.origin;
  if (found && found->at == here.at && found->scope == scope && found->caller == caller) [[likely]]
    return slot.origin;
  Origin* fresh = new_origin(here, scope, caller);
  Origin* before = std::exchange(slot.origin, fresh);
  slot.at = caller ? nullptr : here.at;
  slot.scope = scope;
  if (before) before->decref();  // its code's constants may run code, which may take the slot
  return slot.origin;
}

Origin* origin_for_node() {
  if (!modes.running) return kept(origin_here());
  // A backward written in Python has lines of its own, unless it is one of the library's.
  if (modes.running->python_object()) {
    Origin* here = origin_here();
    const Origin* call = backward_origin(static_cast<uint32_t>(backward_id()));
    if (here && !(call && call->at == here->at)) return kept(here);
  }
  return kept(modes.running->origin);
}

// Lent; null where there is no Python frame or provenance is switched off.
static Cut* cut_here(CutKind kind, const OpDef* op, Origin* source) {
  Origin* where = origin_here();
  if (!where) return nullptr;
  bool unrecorded = kind == CutKind::no_grad || kind == CutKind::inference;
  Origin* region = unrecorded ? modes.unrecorded_since : nullptr;
  Cut*& slot = cuts[(mix(where, source) + static_cast<size_t>(kind)) % cuts.size()];
  if (!slot || slot->where != where || slot->source != source || slot->kind != kind ||
      slot->op != op || slot->region != region) {
    auto* c = new Cut();
    c->kind = kind;
    c->op = op;
    c->where = kept(where);
    c->source = kept(source);
    c->region = kept(region);
    Cut* before = std::exchange(slot, c);
    if (before) before->decref();
  }
  return slot;
}

static void replace(Cut*& member, Cut* by) {
  by->incref();
  Cut* before = std::exchange(member, by);
  if (before) before->decref();
}

static void keep_leaving(const char* how, const OpDef* op, Origin* source, double value,
                         int64_t count) {
  Origin* where = origin_here();
  Leaving* at = &leavings[(leaving_count + kept_leavings - 1) % kept_leavings];
  if (at->where != where || at->source != source || at->how != how) {
    at = &leavings[leaving_count++ % kept_leavings];
    Origin* const before[] = {std::exchange(at->where, kept(where)),
                              std::exchange(at->source, kept(source))};
    at->how = how;
    for (Origin* o : before)
      if (o) o->decref();
  }
  at->op = op;
  at->sequence = latest_sequence();
  at->value = value;
  at->count = count;
}

void mark_cut(TensorObj* t, CutKind kind, const OpDef* op, const Node* from) {
  Origin* source = from ? from->origin : nullptr;
  if (Cut* here = cut_here(kind, op, source)) replace(t->cut, here);
  if (!source) return;
  if (kind == CutKind::detach || kind == CutKind::data || kind == CutKind::dtype)
    keep_leaving(kind == CutKind::detach ? "detach()"
                 : kind == CutKind::data ? ".data"
                                         : "",
                 op, source, 0, t->shape->numel);
}

// Whether the number that left a graph there is the first or last element of the new tensor t.
static bool holds(const TensorObj* t, const Leaving& l) {
  const int64_t count = t->shape->numel;
  if (!l.where || l.count != 1 || l.value == 0 || l.value == std::trunc(l.value) || count == 0)
    return false;
  if (t->dtype != DType::Float32 && t->dtype != DType::Float64) return false;
  auto equal = [&](double v) { return v == l.value || v == double{static_cast<float>(l.value)}; };
  return t->shape->contiguous && t->storage->is_ready() &&
         (equal(end_of(t, false)) || equal(end_of(t, true)));
}

void mark_made(TensorObj* t) {
  Origin* source = nullptr;
  for (size_t i = 0; i < 4 && !source; ++i)
    if (const Leaving* l = leaving_before(i); l && holds(t, *l)) source = l->where;
  if (Cut* made = cut_here(CutKind::made, nullptr, source)) replace(t->cut, made);
}

Cut* new_backward_cut(Origin* where) {
  auto* c = new Cut();
  c->kind = CutKind::gradient;
  c->where = kept(where);
  return c;
}

Cut* note_unrecorded_uses(std::span<const Tensor> in, CutKind kind, const OpDef* op) {
  Cut* here = nullptr;
  for (const Tensor& t : in) {
    if (!t.defined() || !(t->flags & flag_requires_grad)) continue;
    if (Cut* before = t->extra ? t->extra->unrecorded : nullptr) {
      const Scope* scope = before->where->scope;
      // A use inside a model matters more than one outside it (saving, printing). Of equal uses in
      // one module the first is kept, so that no frame need be inspected again.
      if (scope && (!modes.scope || (op && scope == modes.scope && before->kind == kind))) continue;
    }
    if (!here && !(here = cut_here(kind, op, nullptr))) return nullptr;
    AutogradExtra& extra = extra_of(t);
    if (extra.unrecorded != here) replace(extra.unrecorded, here);
  }
  return here;
}

void carry_cut(TensorObj* out, const TensorObj* t, CutKind kind) {
  if (t->grad_fn || (t->flags & flag_requires_grad)) {
    if (!t->grad_fn) {
      Tensor leaf = Tensor::borrow(const_cast<TensorObj*>(t));
      note_unrecorded_uses({&leaf, 1}, kind, nullptr);
    }
    return mark_cut(out, kind, nullptr, t->grad_fn);
  }
  if (!t->cut) return;
  t->cut->incref();
  out->cut = t->cut;
}

void note_leaving(const TensorObj* t, const char* how, double value) {
  const Cut* cut = t->cut && t->cut->kind != CutKind::made ? t->cut : nullptr;
  if (!t->grad_fn && !(t->flags & flag_requires_grad) && !cut) return;
  keep_leaving(how, nullptr,
               t->grad_fn ? t->grad_fn->origin
               : cut      ? cut->source
                          : nullptr,
               value, t->shape->numel);
}
const Leaving* leaving_before(size_t rank) {
  if (rank >= std::min(leaving_count, kept_leavings)) return nullptr;
  return &leavings[(leaving_count - 1 - rank) % kept_leavings];
}

void note_write(Storage* storage) { note_write(storage, origin_here()); }
void note_write(Storage* storage, Origin* writer) {
  if (writer == storage->writer) return;
  if (Origin* before = std::exchange(storage->writer, kept(writer))) before->decref();
}

void set_library_folder(PyObject* folder) {
  library_folder = path_text(folder);
  for (KnownCode& known : codes) {
    Py_XDECREF(reinterpret_cast<PyObject*>(known.code));
    known = {};
  }
}
bool provenance_enabled() { return enabled; }
void enable_provenance(bool on) {
  enabled = on;
  tracer.forget_lines();
}

bool from_library(PyCodeObject* code) { return in_library(code); }

void note_recording(bool on) {
  if (on != modes.grad) note_recording(on ? nullptr : origin_here());
}
void note_recording(Origin* off_since) {
  Origin* before = std::exchange(modes.unrecorded_since, kept(off_since));
  if (before) before->decref();
}

std::string ask(const char* function, const char* format, ...) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  va_list values;
  va_start(values, format);
  PyObject* args = Py_VaBuildValue(format, values);
  va_end(values);
  PyObject* module = args ? PyImport_ImportModule("clew._insight.explain") : nullptr;
  PyObject* callable = module ? PyObject_GetAttrString(module, function) : nullptr;
  PyObject* got = callable ? PyObject_CallObject(callable, args) : nullptr;
  // A path need not be UTF-8.
  PyObject* utf8 = got && PyUnicode_Check(got)
                       ? PyUnicode_AsEncodedString(got, "utf-8", "backslashreplace")
                       : nullptr;
  std::string text = utf8 ? PyBytes_AS_STRING(utf8) : "";
  Py_XDECREF(utf8);
  Py_XDECREF(got);
  Py_XDECREF(callable);
  Py_XDECREF(module);
  Py_XDECREF(args);
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return text;
}

std::string ask_of(const char* function, const Origin* o) {
  if (!o) return {};
  std::string path = path_of(o->scope);
  return ask(function, "(Oiss)", reinterpret_cast<PyObject*>(o->code),
             static_cast<int>(o->instruction), path.c_str(),
             o->scope ? o->scope->type.c_str() : "");
}

std::string describe_callers(const Origin* o) {
  if (!o || !o->caller) return {};
  PyObject* places = PyList_New(0);
  for (; places && o; o = o->caller) {
    PyObject* place = Py_BuildValue("(Oi)", reinterpret_cast<PyObject*>(o->code),
                                    static_cast<int>(o->instruction));
    if (!place || PyList_Append(places, place) < 0) Py_CLEAR(places);
    Py_XDECREF(place);
  }
  std::string text = places ? ask("describe_calls", "(O)", places) : "";
  Py_XDECREF(places);
  return text;
}

std::string describe(const Origin* o) { return ask_of("describe", o); }

}  // namespace clew

// Search of results for NaN and infinity, forward and backward.
// May include: graph.
// Invariant: nothing is watched while a report is made.
#include "graph/watch.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "graph/batch.h"
#include "tensor/bits.h"

namespace clew {

constinit thread_local Watch watch;

namespace {

constexpr uint8_t watching = intercept_watch | intercept_anomaly;

bool is_plain(const Tensor& t, int64_t most) {
  return t->shape->contiguous && t->shape->numel <= most && t->storage->is_ready() &&
         !(t->flags & flag_batched);
}
NonFinite look(const Tensor& t) {
  if (!t.defined() || !is_inexact(t.dtype()) || t.numel() == 0) return NonFinite::none;
  if (is_small_and_finite(t)) return NonFinite::none;
  const Tensor& all = is_batched(t) ? physical(t) : t;
  return all.is_meta() ? NonFinite::none : builtins.non_finite(all);
}
NonFinite look(std::span<const Tensor> ts) {
  NonFinite worst = NonFinite::none;
  for (const Tensor& t : ts) worst = std::max(worst, look(t));
  return worst;
}

// A non-finite constant such as masked_fill's -inf was asked for by the user and is not reported.
NonFinite look(const OpDef& op, const void* attrs) {
  NonFinite worst = NonFinite::none;
  auto note = [&](double v) {
    if (std::isnan(v)) worst = NonFinite::nan;
    if (std::isinf(v)) worst = std::max(worst, NonFinite::infinity);
  };
  if (!op.attrs || !attrs) return worst;
  op.attrs->visit(attrs, [&]<class T>(int, const T& v) {
    if constexpr (std::is_same_v<T, double>) note(v);
    if constexpr (std::is_same_v<T, std::optional<double>>)
      if (v) note(*v);
    if constexpr (std::is_same_v<T, Scalar>) {
      if (v.is_float() || v.is_complex()) note(v.re);
      if (v.is_complex()) note(v.im);
    }
  });
  return worst;
}

// Whether `found` is to be reported when the worst that went in was `given`.
bool born(NonFinite found, NonFinite given) {
  if (found == NonFinite::nan) return watch.nan && given != NonFinite::nan;
  return found == NonFinite::infinity && watch.infinity && given == NonFinite::none;
}

PyObject* list_of(std::span<const Tensor> ts) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(ts.size()));
  if (!list) throw PythonError();
  for (size_t i = 0; i < ts.size(); ++i) {
    PyObject* o = ts[i].defined() ? reinterpret_cast<PyObject*>(ts[i].get()) : Py_None;
    Py_INCREF(o);
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), o);
  }
  return list;
}

// callback(name, found, place, backward, what went in, what came out)
void report(const std::string& name, NonFinite found, const Origin* where, bool backward,
            std::span<const Tensor> in, std::span<const Tensor> out) {
  InterceptWithout pause(watching);
  GradMode unrecorded(false);
  std::string place = where ? describe(where) : "";
  PyObject* args[2] = {list_of(in), nullptr};
  PyObject* got = nullptr;
  try {
    args[1] = list_of(out);
    got = PyObject_CallFunction(watch.callback, "sssOOO", name.c_str(),
                                found == NonFinite::nan ? "NaN" : "infinity", place.c_str(),
                                backward ? Py_True : Py_False, args[0], args[1]);
  } catch (...) {
    Py_DECREF(args[0]);
    throw;
  }
  Py_DECREF(args[0]);
  Py_DECREF(args[1]);
  if (!got) throw PythonError();
  Py_DECREF(got);
}

// Calls that are alike.
struct Alike {
  const OpDef* op;
  Origin* origin;  // counted
  uint64_t tensors;
  bool operator==(const Alike&) const = default;
};
struct AlikeHash {
  size_t operator()(const Alike& a) const {
    return (reinterpret_cast<uintptr_t>(a.op) ^ reinterpret_cast<uintptr_t>(a.origin) * 31) *
               0x9E3779B97F4A7C15u ^
           a.tensors;
  }
};

struct Observer {
  enum class Shows : uint8_t { none, few, all };
  PyObject* callback = nullptr;  // owned
  Shown what;                    // owned
  std::unordered_map<const OpDef*, Shows> known;
  std::unordered_map<Alike, int, AlikeHash> seen;  // how often since the last backward
  bool closely = false;

  Observer(PyObject* f, Shown w) : callback(Py_NewRef(f)), what(w) {
    Py_INCREF(what.names);
    Py_XINCREF(what.few);
  }
  ~Observer() {
    forget();
    Py_DECREF(callback);
    Py_DECREF(what.names);
    Py_XDECREF(what.few);
  }
  Observer(const Observer&) = delete;

  void forget() {
    for (auto& [call, times] : std::exchange(seen, {}))
      if (call.origin) call.origin->decref();
  }
  bool shows_operations() const { return PySet_GET_SIZE(what.names) > 0; }
  Shows shows(const OpDef& op) {
    auto [at, fresh] = known.try_emplace(&op, Shows::none);
    if (fresh) {
      PyObject* name = PyUnicode_FromString(std::string(op_name(op)).c_str());
      if (name && PySet_Contains(what.names, name) == 1)
        at->second = what.few && PySet_Contains(what.few, name) == 1 ? Shows::few : Shows::all;
      Py_XDECREF(name);
      PyErr_Clear();
    }
    return at->second;
  }
  // Whether enough similar calls have been shown.
  bool is_enough(const OpDef& op, std::span<const Tensor> in, std::span<const Tensor> outs);
};
constinit thread_local Observer* observer = nullptr;

uint64_t mixed(uint64_t h, uint64_t value) { return (h ^ value) * 0x9E3779B97F4A7C15u ^ h >> 29; }
uint64_t likeness(uint64_t h, const Tensor& t) {
  if (!t.defined()) return mixed(h, 1);
  const uint8_t flags = t->flags & (flag_requires_grad | flag_wrapped_number);
  h = mixed(h, static_cast<uint64_t>(t->dtype) << 16 | uint64_t{flags} << 8 |
                   static_cast<uint64_t>(t->grad_fn != nullptr) << 1);
  for (int64_t n : t->shape->sizes) h = mixed(h, static_cast<uint64_t>(n));
  for (int64_t n : t->shape->strides) h = mixed(h, static_cast<uint64_t>(n));
  return mixed(h, static_cast<uint64_t>(t.ndim()));
}

bool Observer::is_enough(const OpDef& op, std::span<const Tensor> in,
                         std::span<const Tensor> outs) {
  if (closely || outs.empty() || outs[0].numel() == 1) return false;
  uint64_t tensors = 0;
  for (const Tensor& t : in) {
    const bool number = t.defined() && (t->flags & flag_wrapped_number);
    if (t.defined() && !number && !is_inexact(t.dtype())) return false;
    tensors = likeness(tensors, t);
  }
  for (const Tensor& t : outs) tensors = likeness(tensors, t);
  Origin* origin = origin_here();
  auto [at, fresh] = seen.try_emplace({&op, origin, tensors}, 0);
  if (fresh && origin) origin->incref();
  return ++at->second > what.most;
}

// Sets the bit as the current observer needs it: the callback may have replaced or removed the
// observer.
void follow_observer() {
  const bool on = observer && observer->shows_operations();
  modes.intercept = static_cast<uint8_t>(on ? modes.intercept | intercept_observe
                                            : modes.intercept & ~intercept_observe);
}

void show(const char* name, std::span<const Tensor> in, std::span<const Tensor> out) {
  struct Showing {
    Showing() { watch.showing = true; }
    ~Showing() {
      watch.showing = false;
      follow_observer();
    }
  } now;
  const InterceptWithout pause(watching | intercept_observe);
  const GradMode unrecorded(false);
  PyObject* const callback = observer->callback;
  Py_INCREF(callback);
  PyObject* given = list_of(in);
  PyObject* made = list_of(out);
  PyObject* got = PyObject_CallFunction(callback, "sNN", name, given, made);
  Py_DECREF(callback);
  if (!got) throw PythonError();
  Py_DECREF(got);
}

void show_operation(const OpDef& op, std::span<const Tensor> in, std::span<const Tensor> outs) {
  if (!observer) return follow_observer();  // it went while its bit was put aside
  if (modes.running || watch.showing) return;
  const Observer::Shows shows = observer->shows(op);
  if (shows == Observer::Shows::none) return;
  if (shows == Observer::Shows::few && observer->is_enough(op, in, outs)) return;
  show(std::string(op_name(op)).c_str(), in, outs);
}

bool looks_at(const OpDef& op) {
  if (!(modes.intercept & intercept_watch)) return false;
  if (op.kind == OpKind::Composite || op.kind == OpKind::View) return false;
  return !modes.running || modes.running->python_object();
}

}  // namespace

void watch_results(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                   std::span<const Tensor> outs) {
  if (modes.intercept & intercept_observe) show_operation(op, in, outs);
  if (in.empty() || !looks_at(op)) return;
  NonFinite found = look(outs);
  if (found == NonFinite::none || !born(found, std::max(look(in), look(op, attrs)))) return;
  report(std::string(Call{op, in, attrs}.name()), found, origin_here(), backward_id() != 0, in,
         outs);
}

WatchedWrite::WatchedWrite(const OpDef& op, std::span<const Tensor> in, const void* attrs)
    : op_(op), in_(in), attrs_(attrs), on_(!in.empty() && looks_at(op)) {
  if (on_) before_ = std::max(look(in), look(op, attrs));
}
void WatchedWrite::done(const Tensor& written) const {
  if (modes.intercept & intercept_observe) show_operation(op_, in_, {&written, 1});
  if (!on_) return;
  NonFinite found = look(written);
  if (!born(found, before_)) return;
  report(concat(Call{op_, in_, attrs_}.name(), "_"), found, origin_here(), backward_id() != 0,
         in_.subspan(1), {&written, 1});
}

void observe(PyObject* callback, Shown what) {
  Observer* before = std::exchange(observer, callback ? new Observer(callback, what) : nullptr);
  follow_observer();
  delete before;
}
void observe_closely() {
  if (observer) observer->closely = true;
}
// Reports a backward. It needs no intercept bit, so operations keep their fast paths if only
// backward is observed.
void observe_backward(const char* how, std::span<const Tensor> roots) {
  if (!observer || watch.showing || modes.running || backward_id()) return;
  observer->closely = false;
  observer->forget();
  show(how, roots, {});
}

bool all_finite(std::span<const Tensor> ts) { return look(ts) == NonFinite::none; }

bool watch_sum(const Tensor& sum) {
  const NonFinite found = look(sum);
  if (found != NonFinite::none && born(found, NonFinite::none))
    report("add", found, origin_here(), true, {}, {&sum, 1});
  return found == NonFinite::none;
}

bool SmallGradient::keep(std::span<const Tensor> grads) {
  if (grads.size() != 1 || !grads[0] || !is_plain(grads[0], sizeof bytes_)) return false;
  const std::span<const std::byte> bytes = bytes_of(grads[0]);
  if (bytes.size() > sizeof bytes_) return false;
  std::ranges::copy(bytes, bytes_);
  return true;
}
Tensor SmallGradient::restored(const Tensor& like) const {
  Tensor t = empty(like.sizes(), like.dtype());
  const std::span<std::byte> to = bytes_of(t);
  std::copy_n(bytes_, to.size(), to.data());
  return t;
}

bool watch_gradients(Node& n, std::span<const Tensor> grads, std::span<const Tensor> made,
                     const SmallGradient* before) {
  NonFinite found = NonFinite::none;
  if (modes.intercept & intercept_watch) {
    for (const Tensor& t : made) {
      // Skip gradients passed through unchanged, or written over the incoming gradient (same
      // storage).
      const bool given = !before && std::ranges::any_of(grads, [&](const Tensor& g) {
        return g && t && g->storage == t->storage;
      });
      if (!given) found = std::max(found, look(t));
    }
    if (found != NonFinite::none && born(found, before ? NonFinite::none : look(grads))) {
      const Tensor given = before ? before->restored(grads[0]) : Tensor();
      report(n.name(), found, n.origin, true, before ? std::span(&given, 1) : grads, made);
    }
  }
  if (modes.intercept & intercept_anomaly)
    for (size_t i = 0; i < made.size(); ++i)
      if (look(made[i]) == NonFinite::nan)
        fail("Function '", n.name(), "' returned nan values in its ", i, "th output.");
  return found == NonFinite::none;
}

}  // namespace clew

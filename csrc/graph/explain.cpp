// The texts of the errors that autograd's classic mistakes end in.
// May include: graph.
// Invariant: a message says what went wrong, then the lines involved, then what to do; each of the
// latter on a line of its own.
#include "graph/explain.h"

#include <algorithm>
#include <cstdlib>
#include <typeinfo>
#include <unordered_set>
#include <vector>

namespace clew {

namespace {

// Keeps what a message is made from alive: Python code finds names and lines, and while it runs
// other threads may change tensors and release graphs.
template <class T> class Alive {
  T* p_;

 public:
  explicit Alive(const T* p) : p_(const_cast<T*>(p)) {
    if (p_) p_->incref();
  }
  ~Alive() {
    if (p_) p_->decref();
  }
  Alive(const Alive&) = delete;
  const T* get() const { return p_; }
};

std::string shown(const Tensor& t) { return concat(t); }

// A line of a message; empty when there is nothing to say.
std::string line(std::string_view before, const std::string& text) {
  return text.empty() ? "" : concat("\n  ", before, text);
}

bool same_line(const Origin* a, const Origin* b) {
  return a && b && a->code == b->code && ask_of("line", a) == ask_of("line", b);
}

// Whether two places are the same instruction, as in the rounds of a loop. Python 3.11 makes a call
// from one of two instructions four bytes apart; which one depends on how often it ran.
bool same_instruction(const Origin* a, const Origin* b) {
  return a && b && a->code == b->code && std::abs(a->instruction - b->instruction) <= 4;
}

// Where recording was switched off, unless that is the line of the cut itself.
std::string entered(const Cut& c) {
  if (!c.region || same_line(c.region, c.where)) return {};
  const char* mode = c.kind == CutKind::inference ? "inference_mode()" : "no_grad()";
  return line(concat(mode, " was entered at "), describe(c.region));
}

// How the numbers that became a tensor at `made` had left a graph, if that is known: by a call on
// the same line, or at the place that mark_made() noted.
std::string way_out(const Origin* made, const Origin* source) {
  for (size_t i = 0; i < kept_leavings; ++i) {
    const Leaving* l = leaving_before(i);
    if (!l) break;
    if (!l->where || l->op || !*l->how) continue;
    const char* how = l->how;
    const Alive<Origin> where(l->where);
    if (same_line(where.get(), made))
      return line("", concat("a value left its graph through ", how, " on the same line"));
    if (where.get() == source)
      return line(concat("its value left a graph through ", how, " at "), describe(where.get()));
  }
  return ask_of("way_out", made);
}

// Whether the same instruction made a newer node after the first backward. If so, n comes from an
// earlier round of a loop.
bool made_again(const Node& n, uint64_t first_root, const Node* root) {
  std::vector<const Node*> pending{root};
  std::unordered_set<const Node*> seen{root};
  while (!pending.empty()) {
    const Node* at = pending.back();
    pending.pop_back();
    if (at->is_accumulator || at->sequence <= first_root) continue;
    if (same_instruction(at->origin, n.origin)) return true;
    for (uint32_t i = 0; i < at->edge_count; ++i)
      if (const Node* fn = at->edges[i].fn; fn && seen.insert(fn).second) pending.push_back(fn);
  }
  return false;
}

// The name that the line gives to n's result; empty if n has several results.
std::string name_of_result(const Node& n) {
  const Origin* o = n.origin;
  if (n.output_count != 1 || !o) return {};
  return ask("result_name", "(Oisss)", reinterpret_cast<PyObject*>(o->code),
             static_cast<int>(o->instruction), path_of(o->scope).c_str(),
             o->scope ? o->scope->type.c_str() : "", n.name().c_str());
}

std::string quoted(std::string name) { return concat("`", name, "`"); }

}  // namespace

std::string describe_tensor(const Tensor& told, const Node* maker) {
  const Tensor t = told;
  if (!t->grad_fn && !maker) {
    std::string name = ask("member", "(O)", reinterpret_cast<PyObject*>(t.get()));
    if (!name.empty()) return concat(name, ", ", t);
  }
  std::string name = maker ? name_of_result(*maker) : "";
  return name.empty() ? shown(t) : concat(quoted(name), ", ", t);
}

void fail_written(const Node& saver, const Tensor& t, uint32_t version, bool is_output,
                  const Node* maker, uint32_t nr) {
  const uint32_t now = t->storage->version;
  const uint32_t writes = now - version;
  const Alive<Origin> last(t->storage->writer);
  const Alive<Node> by(&saver), from(maker);
  const Origin* writer = last.get();
  bool leaf = !is_output && (!maker || maker->is_accumulator);
  const Node* made = leaf ? nullptr : is_output ? &saver : maker;
  Error e(ErrorKind::Runtime,
          concat("one of the variables needed for gradient computation has been modified by an "
                 "inplace operation: ",
                 describe_tensor(t, made),
                 leaf        ? concat(", which was saved by ", saver.name())
                 : is_output ? concat(", which is output ", nr, " of ", saver.name())
                             : concat(", which is output ", nr, " of ", maker->name(),
                                      " and was saved by ", saver.name()),
                 ", is at version ", now, "; expected version ", version, " instead"));
  e.text += line("saved at ", describe(saver.origin));
  if (writes > 1)
    e.text += line(concat("written ", writes, " times since, the last time at "), describe(writer));
  else
    e.text += line("written at ", describe(writer));
  bool parameter = maker && maker->is_accumulator;
  std::string rewrite = parameter ? "" : ask_of("rewrite", writer);
  e.located = saver.origin != nullptr;
  std::string advice =
      parameter ? "run backward before the values change, or run forward again after it"
      : rewrite.empty()
          ? "write into a clone() of it, or use the out-of-place form of the operation"
          : concat("to keep the value that backward needs, write `", rewrite, "`");
  throw Explained(e, line("", advice));
}

void fail_consumed(const Node& n, const Node* root) {
  const Alive<Node> node(&n);
  const Alive<Origin> consumed_at(backward_origin(n.consumed));
  const Origin* first = consumed_at.get();
  uint64_t first_root = backward_root(n.consumed);
  std::string name = name_of_result(n);
  std::string value = concat(n.meta0.dtype, n.meta0.sizes());
  Error e(ErrorKind::Runtime,
          concat(n.name(),
                 ": Trying to backward through the graph a second time (or directly access saved "
                 "tensors after they have already been freed): what it saved to make ",
                 name.empty() ? value : concat(quoted(name), ", ", value, ","),
                 " was freed by the first backward"));
  e.text += line("made at ", describe(n.origin));
  e.text += line("first consumed by the backward at ", describe(first));
  const char* advice =
      "Specify retain_graph=True in the first backward, or run forward again before the second";
  if (root && first_root && root->sequence != first_root) {
    if (n.batched)
      advice =
          "calls of several samples ran as one (clew.autobatch), so that the samples share it: add "
          "their losses up and run backward once, or specify retain_graph=True in all rounds but "
          "the last";
    else if (!same_instruction(first, origin_here()))
      advice =
          "two results share it: add them up and run backward once, or specify "
          "retain_graph=True in the first backward";
    else if (made_again(n, first_root, root))
      advice =
          "it was carried over from an earlier round: detach() what is carried over, or "
          "specify retain_graph=True";
    else
      advice =
          "it was computed once, and several rounds need it: add their results up and run "
          "backward once, compute it in each round, or specify retain_graph=True in all rounds "
          "but the last";
  }
  e.located = n.origin != nullptr;
  throw Explained(e, line("", advice));
}

void fail_leaf_write(const char* op, const Tensor& leaf, bool through_view) {
  throw Explained(
      {ErrorKind::Runtime,
       concat(op, through_view ? ": a view of a leaf" : ": a leaf",
              " Variable that requires grad is being used in an in-place operation: ",
              describe_tensor(leaf, nullptr))},
      line("",
           "wrap the write in no_grad() if it is not to be differentiated; else write into a "
           "clone() of the leaf"));
}

void fail_unrecorded_view_write(const char* op, const Tensor& t) {
  std::string lines;
  const Alive<Cut> cut(t->cut);
  const Cut* c = cut.get();
  const char* mode = c && c->kind == CutKind::inference ? "inference_mode" : "no_grad";
  if (c && c->where) lines = line("the view was made at ", describe(c->where)) + entered(*c);
  throw Explained(
      {ErrorKind::Runtime,
       concat(op, ": a view was created in ", mode, " mode and is being modified inplace ",
              "with grad mode enabled: ", t)},
      lines + line("", concat("make the view outside ", mode, "(), or do both inside it")));
}

std::string why_no_grad(const Tensor& t) {
  const Alive<Cut> cut(t->cut);
  const Cut* c = cut.get();
  if (!c || !c->where) {
    const Alive<Origin> here(origin_here());
    return ask("without_parameters", "(s)", ask_of("way_out", here.get()).c_str());
  }
  std::string where = describe(c->where);
  std::string text;
  const char* advice = nullptr;
  auto region = [&](const char* mode) {
    text = concat("\n  ", c->op ? concat(op_name(*c->op), " was computed") : "it was made",
                  " under ", mode, " at ", where);
    text += entered(*c);
    advice = "compute what is to be differentiated where operations are recorded";
  };
  auto cut_by = [&](const std::string& what) {
    text = concat("\n  cut off from its history by ", what, " at ", where);
    if (c->source && !same_line(c->source, c->where))
      text += line("what it was cut off from was made at ", describe(c->source));
  };
  switch (c->kind) {
    case CutKind::no_grad: region("no_grad()"); break;
    case CutKind::inference: region("inference_mode()"); break;
    case CutKind::detach:
      cut_by("detach()");
      advice = "leave detach() out where gradients are to flow through";
      break;
    case CutKind::data:
      cut_by(".data");
      advice = "use the tensor itself, not its .data, where gradients are to flow through";
      break;
    case CutKind::dtype:
      cut_by(c->op->casts
                 ? "a cast to integers or booleans"
                 : concat(op_name(*c->op), ", whose result has a dtype without gradients,"));
      advice =
          "compute the loss from floating-point values (logits, probabilities), not from counts, "
          "positions or comparisons";
      break;
    case CutKind::gradient:
      text = concat("\n  it was computed from gradients of the backward at ", where,
                    ", which was not recorded");
      advice =
          "to differentiate gradients, compute them with create_graph=True, as in "
          "autograd.grad(y, x, create_graph=True)";
      break;
    case CutKind::made: {
      text = concat("\n  made from plain numbers at ", where);
      text += way_out(c->where, c->source);
      advice =
          "compute with tensors all the way: item(), tolist(), numpy() and tensor() leave the "
          "history behind";
      break;
    }
  }
  return text + line("", advice);
}

// The variable names of the failed operation's operands on the current line; empty strings for
// operands without a name.
static std::vector<std::string> names_on_the_line(const Origin* here, const Error& e,
                                                  size_t count) {
  std::vector<std::string> names(count);
  if (!here) return names;
  const std::string told =
      ask("operand_names", "(Oissi)", reinterpret_cast<PyObject*>(here->code),
          static_cast<int>(here->instruction), here->scope ? here->scope->type.c_str() : "",
          e.text.substr(0, e.text.find(':')).c_str(), static_cast<int>(count));
  size_t i = 0, start = 0;
  while (!told.empty() && i < count) {
    const size_t end = told.find('\n', start);
    names[i++] = told.substr(start, end - start);
    if (end == std::string::npos) break;
    start = end + 1;
  }
  return names;
}

// " on the same line", where the message names the line that runs and the node was made there.
static std::string made_where(const Origin* made, const Origin* here) {
  if (!modes.scope || !same_line(here, made)) return concat(" at ", describe(made));
  const std::string path = path_of(made->scope);
  const std::string now = path_of(here->scope);
  if (path.empty() || path == now || now.starts_with(concat(path, "."))) return " on the same line";
  return concat(" in module ", path, ": ", made->scope->type);
}

void rethrow_with_operands(const Error& e, std::span<const Tensor> in) {
  if (typeid(e) != typeid(Error) || e.kind != ErrorKind::Runtime || modes.running) throw;
  constexpr size_t most = 3;
  struct Operand {
    Tensor value;
    NodeRef maker;  // null if there is nothing to say about it
  };
  std::vector<Operand> operands;
  size_t made = 0;
  const Alive<Origin> line_now(origin_here());
  const Origin* here = line_now.get();
  for (const Tensor& t : in) {
    if (!t.defined()) continue;
    Node* maker = t->grad_fn;
    const Origin* at = maker ? maker->origin : nullptr;
    // Operands made by the same library operation add no information.
    const bool inside = same_instruction(here, at) && here->scope == at->scope;
    if (at && !inside && ++made > most) throw;  // a list of tensors: not all of them matter
    operands.push_back({t, at && !inside ? NodeRef::borrow(maker) : NodeRef()});
  }
  if (operands.size() > 16) throw;
  std::vector<std::string> names;
  std::string details;
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto& [t, maker] = operands[i];
    const Node* n = maker.get();
    std::string what;
    if (n)
      what = concat(" made by ", n->name(), made_where(n->origin, here));
    else if (!t->grad_fn)
      what = ask("called_member", "(O)", reinterpret_cast<PyObject*>(t.get()));
    if (what.empty()) continue;
    if (names.empty()) {
      names = names_on_the_line(here, e, operands.size());
      const bool any = std::ranges::any_of(names, [](const auto& name) { return !name.empty(); });
      if (made > 2 && !any) throw;
    }
    std::string name = names[i].empty() && n ? name_of_result(*n) : names[i];
    // A layer's own tensors, only where they are what does not fit.
    if (name.empty() && !n && e.text.find(concat(t)) == std::string::npos) continue;
    details += concat("\n  ", name.empty() ? "" : concat(quoted(name), ", "), t,
                      name.empty() ? "" : ",", n ? " was" : " is ", what);
  }
  if (details.empty()) throw;
  throw Explained(e, details);
}

std::string describe_moment(const Node& n, Moment moment) {
  if (n.is_accumulator)
    return concat(
        moment == Moment::tensor_hook ? "in a hook on the gradient of " : "at the gradient of ",
        describe_tensor(static_cast<const AccumulateGrad&>(n).variable, nullptr));
  if (!n.origin) return {};
  const char* what = moment == Moment::rule          ? "in the backward of "
                     : moment == Moment::tensor_hook ? "in a hook on the gradient of the result of "
                                                     : "in a hook of ";
  return concat(what, n.name(), ", made at ", describe(n.origin), describe_callers(n.origin));
}

std::string describe_gradient(const Node& n, int64_t index) {
  PyObject* context = const_cast<Node&>(n).python_object();
  return context ? ask("gradient_of", "(OL)", context, static_cast<long long>(index)) : "";
}

// Says where the node came from whose gradient failed; the error in flight goes on.
void locate(Error& e, const Node& n, Moment moment) {
  if (e.located) return;
  std::string place = describe_moment(n, moment);
  if (place.empty()) return;
  e.located = true;
  e.text += concat("\n  ", place);
}
// One object may be raised again and again.
static bool has_note(PyObject* error, const std::string& note) {
  PyObject* notes = PyObject_GetAttrString(error, "__notes__");
  PyObject* text = notes ? PyUnicode_FromString(note.c_str()) : nullptr;
  bool has = text && PySequence_Contains(notes, text) == 1;
  PyErr_Clear();
  Py_XDECREF(text);
  Py_XDECREF(notes);
  return has;
}
// Adds the note unless the exception's text already contains the place.
static void add_note(PyObject* error, const std::string& note, const std::string& place) {
  PyObject* text = PyObject_Str(error);
  const char* told = text ? PyUnicode_AsUTF8(text) : nullptr;
  PyObject* got = nullptr;
  if (told && (place.empty() || !std::strstr(told, place.c_str())) && !has_note(error, note))
    got = PyObject_CallMethod(error, "add_note", "s", note.c_str());
  PyErr_Clear();
  Py_XDECREF(got);
  Py_XDECREF(text);
}
void locate_python_error([[maybe_unused]] const Node& n, [[maybe_unused]] Moment moment) {
#if PY_VERSION_HEX >= 0x030b0000
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return;  // an exit or an interrupt is no mistake
  std::string note = describe_moment(n, moment);
  if (note.empty()) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value) add_note(value, note, describe(n.origin));
  PyErr_Restore(type, value, traceback);
#endif
}

}  // namespace clew

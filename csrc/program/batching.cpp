// Gathers calls and delivers their results to the tensors that are still held.
// May include: program, graph, tensor.
// Invariant: as batching.h.
#include "program/batching.h"

#include <array>
#include <chrono>
#include <thread>

#include "base/long_work.h"
#include "base/parallel.h"
#include "graph/deferral.h"
#include "graph/elementwise.h"
#include "graph/explain.h"
#include "graph/inplace.h"
#include "program/batch_run.h"
#include "tensor/bits.h"

namespace clew::program {

thread_local bool (*before_observation)() = nullptr;

namespace {

constinit thread_local Batching* current_batching = nullptr;  // counted

// More calls than this do not wait: what they hold would grow without a bound.
constexpr size_t most_gathered = size_t{1} << 18;
// A tensor whose bytes others may write unseen is copied up to so many elements.
constexpr int64_t most_elements_copied = int64_t{1} << 18;

// Stands for the makers of results that wait.
struct Promise final : Node {
  Promise() : Node(false) { promised = true; }
  void run(std::span<const Tensor>, Tensor*) override {
    fail_internal("a gradient came to calls that have not run");
  }
  std::string name() const override { return "WaitingBackward"; }
};

bool waits_for(const Tensor& t, const Batching* b) {
  return t->storage->is_pending() && t->storage->owner == static_cast<const Waiting*>(b);
}

// Whether the operation's result depends on its input's memory layout.
bool depends_on_layout(const OpDef& op) { return op.aliases || op.by_strides; }

// hash_of_type(), of shapes that come again and again.
uint64_t hash_of_shape(DType dtype, Shape* shape) {
  struct Known {
    uint64_t hash = 0;
    ShapeRef shape;  // kept, so that no other has its address
    DType dtype = DType::Float32;
  };
  static auto& table = *new std::array<Known, 256>();
  const auto address = reinterpret_cast<uintptr_t>(shape);
  Known& k = table[(address / 64 + address / 4096 + static_cast<size_t>(dtype)) % table.size()];
  if (k.shape.get() != shape || k.dtype != dtype)
    k = {hash_of_type(dtype, shape->sizes), ShapeRef::borrow(shape), dtype};
  return k.hash;
}

}  // namespace

Batching* gathering() { return current_batching; }

BatchReport& batch_report() {
  static auto& one = *new BatchReport();
  return one;
}
BatchReport::BatchReport(const BatchReport& r)
    : calls(r.calls), ends(r.ends), gathered(r.gathered), saved_ns(r.saved_ns), lost_ns(r.lost_ns) {
  for (const BatchedCall& c : calls) kept(c.origin);
  for (const End& e : ends) kept(e.where);
}
void BatchReport::forget() {
  for (const BatchedCall& c : calls)
    if (c.origin) c.origin->decref();
  for (const End& e : ends)
    if (e.where) e.where->decref();
  calls.clear();
  ends.clear();
  gathered = 0;
  saved_ns = lost_ns = 0;
}

// ---- keeping ------------------------------------------------------------------------------------

// The number of a result that waits here; -1 where it is another tensor.
int32_t Batching::value_of(const Tensor& t) const {
  const uint32_t i = t->output_nr;
  return (t->flags & flag_gathered) && i < values_.size() && values_[i].tensor == t.get()
             ? static_cast<int32_t>(i)
             : -1;
}

void forget(TensorObj* t) {
  if (!t->storage->is_pending() || !t->storage->owner) return;
  auto* b = static_cast<Batching*>(static_cast<Waiting*>(t->storage->owner));
  if (t->output_nr >= b->values_.size()) return;
  Value& v = b->values_[t->output_nr];
  if (v.tensor != t) return;
  v.tensor = nullptr;
  if (t->storage->refs == 1) return;
  v.storage = t->storage;
  v.storage->incref();
}

// A result that waits.
Tensor Batching::promised(Tensor t, bool records) {
  if (modes.inference) t->flags |= flag_inference;
  if (records && is_inexact(t.dtype())) {
    if (!promise_) promise_ = NodeRef::steal(new Promise());
    promise_->incref();
    t->grad_fn = promise_.get();
  }
  return t;
}

void Batching::keep(const OpDef& op, std::span<const Tensor> in, const void* attrs, uint64_t call,
                    std::span<const Tensor> results) {
  Gathered c{&op,
             nullptr,
             kept(origin_here()),
             static_cast<uint32_t>(givens_.size()),
             static_cast<uint32_t>(in.size()),
             static_cast<uint32_t>(values_.size()),
             static_cast<uint32_t>(results.size()),
             modes.grad,
             modes.inference,
             call};
  if (op.attrs && attrs) {
    c.attrs = arena_.take(op.attrs->size);
    op.attrs->copy(c.attrs, attrs);
  }
  if (calls_.empty()) {
    unfinished().push_back(this);
    incref();
  }
  for (const Tensor& t : in) {
    Given& g = givens_.emplace_back();
    if (!t.defined()) {
      c.kind = mixed(c.kind, 1);
      continue;
    }
    if (waits_for(t, this)) {
      g.value = value_of(t);
      g.recorded = t->grad_fn != nullptr;
      // What requires no grad must not share the history of what does.
      c.kind = mixed(mixed(c.kind, g.recorded), values_[static_cast<size_t>(g.value)].type);
      continue;
    }
    g.recorded = t.requires_grad();
    c.kind = mixed(mixed(c.kind, 2 + g.recorded), hash_of_shape(t.dtype(), t->shape));
    if (t.is_wrapped_number()) {
      const auto bits = bits_of_first(t);
      c.kind = mixed(mixed(c.kind, bits[0]), bits[1]);
    }
    // Copies bytes that other code may write unseen (NumPy, DLPack). A leaf is not copied.
    if (t->storage->is_exposed() && !t.requires_grad()) {
      const GradMode off(false);
      g.outer = empty(t.sizes(), t.dtype());
      copy_into(g.outer, t);
    } else {
      g.outer = t;
    }
    g.read = g.outer->storage;
    g.read->incref();
    ++g.read->awaited;
  }
  for (const Tensor& t : results) {
    t->output_nr = static_cast<uint32_t>(values_.size());
    t->flags |= flag_gathered;
    await(t->storage);
    t->shape->incref();
    values_.push_back({t.get(), nullptr, t->shape, hash_of_shape(t.dtype(), t->shape), t.dtype()});
  }
  calls_.push_back(c);
}

// Makes pending results for a call whose result types are not cached.
void Batching::promise(const OpDef& op, std::span<const Tensor> in, const void* attrs, bool records,
                       Tensors& results) {
  if (op.kind == OpKind::Elementwise) {
    const OutputTypes types = elementwise_types(op, in);
    if (!(*op.loops)[types.compute]) return clew::settle(in);
    const Dims sizes = elementwise_shape(op, in);
    for (size_t i = 0; op.check_number && i < in.size(); ++i)
      if (in[i].is_wrapped_number())
        op.check_number(static_cast<int>(i), item(in[i]), types.compute);
    results.push_back(
        promised(empty_like_inputs(sizes, in, types.output, NewBytes::pending()), records));
  } else if (op.kind == OpKind::View) {
    std::vector<ViewSpec> specs;
    op.view(clew::Call{op, in, attrs}, specs);
    for (const ViewSpec& s : specs)
      results.push_back(
          promised(empty_strided(s.sizes, s.strides, in[0].dtype(), NewBytes::pending()), records));
  } else {
    OutSpecs specs;
    op.shape(clew::Call{op, in, attrs}, specs);
    device_of(op, in);
    for (int k = 0; k < specs.size(); ++k) {
      const OutSpec& s = specs[k];
      results.push_back(
          promised(s.strides ? empty_strided(s.sizes, *s.strides, s.dtype, NewBytes::pending())
                             : empty(s.sizes, s.dtype, NewBytes::pending()),
                   records));
    }
  }
}

bool Batching::take(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs) {
  // Modes that inspect results need them at once.
  constexpr uint8_t looking = intercept_watch | intercept_anomaly | intercept_observe;
  bool fits =
      !running_ && !modes.saved_hooks && !(modes.intercept & looking) && !depends_on_layout(op);
  bool own = false, others = false, unrecorded = false;
  for (const Tensor& t : in) {
    if (!t.defined()) continue;
    if (is_batched(t)) return false;  // vmap comes back with the tensors behind it
    unrecorded = unrecorded || (t->flags & flag_inference);
    if (t->storage->is_pending()) {
      const bool here = waits_for(t, this);
      own = own || here;
      // The operand is pending in another program, or is a second tensor object over a pending
      // result.
      others = others || !here || value_of(t) < 0;
    } else if (t.is_meta()) {
      fits = false;
    } else if (t->storage->is_exposed() && t.numel() > most_elements_copied && !t.requires_grad()) {
      fits = false;
    }
  }
  if (op.kind == OpKind::View && !own) return false;  // needs no numbers
  const bool records = modes.grad && any_requires_grad(in);
  if (unrecorded && records) fits = false;  // an operation that saves it raises now
  if (!fits) {
    clew::settle(in);
    return false;
  }
  if (op.find || op.at_once) {
    clew::settle(in);
    return false;
  }
  if (op.draws || is_random(op)) {
    if (!modes.vmap && own && op.draw && op.draw(clew::Call{op, in, attrs}, outs)) return true;
    clew::settle(in);
    return false;
  }
  if (calls_.size() >= most_gathered) {
    run(Ending::full);
    others = true;
  }
  if (others)
    for (const Tensor& t : in)
      if (t.defined() && t->storage->is_pending() && (!waits_for(t, this) || value_of(t) < 0))
        settle_storage(t->storage);
  const uint64_t call = hash_of_call(op, attrs, in.size());
  const int first = outs.size();
  if (const KnownResults::Entry* known = known_.find(call, in)) {
    for (const KnownResults::Result& r : known->results()) {
      Storage* s = Storage::allocate(r.nbytes, NewBytes::pending());
      outs.push_back(promised(over_parts(s, r.shape.get(), 0, r.dtype, 0), records));
      s->decref();
    }
  } else {
    const size_t before = calls_.size();
    Tensors results;
    promise(op, in, attrs, records, results);
    // There is no result, or the shape rule read a value, so that all calls have run.
    if (results.size() == 0 || calls_.size() != before) return false;
    known_.learn(op, call, in, {results.begin(), results.end()});
    for (Tensor& t : results) outs.push_back(std::move(t));
  }
  keep(op, in, attrs, call, {outs.begin() + first, outs.end()});
  return true;
}

// ---- running ------------------------------------------------------------------------------------

void Batching::run(Ending why) {
  if (running_) {
    if (pthread_equal(thread_, pthread_self())) {
      if (stretch.held > 0) return;  // a kernel reads what it was given
      fail("a signal handler asked for values that the interrupted program is computing");
    }
    while (running_) {
      void* state = interpreter.leave();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      interpreter.enter(state);
    }
    return;
  }
  if (calls_.empty()) return;
  if (why == Ending::observed && before_observation) {
    if (!asked_) asked_ = kept(origin_here());
    if (before_observation()) return;
  }
  Origin* where = std::exchange(asked_, nullptr);
  if (where)
    why = Ending::observed;
  else if (why == Ending::observed)
    where = kept(origin_here());
  incref();
  running_ = true;
  thread_ = pthread_self();
  BatchReport& told = batch_report();
  told.gathered += calls_.size();
  if (told.ends.size() < 1024)
    told.ends.push_back({why, static_cast<uint32_t>(calls_.size()), where});
  else if (where)
    where->decref();
  // Releasing a call's tensors may run arbitrary code, so the lists are moved out first. Results
  // stay registered by their objects until they have been delivered.
  std::vector<Gathered> calls = std::exchange(calls_, std::exchange(spare_calls_, {}));
  std::vector<Given> givens = std::exchange(givens_, std::exchange(spare_givens_, {}));
  const Arena attrs = std::exchange(arena_, {});
  const NodeRef promise = std::exchange(promise_, {});
  std::exception_ptr failure;
  {
    BatchRun batches(calls, givens, values_);
    try {
      const WithPauses pauses;
      failure = batches.execute();
    } catch (...) {
      failure = std::current_exception();
      batches.abandon(failure);
    }
  }
  for (Gathered& c : calls) {
    if (c.attrs) c.op->attrs->destroy(c.attrs);
    if (c.origin) c.origin->decref();
  }
  for (Given& g : givens) {
    if (!g.read) continue;
    --g.read->awaited;
    g.read->decref();
  }
  for (const Value& v : values_) {
    if (v.storage) v.storage->decref();
    v.shape->decref();
  }
  values_.clear();
  strike(this);
  running_ = false;
  calls.clear();
  givens.clear();
  // Their memory is kept for the next calls.
  spare_calls_ = std::move(calls);
  spare_givens_ = std::move(givens);
  decref();  // of the run
  decref();  // of the calls
  if (failure) std::rethrow_exception(failure);
}

Batching::~Batching() {
  if (asked_) asked_->decref();
  strike(this);
}

// ---- of this thread -----------------------------------------------------------------------------

void gather_calls(bool on) {
  if (on) {
    if (!current_batching) current_batching = new Batching();
    modes.intercept = static_cast<uint8_t>(modes.intercept | intercept_collect);
  } else {
    modes.intercept = static_cast<uint8_t>(modes.intercept & ~intercept_collect);
  }
}

static void same_view(const clew::Call& c, std::vector<ViewSpec>& out) {
  out.push_back({c.in[0].sizes(), c.in[0].strides(), 0});
}
static void no_history(Vjp&) { fail_internal("what was detached has no history"); }
constinit const OpDef detach_op = view({
    .signature = "detach(Tensor input) -> Tensor",
    .doc = "The same elements without history.",
    .view = same_view,
    .vjp = no_history,
});

Tensor detach_gathered(const Tensor& t) {
  const GradMode off(false);
  // Not through apply(): where saved-tensor hooks or watches make calls run at once, it would be a
  // view.
  Tensors made;
  if (current_batching && current_batching->take(detach_op, std::span(&t, 1), nullptr, made))
    return made[0];
  if (t->flags & flag_gathered) settle_storage(t->storage);
  return alias(t);
}

bool collect(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs) {
  return current_batching->take(op, in, attrs, outs);
}

size_t run_collected() {
  if (!current_batching) return 0;
  const size_t count = current_batching->waiting();
  current_batching->run(Ending::region);
  return count;
}

}  // namespace clew::program

// Keeping calls and running them.
// May include: program, graph, tensor.
// Invariant: calls run as if in the order in which they were made.
#include "program/program.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

#include "base/long_work.h"
#include "base/parallel.h"
#include "graph/elementwise.h"
#include "graph/explain.h"
#include "graph/node.h"
#include "program/batching.h"
#include "program/recipe.h"

namespace clew::program {

namespace {

// The program that the calls of this thread go to; counted.
constinit thread_local Program* current = nullptr;
// More calls than this do not wait: what they hold would grow without a bound.
constexpr size_t most_waiting = 4096;

}  // namespace

Operand::Operand(const Tensor& t)
    : storage(t->storage),
      shape(t->shape),
      offset(t->offset),
      dtype(t->dtype),
      flags(t->flags & kept_flags) {
  storage->incref();
  ++storage->awaited;
  shape->incref();
}
Tensor Operand::tensor() const {
  if (!storage) return {};
  return over_parts(storage, shape, offset, dtype, flags);
}

void* Arena::take(size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  if (bytes > left_) {
    const size_t size = std::max(bytes, block);
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
    next_ = blocks_.back().get();
    left_ = size;
  }
  void* at = next_;
  next_ += bytes;
  left_ -= bytes;
  return at;
}

void give_bytes(Storage* s) {
  if (!s->data && s->nbytes > 0) s->take_bytes();
}

bool is_spent(const Storage& s, uint32_t uses) {
  // What an earlier call of the program made waits for its end, though it has its bytes.
  const bool alone = s.is_pending() || (!s.owner && !s.release);
  return s.data && s.refs == uses && alone && !s.is_exposed();
}

// ---- keeping ------------------------------------------------------------------------------------

std::vector<Waiting*>& unfinished() {
  static auto& all = *new std::vector<Waiting*>();
  return all;
}
void strike(Waiting* w) { std::erase(unfinished(), w); }

void leave(Storage* s) {
  auto* w = static_cast<Waiting*>(std::exchange(s->owner, nullptr));
  s->release = nullptr;
  s->state = Bytes::ready;
  w->decref();
}

void Waiting::await(Storage* s) {
  if (s->is_pending() && s->owner == this) return;
  if (Content* c = content_of(s)) contents_change(c);
  if (s->is_pending() && s->owner) settle_storage(s);
  s->state = Bytes::pending;
  s->owner = this;
  s->release = leave;
  incref();
}

void Program::keep(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                   std::span<const Tensor> results, Waits how, DType compute) {
  Call c{&op,
         nullptr,
         kept(origin_here()),
         static_cast<uint32_t>(operands_.size()),
         static_cast<uint32_t>(in.size()),
         static_cast<uint32_t>(results.size()),
         how,
         compute,
         how == Waits::write};
  if (op.attrs && attrs) {
    c.attrs = arena_.take(op.attrs->size);
    if (op.attrs->trivial)
      std::memcpy(c.attrs, attrs, op.attrs->size);
    else
      op.attrs->copy(c.attrs, attrs);
  }
  for (const Tensor& t : in) operands_.push_back(t.defined() ? Operand(t) : Operand());
  for (const Tensor& t : results) {
    // A fresh result belongs to no program yet.
    c.in_place = c.in_place || !t->storage->is_pending() || t->storage->owner;
    operands_.emplace_back(t);
    await(t->storage);
  }
  if (how == Waits::write) await(in[0]->storage);
  calls_.push_back(c);
}

// ---- running ------------------------------------------------------------------------------------

// Uses the operation's quick form if it has one, for the same bits as a call that does not wait.
bool Program::run_quick(const Call& c, std::span<const Tensor> in) {
  const Tensor made = c.op->quick(clew::Call{*c.op, in, c.attrs});
  if (!made) return false;
  const Operand& o = results(c)[0];
  const Shape &have = *made->shape, &want = *o.shape;
  if (!o.storage->data && made->storage->refs == 1 && made->storage->resizable &&
      made->storage->nbytes == o.storage->nbytes && made->offset == o.offset &&
      have.sizes == want.sizes && have.strides == want.strides) {
    o.storage->take_bytes_of(made->storage);
  } else {
    give_bytes(o.storage);
    copy_into(o.tensor(), made);
  }
  return true;
}

// If there is an operand that nobody needs any more, writes the result over it. This cannot be
// interrupted, because it could not begin again.
bool Program::run_over_operand(const Call& c) {
  const Operand& to = results(c)[0];
  if (to.storage->data || to.offset != 0 || to.dtype != c.compute ||
      to.shape->numel > most_overwritten)
    return false;
  for (const Operand& from : inputs(c)) {
    // Read in another way, as transposed, it would be read after it has been written.
    const auto uses = std::count_if(inputs(c).begin(), inputs(c).end(),
                                    [&](const Operand& o) { return o.same_place(from); });
    if (from.dtype != to.dtype || from.offset != 0 || from.storage->nbytes != to.storage->nbytes ||
        from.shape->sizes != to.shape->sizes || from.shape->strides != to.shape->strides ||
        !is_spent(*from.storage, static_cast<uint32_t>(uses)))
      continue;
    const Whole whole;
    // Nobody but this call waits to read it: there is nothing to settle before it is written.
    const uint32_t awaited = from.storage->awaited;
    from.storage->awaited = 0;
    struct Restore {
      Storage* s;
      uint32_t awaited;
      ~Restore() { s->awaited = awaited; }
    } const restore{from.storage, awaited};
    {
      Tensors in;
      for (const Operand& o : inputs(c)) in.push_back(o.tensor());
      run_elementwise_into(*c.op, in, c.attrs, c.compute, from.tensor(), to.dtype);
    }
    to.storage->take_bytes_of(from.storage);
    return true;
  }
  return false;
}

void Program::run_one(const Call& c, bool may_overwrite) {
  if (c.how == Waits::loops && may_overwrite && run_over_operand(c)) return;
  Tensors in, made;
  for (const Operand& o : inputs(c)) in.push_back(o.tensor());
  if (c.how == Waits::kernel && c.op->quick && run_quick(c, in)) return;
  for (const Operand& o : results(c)) {
    give_bytes(o.storage);
    made.push_back(o.tensor());
  }
  switch (c.how) {
    case Waits::loops:
      run_elementwise_into(*c.op, in, c.attrs, c.compute, made[0], made[0].dtype());
      return;
    case Waits::write: c.op->write(clew::Call{*c.op, in, c.attrs}); return;
    case Waits::kernel: {
      c.op->cpu(clew::Call{*c.op, in, c.attrs}, made);
      // A kernel may put a tensor of its own there.
      for (int k = 0; k < made.size(); ++k) {
        const Operand& o = results(c)[static_cast<size_t>(k)];
        if (made[k]->storage != o.storage) copy_into(o.tensor(), made[k]);
      }
      return;
    }
  }
}

void Program::release(Operand& o) {
  Storage* s = o.storage;
  if (!s) return;
  // If the last call that uses the storage has run, it leaves the program. After a failure, a
  // storage without bytes stays pending: reading it raises the error.
  if (--s->awaited == 0 && s->is_pending() && s->owner == static_cast<Waiting*>(this) &&
      (s->data || s->nbytes == 0 || !failure_))
    leave(s);
  o.storage = nullptr;
  s->decref();
  std::exchange(o.shape, nullptr)->decref();
}

// Calls from `first` on have failed or will never run. Their results get no bytes and stay pending,
// so that whoever reads one of them gets the error.
void Program::drop_results(size_t first) {
  for (size_t k = first; k < calls_.size(); ++k) {
    if (calls_[k].in_place) continue;
    for (const Operand& o : results(calls_[k])) {
      if (!o.storage || !o.storage->data || o.storage->owner != static_cast<Waiting*>(this))
        continue;
      Storage* shell = Storage::allocate(o.storage->nbytes, NewBytes::pending());
      o.storage->take_bytes_of(shell);
      shell->state = Bytes::ready;
      shell->decref();
    }
  }
}

// Calls before `end` have run: what only they held is free.
void Program::finish(size_t end) {
  while (next_ < end) {
    Call& c = calls_[next_++];
    for (uint32_t i = 0; i < c.inputs + c.results; ++i) release(operands_[c.first + i]);
    if (c.attrs && !c.op->attrs->trivial) c.op->attrs->destroy(c.attrs);
    if (c.origin) std::exchange(c.origin, nullptr)->decref();
  }
}

// Tells the report that calls before `end` have run in one pass.
void Program::note(size_t end, Pass&& pass) {
  constexpr size_t most_told = 16384;
  Report& r = report();
  if (!r.is_of_this_thread()) return;
  if (r.calls.size() >= most_told) {
    r.cut_short = true;
    return;
  }
  pass.calls = static_cast<uint32_t>(end - next_);
  for (size_t k = next_; k < end; ++k) r.calls.push_back({calls_[k].op, kept(calls_[k].origin)});
  r.passes.push_back(pass);
}

void Program::run_calls() {
  const PlainModes plain;
  const WithPauses pauses;  // the program holds bytes and sizes
  while (next_ < calls_.size()) {
    Pass pass;
    const size_t end = run_tiles(*this, next_, pass);
    if (end == next_) run_one(calls_[next_], true);
    const size_t done = std::max(end, next_ + 1);
    note(done, std::move(pass));
    finish(done);
  }
}

void rethrow_made_at(Origin* origin) {
  try {
    throw;
  } catch (const Error& e) {
    if (!origin || e.located) throw;
    throw Explained(e, concat("\n  in a call that waited, made at ", describe(origin)));
  }
}

void Program::run(Ending why) {
  if (failure_) std::rethrow_exception(failure_);
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
    if (failure_) std::rethrow_exception(failure_);
    return;
  }
  if (next_ == calls_.size()) return;
  incref();  // its last storage may leave it
  Report& told = report();
  if (told.is_of_this_thread() && !told.cut_short) {
    Origin* where = why == Ending::observed ? kept(origin_here()) : nullptr;
    told.ends.push_back({why, static_cast<uint32_t>(waiting()), where});
  }
  if (current == this) std::exchange(current, nullptr)->decref();
  running_ = true;
  thread_ = pthread_self();
  try {
    try {
      run_calls();
    } catch (...) {
      rethrow_made_at(calls_[next_].origin);
    }
  } catch (const PythonError&) {
    // An interrupt: the remaining calls run when a value is read. An interrupted write in place is
    // partly done, as it would be without waiting, and is not restarted.
    if (calls_[next_].in_place) finish(next_ + 1);
    running_ = false;
    decref();
    throw;
  } catch (...) {
    failure_ = std::current_exception();
    drop_results(next_);
    finish(calls_.size());
    running_ = false;
    strike(this);
    decref();
    throw;
  }
  running_ = false;
  strike(this);
  decref();
}

Program::~Program() {
  strike(this);
  finish(calls_.size());
}

Tensor copy_of_now(const Tensor& t) {
  Storage* copy = Storage::allocate(t->storage->nbytes);
  if (copy->nbytes) std::memcpy(copy->data, t->storage->data, copy->nbytes);
  Tensor same = over_parts(copy, t->shape, t->offset, t->dtype, t->flags & kept_flags);
  copy->decref();
  return same;
}

// ---- what graph/ and tensor/ ask for ------------------------------------------------------------

namespace {

// A program that may lose its last storage while it runs.
class Hold {
  Waiting* p_;

 public:
  explicit Hold(Waiting* p) : p_(p) { p_->incref(); }
  ~Hold() { p_->decref(); }
  Hold(const Hold&) = delete;
  Waiting* operator->() const { return p_; }
};

// Before a call that waits here writes: others' calls that read there run now.
static void run_other_readers(const Tensor& written) {
  if (!written->storage->awaited || unfinished().size() <= (current ? 1 : 0)) return;
  const Tensor held = written;
  std::deque<Hold> others;
  for (Waiting* p : unfinished())
    if (p != static_cast<Waiting*>(current)) others.emplace_back(p);
  for (const Hold& p : others) p->run(Ending::elsewhere);
}

void keep(const OpDef& op, std::span<const Tensor> in, const void* attrs,
          std::span<const Tensor> results, Waits how, DType compute) {
  if (current && current->waiting() >= most_waiting) current->run(Ending::full);
  for (const Tensor& t : in)
    if (t.defined() && t->storage->is_pending() &&
        t->storage->owner != static_cast<Waiting*>(current))
      settle_storage(t->storage);  // of another thread's program, or of one that runs
  if (how == Waits::write) run_other_readers(in[0]);
  for (const Tensor& t : results)
    if (!t->storage->is_pending()) run_other_readers(t);
  Tensors own;
  for (const Tensor& t : in) {
    if (t.defined() && t->storage->is_exposed()) {
      for (const Tensor& each : in)
        own.push_back(each.defined() && each->storage->is_exposed() ? copy_of_now(each) : each);
      in = own;
      break;
    }
  }
  if (!current) {
    current = new Program();
    unfinished().push_back(current);
  }
  current->keep(op, in, attrs, results, how, compute);
}

// Keeps a storage alive while its tensor may move to another one, as a gathered view moves to its
// base's storage.
class HoldStorage {
  Storage* s_;

 public:
  explicit HoldStorage(Storage* s) : s_(s) { s_->incref(); }
  ~HoldStorage() { s_->decref(); }
  HoldStorage(const HoldStorage&) = delete;
};

void settle(Storage* s) {
  if (in_parallel()) return;  // a thread that helps with a call, all of whose operands have bytes
  if (s->is_pending()) {
    const HoldStorage storage(s);
    auto* p = static_cast<Waiting*>(s->owner);
    Hold(p)->run(p == current || p == gathering() ? Ending::observed : Ending::elsewhere);
    // A storage that could not be computed now waits for another owner, which raises the reason.
    if (s->is_pending() && s->owner != p) settle(s);
    return;
  }
  if (Content* c = content_of(s)) contents_change(c);
  // Calls that wait read it, of whatever program.
  while (s->awaited && !unfinished().empty()) {
    const Hold p(unfinished().back());
    const size_t before = p->waiting();
    p->run(Ending::elsewhere);
    if (p->waiting() == before) break;  // it runs, and its own kernel asks
  }
}

size_t run_own() {
  if (!current) return 0;
  const Hold p(current);
  const size_t count = p->waiting();
  p->run(Ending::region);
  return count;
}

void copy_run(const clew::Call& c) { copy_into(c.in[0], c.in[1]); }
void no_shape(const clew::Call&, OutSpecs&) {}
void no_kernel(const clew::Call&, Tensors&) {}
constexpr OpDef copy_op = general({
    .signature = "_copy(Tensor target, Tensor source) -> Tensor",
    .doc = "target[...] = source, as a call that waits.",
    .shape = no_shape,
    .cpu = no_kernel,
    .write = copy_run,
    .no_vjp = no_rule("it is what recorded operations are made of"),
});

bool defer_copy_(const Tensor& dst, const Tensor& src) {
  if (collects()) return false;  // calls that are gathered may read what is written
  const Tensor operands[2] = {dst, src};
  if (!waits(operands, dst.numel(), false, &dst)) return false;
  keep(copy_op, operands, nullptr, {}, Waits::write, dst.dtype());
  return true;
}

}  // namespace

void init_deferral() {
  deferral = {.keep = keep,
              .run_own = run_own,
              .collect = collect,
              .detach = detach_gathered,
              .run_collected = run_collected};
  settle_storage = settle;
  defer_copy = defer_copy_;
  forget_gathered = forget;
  init_retention();
}

}  // namespace clew::program

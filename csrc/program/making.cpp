// Making values again: by their recipes, or from a file.
// May include: program, graph, tensor.
// Invariant: nothing here recurses over recipes: chains of them are as long as the program ran.
#include "program/making.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/generator.h"
#include "base/long_work.h"
#include "graph/budget.h"
#include "graph/inplace.h"
#include "program/budget.h"

namespace clew::program {

namespace {

// One thread at a time makes values: kernels let others run.
class Maker {
  static inline int depth_ = 0;
  static inline pthread_t thread_;

 public:
  Maker() {
    while (depth_ > 0 && !pthread_equal(thread_, pthread_self())) {
      void* state = interpreter.leave();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      interpreter.enter(state);
    }
    thread_ = pthread_self();
    ++depth_;
  }
  ~Maker() { --depth_; }
  Maker(const Maker&) = delete;
  static bool works() { return depth_ > 0; }
};

// A stack of values to recompute; the one needed first is on top. Values that they read are kept
// meanwhile.
class Work {
  struct Frame {
    Content* value;
    int ready = 0;  // so many inputs have bytes
    SmallVec<Content*, 4> pinned = {};
  };
  static std::vector<Frame>& spare() {
    static auto& all = *new std::vector<Frame>();
    return all;
  }
  std::vector<Frame> frames_ = std::exchange(spare(), {});  // whose memory is kept

 public:
  Work() = default;
  Work(const Work&) = delete;
  ~Work() {
    while (!frames_.empty()) pop();
    spare() = std::move(frames_);
  }
  bool empty() const { return frames_.empty(); }
  void push(Content* v) {
    v->incref();
    frames_.push_back({v});
    if (!v->recipe) return;
    prefetch(*v->recipe);
    for (const Recipe::Input& in : v->recipe->inputs)
      if (in.value) prefetch(*in.value);
    for (const Recipe::Input& in : v->recipe->inputs)
      if (in.value && in.value->storage) __builtin_prefetch(in.value->storage);
  }
  void pop() {
    const Frame& f = frames_.back();
    for (Content* u : f.pinned) {
      --u->pins;
      u->decref();
    }
    f.value->decref();
    frames_.pop_back();
  }
  // The next value to recompute; all of its inputs have bytes.
  Content* next() {
    for (;;) {
      Frame& f = frames_.back();
      if (f.value->has_bytes() || f.value->file) return f.value;
      Recipe* recipe = f.value->recipe;
      if (!recipe) fail_internal("memory_budget: a value that cannot be made again was given up");
      const auto& inputs = recipe->inputs;
      Content* missing = nullptr;
      for (; f.ready < inputs.size(); ++f.ready) {
        Content* u = inputs[f.ready].value;
        if (!u) continue;
        if (!u->has_bytes()) {
          missing = u;
          break;
        }
        u->incref();
        ++u->pins;
        f.pinned.push_back(u);
        u->used_at = spent();
      }
      if (!missing) return f.value;
      push(missing);
    }
  }
};

Tensor input_of(const Recipe::Input& in) {
  const auto flags = static_cast<uint8_t>(in.flags | (in.is_wrapped ? flag_wrapped_number : 0));
  if (in.is_number) {
    Storage* s = Storage::allocate(itemsize(in.dtype));
    std::memcpy(s->data, in.number, itemsize(in.dtype));
    Tensor t = over_parts(s, in.shape, 0, in.dtype, flags);
    s->decref();
    return t;
  }
  if (!in.value) return {};
  return over_parts(in.value->storage, in.shape, in.offset, in.dtype, flags);
}

// Gives `made` to the value.
void place(const Recipe::Output& out, const Tensor& made) {
  Content* v = out.value;
  Storage* s = made->storage;
  const bool alone = s->refs == 1 && s->resizable && s->nbytes == v->nbytes && !s->release &&
                     made->offset == out.offset && made->shape->strides == out.shape->strides;
  if (made.dtype() != out.dtype || made->shape->sizes != out.shape->sizes)
    fail_internal("memory_budget: a call gave another result than before: ", made);
  if (!v->storage) {
    if (!alone) {
      s = Storage::allocate(v->nbytes);
      copy_into(over_parts(s, out.shape, out.offset, out.dtype, 0), made);
      keep_in(v, s);
      s->decref();
    } else {
      keep_in(v, s);
    }
  } else if (alone) {
    v->storage->take_bytes_of(s);
  } else {
    Storage* own = Storage::allocate(v->nbytes);
    copy_into(over_parts(own, out.shape, out.offset, out.dtype, 0), made);
    v->storage->take_bytes_of(own);
    own->decref();
  }
  has_bytes_again(v);
}

// A write in place happens to a copy of the old contents.
void write_again(const Recipe& r, const Recipe::Output& out, Tensors& in) {
  const Recipe::Input& old = r.inputs[0];
  Storage* copy = Storage::allocate(old.value->nbytes);
  std::memcpy(copy->data, old.value->storage->data, old.value->nbytes);
  in[0] = over_parts(copy, old.shape, old.offset, old.dtype, old.flags);
  copy->decref();
  apply_inplace(*r.op, {in.begin(), static_cast<size_t>(in.size())}, r.attrs);
  Content* v = out.value;
  if (v->storage)
    v->storage->take_bytes_of(copy);
  else
    keep_in(v, copy);
  has_bytes_again(v);
}

void run(Recipe& r) {
  Tensors in, outs;
  for (const Recipe::Input& i : r.inputs) in.push_back(input_of(i));
  std::unique_ptr<Generator> draws;
  Generator** source = r.draws ? r.op->attrs->generator_at(r.attrs) : nullptr;
  Generator* before = source ? *source : nullptr;
  struct Restore {
    Generator** at;
    Generator* before;
    ~Restore() {
      if (at) *at = before;
    }
  } restore{source, before};
  if (source) {
    draws = std::make_unique<Generator>();
    draws->load(r.draws.get(), Generator::state_bytes);
    *source = draws.get();
  }
  const int64_t began = ticks_now();
  if (r.writes) {
    write_again(r, r.outputs[0], in);
  } else {
    apply(*r.op, {in.begin(), static_cast<size_t>(in.size())}, r.attrs, outs);
    for (int k = 0; k < r.outputs.size() && k < outs.size(); ++k) {
      const Recipe::Output& out = r.outputs[k];
      if (out.value && !out.value->has_bytes()) place(out, outs[k]);
      outs[k] = Tensor();
    }
  }
  auto& counts = budget().counts;
  const int64_t took = since(began);
  ++counts.made_again;
  counts.made_again_ns += took;
  spend(took);
}

void read_again(Content* v) {
  if (!v->storage) fail_internal("memory_budget: nobody has what lies in the file");
  v->storage->take_bytes();
  try {
    read_from_file(v);
  } catch (...) {
    Storage* shell = Storage::allocate(v->nbytes, NewBytes::pending());
    v->storage->take_bytes_of(shell);
    shell->state = Bytes::ready;
    shell->decref();
    throw;
  }
  leave_file(v);
  has_bytes_again(v);
}

}  // namespace

void lose_users(Content* changing) {
  class Stack {
    std::vector<Recipe*> all_;

   public:
    ~Stack() {
      while (!all_.empty()) pop();
    }
    bool empty() const { return all_.empty(); }
    Recipe* top() const { return all_.back(); }
    void push(Recipe* r) {
      ++r->refs;
      all_.push_back(r);
    }
    void pop() {
      Recipe* r = all_.back();
      all_.pop_back();
      Recipe::release(r);
    }
  };
  while (!changing->users.empty()) {
    Stack stack;
    stack.push(changing->users.back().recipe);
    while (!stack.empty()) {
      Recipe* r = stack.top();
      Recipe* deeper = nullptr;
      for (const Recipe::Output& out : r->outputs)
        if (out.value && !out.value->storage && !out.value->users.empty())
          deeper = out.value->users.back().recipe;
      if (deeper) {
        stack.push(deeper);
        continue;
      }
      for (Recipe::Output& out : r->outputs) {
        Content* v = out.value;
        if (!v) continue;
        const Stays stays(v);
        if (v->storage && !v->has_bytes() && !v->file) make_again(v);
        forget_recipe(v);
      }
      r->spoiled = true;
      r->forget_inputs();
      stack.pop();
    }
  }
}

bool makes_again() { return Maker::works(); }

void make_again(Content* v) {
  const Maker maker;
  const PlainModes plain;
  const WithPauses pauses;
  Work work;
  work.push(v);
  while (!work.empty()) {
    Content* next = work.next();
    if (!next->has_bytes()) {
      if (next->file) {
        read_again(next);
      } else {
        Recipe* r = next->recipe;
        ++r->refs;
        try {
          run(*r);
        } catch (...) {
          Recipe::release(r);
          throw;
        }
        Recipe::release(r);
      }
    }
    work.pop();
  }
}

}  // namespace clew::program

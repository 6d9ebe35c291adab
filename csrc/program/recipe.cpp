// Noting calls, and what becomes of values: given up, kept, forgotten.
// May include: program, graph, tensor.
// Invariant: nothing here recurses over recipes: chains of them are as long as the program ran.
#include "program/recipe.h"

#include <cstring>
#include <mutex>

#include "base/clock.h"
#include "base/generator.h"
#include "graph/batch.h"
#include "graph/budget.h"
#include "program/budget.h"
#include "program/gap.h"
#include "program/making.h"
#include "program/pool.h"
#include "tensor/bits.h"

namespace clew::program {

namespace {

constexpr uint32_t deepest = 1 << 14;  // a longer chain would only grow: its last value stays
constinit int64_t spent_ns = 0;
constinit int64_t absent = 0;  // storages that wait for their bytes

// Long ago, so that the rate of ticks is known well.
const Instant loaded = Instant::now();
constinit double nanoseconds_a_tick = 1;
void dies(Storage* s);

// A value knows its place in a list.
void leave(std::vector<Content*>& all, Content* v, uint32_t Content::*place) {
  const uint32_t at = std::exchange(v->*place, UINT32_MAX);
  all[at] = all.back();
  all[at]->*place = at;
  all.pop_back();
  v->*place = UINT32_MAX;
}
void enter(std::vector<Content*>& all, Content* v, uint32_t Content::*place) {
  v->*place = static_cast<uint32_t>(all.size());
  all.push_back(v);
}
Gaps& gaps() {
  static auto& all = *new Gaps();
  return all;
}

// The gaps of what was read; met(root).
template <class F> void each_lower(const Recipe& r, F&& met) {
  for (const Recipe::Input& in : r.inputs)
    if (in.value && in.value->gap) met(gaps().root(in.value->gap));
}
// The gaps of what was made of it.
template <class F> void each_upper(const Content& v, F&& met) {
  for (const auto& [user, place] : v.users)
    for (const Recipe::Output& out : user->outputs)
      if (out.value && out.value->gap) met(gaps().root(out.value->gap));
}

// v has lost its bytes: joins its recomputation cost with that of neighbouring missing values.
void open_gap(Content* v) {
  if (v->gap || !v->recipe) return;
  Gaps& all = gaps();
  bool wanted = v->storage != nullptr;
  uint32_t own = 0;
  each_upper(*v, [&](uint32_t g) {
    if (all.is_wanted(g)) own = all.join(own, g);
  });
  wanted = wanted || own;
  each_lower(*v->recipe, [&](uint32_t g) {
    if (wanted || !all.is_wanted(g)) own = all.join(own, g);
  });
  if (!wanted) each_upper(*v, [&](uint32_t g) { own = all.join(own, g); });
  if (own)
    all.count(own);
  else
    own = all.open();
  if (wanted) all.want(own);
  v->gap = own;
  all.add(own, static_cast<double>(v->recipe->cost), static_cast<double>(v->nbytes));
  if (wanted)
    each_upper(*v, [&](uint32_t g) {
      if (!all.is_wanted(g)) all.note(g, own);
    });
  else
    each_lower(*v->recipe, [&](uint32_t g) {
      if (all.is_wanted(g)) all.note(own, g);
    });
}
void close_gap(Content* v) {
  const uint32_t g = std::exchange(v->gap, 0);
  if (!g) return;
  if (v->recipe)
    gaps().add(g, -static_cast<double>(v->recipe->cost), -static_cast<double>(v->nbytes));
  gaps().release(g);
}

// The storage no longer has these contents, or they need no longer be tracked.
void detach_storage(Content* v) {
  Storage* s = std::exchange(v->storage, nullptr);
  if (!s) return;
  pool().leave(v);
  s->owner = nullptr;
  s->release = nullptr;
  v->saved = 0;
  v->let_go(s);
  v->decref();
}
void drop_useless(Content* v) {
  if (v->storage && !v->recipe && v->users.empty() && v->saved == 0 && v->has_bytes())
    detach_storage(v);
}

void dies(Storage* s) {
  auto* v = static_cast<Content*>(static_cast<Waiting*>(std::exchange(s->owner, nullptr)));
  s->release = nullptr;
  if (std::exchange(s->state, Bytes::ready) == Bytes::pending) --absent;
  v->storage = nullptr;
  v->saved = 0;
  pool().leave(v);
  leave_file(v);
  if (!v->users.empty()) open_gap(v);
  v->decref();
}

bool can_have_content(const Storage* s) {
  return s->is_ready() && s->data && !s->is_exposed() && !s->release && s->nbytes > 0;
}
Content* content_for(Storage* s) {
  if (Content* v = content_of(s)) return v;
  return can_have_content(s) ? new Content(s) : nullptr;
}

}  // namespace

// ---- values and recipes -------------------------------------------------------------------------

std::vector<Content*>& held_values() {
  static auto& all = *new std::vector<Content*>();
  return all;
}
int64_t without_bytes() { return absent; }
int64_t spent() { return spent_ns; }
void spend(int64_t nanoseconds) { spent_ns += nanoseconds; }
int64_t since(int64_t ticks) {
  return static_cast<int64_t>(static_cast<double>(ticks_now() - ticks) * nanoseconds_a_tick);
}
void know_the_clock() {
  if (const double rate = loaded.rate(Instant::now()); rate > 0) nanoseconds_a_tick = rate;
}

Content* content_of(const Storage* s) {
  return s->release == dies ? static_cast<Content*>(static_cast<Waiting*>(s->owner)) : nullptr;
}

Content::Content(Storage* s)
    : storage(s), used_at(spent_ns), nbytes(s->nbytes), version(s->version) {
  s->owner = static_cast<Waiting*>(this);
  s->release = dies;
}
Content::~Content() {
  pool().leave(this);
  leave_file(this);
  close_gap(this);
  if (!recipe) return;
  for (Recipe::Output& out : recipe->outputs)
    if (out.value == this) out.value = nullptr;
  Recipe::release(std::exchange(recipe, nullptr));
}
void Content::hold() {
  if (is_held()) return;
  storage->incref();
  enter(held_values(), this, &Content::held_at);
}
void Content::let_go(Storage* s) {
  if (!is_held()) return;
  leave(held_values(), this, &Content::held_at);
  s->decref();
}
void Content::run(Ending) {
  if (!has_bytes()) make_again(this);
}

void Recipe::forget_inputs() {
  for (Input& in : inputs) {
    if (Shape* shape = std::exchange(in.shape, nullptr)) shape->decref();
    Content* v = std::exchange(in.value, nullptr);
    if (!v) continue;
    auto& users = v->users;
    Content::User& last = users[static_cast<int>(in.place)] = users.back();
    last.recipe->inputs[static_cast<int>(last.input)].place = in.place;
    users.pop_back();
    if (users.empty()) {
      v->incref();
      v->let_go();
      drop_useless(v);
      v->decref();
    }
    v->decref();
  }
}

Recipe::~Recipe() {
  forget_inputs();
  for (Output& out : outputs)
    if (out.shape) out.shape->decref();
  if (attrs) {
    if (op->attrs->destroy && !op->attrs->trivial) op->attrs->destroy(attrs);
    if (attrs != small_attrs) ::operator delete(attrs);
  }
}

// Recipes without an owner, destroyed in a loop.
class Graveyard {
  std::vector<Recipe*> waiting_;
  bool open_ = false;

 public:
  void bury(Recipe* r) {
    if (open_) return waiting_.push_back(r);
    open_ = true;
    delete r;
    while (!waiting_.empty()) {
      Recipe* next = waiting_.back();
      waiting_.pop_back();
      delete next;
    }
    open_ = false;
  }
};
void Recipe::release(Recipe* r) {
  static auto& graveyard = *new Graveyard();
  if (--r->refs == 0) graveyard.bury(r);
}

// ---- noting -------------------------------------------------------------------------------------

namespace {

// False where the input cannot be known later.
bool note_input(Recipe& r, const Tensor& t) {
  const auto at = static_cast<uint32_t>(r.inputs.size());
  Recipe::Input& in = r.inputs.emplace_back();
  if (!t.defined()) return true;
  in.is_wrapped = t.is_wrapped_number();
  const size_t size = itemsize(t.dtype());
  if (t.numel() == 1 && size <= sizeof in.number &&
      (in.is_wrapped || t->storage->nbytes <= sizeof in.number)) {
    // Its storage would stay as long as the recipe.
    if (t->storage->is_pending()) settle_storage(t->storage);
    in.is_number = true;
    std::memcpy(in.number, bits_of_first(t).data(), sizeof in.number);
  } else {
    Content* v = content_for(t->storage);
    if (!v) return false;
    v->incref();
    in.value = v;
    in.place = static_cast<uint32_t>(v->users.size());
    in.offset = t->offset;
    v->users.push_back({&r, at});
    if (!v->recipe && v->has_bytes()) v->hold();
    v->used_at = spent_ns;
    r.depth = std::max(r.depth, v->depth);
  }
  in.shape = t->shape;
  in.shape->incref();
  in.dtype = t->dtype;
  in.flags = t->flags & kept_flags;
  return true;
}

// Notes the old contents before a write in place; false if they could not be recomputed.
bool note_written(std::span<const Tensor> in) {
  if (in[0]->storage->is_pending()) settle_storage(in[0]->storage);
  Storage* s = in[0]->storage;  // a view that was gathered has another now
  Content* v = content_of(s);
  for (const Tensor& t : in.subspan(1))
    if (t.defined() && t->storage == s) return false;
  return v && v->recipe;
}

struct Released {
  void operator()(Recipe* r) const { Recipe::release(r); }
};
using OwnRecipe = std::unique_ptr<Recipe, Released>;

// False where the random source's state cannot be had: another thread draws from it now.
bool note_attrs(Recipe& r, const OpDef& op, const void* attrs) {
  const bool small = op.attrs->size <= sizeof r.small_attrs;
  void* copy = small ? r.small_attrs : ::operator new(op.attrs->size);
  if (op.attrs->trivial) {
    std::memcpy(copy, attrs, op.attrs->size);
  } else {
    try {
      op.attrs->copy(copy, attrs);
    } catch (...) {
      if (!small) ::operator delete(copy);
      throw;
    }
  }
  r.attrs = copy;
  Generator** source = op.attrs->generator_at(r.attrs);
  if (!source) return true;
  Generator& g = *source ? **source : default_generator();
  const std::unique_lock lock(g.mutex, std::try_to_lock);  // its kernel may wait for this thread
  if (!lock) return false;
  r.draws = std::make_unique<uint8_t[]>(Generator::state_bytes);
  g.save(r.draws.get());
  return true;
}

OwnRecipe note_call(const OpDef& op, std::span<const Tensor> in, const void* attrs, bool writes) {
  for (const Tensor& t : in)
    if (t.defined() && (t.is_meta() || is_batched(t))) return nullptr;
  OwnRecipe r(new Recipe);  // without (), which clears it first
  r->op = &op;
  r->writes = writes;
  if (writes && !note_written(in)) return nullptr;
  for (const Tensor& t : in)
    if (!note_input(*r, t)) {
      ++budget().counts.unmade;
      return nullptr;
    }
  if (writes) r->saved_before = content_of(in[0]->storage)->saved;
  if (r->depth >= deepest) return nullptr;
  if (op.attrs && attrs && !note_attrs(*r, op, attrs)) return nullptr;
  return r;
}

Recipe* begin(const OpDef& op, std::span<const Tensor> in, const void* attrs, bool writes) {
  if (budgets_open == 0) {  // the last one was closed where the modes were restored later
    modes.intercept &= static_cast<uint8_t>(~intercept_budget);
    return nullptr;
  }
  if (op.kind == OpKind::Composite || op.kind == OpKind::View || op.aliases || op.find)
    return nullptr;
  OwnRecipe r = note_call(op, in, attrs, writes);
  if (writes)  // users of the old contents are settled first
    if (Content* c = content_of(in[0]->storage)) contents_change(c);
  if (r) r->cost = ticks_now();
  return r.release();
}

void note_early(std::span<const Tensor> results) {
  int64_t nbytes = 0;
  for (const Tensor& t : results)
    if (t.defined()) nbytes += static_cast<int64_t>(t->storage->nbytes);
  EarlyCalls& early = budget().early;
  if (++early.calls <= EarlyCalls::first) early.bytes += nbytes;
  if (budget().first_left > 0) noted_first(nbytes);
}

void finish(Recipe* r, std::span<const Tensor> results) {
  r->cost = since(r->cost);
  spent_ns += r->cost;
  ++budget().counts.noted;
  budget().counts.noted_ns += r->cost;
  budget().counts.noted_in_backward += modes.running ? 1 : 0;
  bool any = false;
  int64_t wide = 0;
  if (budget().early.calls < EarlyCalls::most) note_early(results);
  for (const Tensor& t : results) {
    Recipe::Output& out = r->outputs.emplace_back();
    Storage* s = t.defined() ? t->storage : nullptr;
    const bool whole =
        s && !r->spoiled &&
        (r->writes || static_cast<size_t>(t.numel()) * itemsize(t.dtype()) == s->nbytes);
    if (!whole) continue;
    wide += static_cast<int64_t>(s->nbytes);
    if (static_cast<int64_t>(s->nbytes) < budget().least) continue;
    Content* v = content_for(s);
    if (!v || v->recipe || !v->users.empty() || !v->has_bytes()) continue;
    v->recipe = r;
    ++r->refs;
    v->depth = static_cast<uint16_t>(r->depth + 1);
    v->version = s->version;
    v->used_at = spent_ns;
    if (r->writes) v->saved += r->saved_before;
    out.value = v;
    out.shape = t->shape;
    out.shape->incref();
    out.offset = t->offset;
    out.dtype = t->dtype;
    if (v->saved > 0)
      pool().enter(v);
    else
      pool().know(v);
    any = true;
  }
  for (const Recipe::Input& in : r->inputs)
    if (in.value && in.value->recipe) wide += static_cast<int64_t>(in.value->nbytes);
  budget().widest = std::max(budget().widest, wide);
  if (!any && !results.empty()) ++budget().counts.unmade;
  Recipe::release(r);
  if (budget().enough > 0) look_whether_enough();
}

void count(Storage* s) {
  Content* v = content_for(s);
  if (!v) return;
  ++v->saved;
  if ((v->recipe || budget().file) && v->has_bytes()) pool().enter(v);
}
void fetch(const Storage* s) {
  const Content* v = content_of(s);
  if (!v) return;
  prefetch(*v);
  if (v->recipe) prefetch(*v->recipe);
}
void uncount(Storage* s) {
  Content* v = content_of(s);
  if (!v || v->saved == 0) return;
  --v->saved;
  if (v->has_bytes()) drop_useless(v);
}

}  // namespace

// ---- giving up ----------------------------------------------------------------------------------

bool may_be_given_up(const Content& v) {
  const Storage* s = v.storage;
  return s && s->is_ready() && v.pins == 0 && s->awaited == 0 && !s->is_exposed() &&
         s->refs == v.saved + (v.is_held() ? 1 : 0) && s->version == v.version &&
         (v.recipe || (budget().file && !budget().file->full && v.saved > 0 && v.users.empty()));
}

double cost_of(const Content& v) {
  double cost = static_cast<double>(v.recipe->cost);
  // Wanted neighbours are made again anyway, once each if there is room for them until they are
  // used. Of small gaps they cost nothing more, therefore.
  const double room = static_cast<double>(budget().limit) / 16;
  constexpr int most = 8;
  uint32_t seen[most];
  int n = 0;
  const auto add = [&](uint32_t g) {
    for (int i = 0; i < n; ++i)
      if (seen[i] == g) return;
    if (n == most) return;
    seen[n++] = g;
    const double share = gaps().is_wanted(g) ? std::clamp(gaps().bytes(g) / room, 0.0, 1.0) : 1;
    cost += gaps().cost(g) * share;
  };
  each_lower(*v.recipe, [&](uint32_t g) {
    add(g);
    gaps().each_below(g, add);
  });
  each_upper(v, [&](uint32_t g) {
    if (gaps().is_wanted(g)) add(g);
  });
  return cost;
}

void give_up(Content* v) {
  v->incref();
  pool().leave(v);
  Storage* s = v->storage;
  if (v->is_held() && s->refs == 1) {
    v->let_go();  // and the storage dies
  } else {
    v->let_go();
    Storage* shell = Storage::allocate(s->nbytes, NewBytes::pending());
    s->take_bytes_of(shell);
    shell->state = Bytes::ready;
    shell->decref();
    s->state = Bytes::pending;
    ++absent;
    if (!v->file) open_gap(v);
  }
  v->decref();
}

void forget_recipe(Content* v) {
  close_gap(v);
  Recipe* r = std::exchange(v->recipe, nullptr);
  if (!r) return;
  for (Recipe::Output& out : r->outputs)
    if (out.value == v) out.value = nullptr;
  v->depth = 0;
  if (!budget().file) pool().leave(v);
  if (!v->users.empty() && v->storage) v->hold();
  v->incref();
  Recipe::release(r);
  drop_useless(v);
  v->decref();
}

void keep_in(Content* v, Storage* s) {
  v->storage = s;
  v->version = s->version;
  v->saved = 0;
  s->owner = static_cast<Waiting*>(v);
  s->release = dies;
  v->incref();
  v->hold();
}

void has_bytes_again(Content* v) {
  if (std::exchange(v->storage->state, Bytes::ready) == Bytes::pending) --absent;
  v->used_at = spent_ns;
  close_gap(v);
  pool().enter(v);
}

void contents_change(Content* v) {
  const Stays stays(v);
  if (v->storage && !v->has_bytes()) make_again(v);
  leave_file(v);
  if (!v->recipe) lose_users(v);
  detach_storage(v);
  if (!v->users.empty()) open_gap(v);
}

void init_retention() {
  retention = {
      .count = count, .uncount = uncount, .fetch = fetch, .begin = begin, .finish = finish};
}

}  // namespace clew::program

// Writing the records, and letting threads in and out of a recording.
// May include: graph.
// Invariant: a thread's innermost open record is known; a thread learns of a recording when it
// first allocates, and of its end when it next looks.
#include "graph/trace.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <ctime>
#include <typeinfo>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "graph/attrs.h"
#include "graph/batch.h"

namespace clew {

Tracer tracer;

namespace {

// Of earlier recordings.
std::vector<TraceChunk> spare;
constexpr size_t spare_most = 2;

struct ThreadState {
  uint32_t session = 0;
  int32_t current = -1;  // innermost open record
  uint32_t thread = 0;   // the system's number; below 2^22 on Linux
};
thread_local ThreadState here;

void set_traces(bool on) {
  modes.intercept = static_cast<uint8_t>(on ? modes.intercept | intercept_trace
                                            : modes.intercept & ~intercept_trace);
}

ThreadState& join() {
  if (here.session != tracer.session()) {
    here.session = tracer.session();
    here.current = -1;
    here.thread = static_cast<uint32_t>(PyThread_get_thread_native_id());
  }
  return here;
}

int64_t nanoseconds_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// The processor's counter, where it counts at one rate always; it is read in half the time.
#if defined(__x86_64__)
bool counts_steadily() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
}
const bool has_counter = counts_steadily();
int64_t ticks_now() { return has_counter ? static_cast<int64_t>(__rdtsc()) : nanoseconds_now(); }
#else
int64_t ticks_now() { return nanoseconds_now(); }
#endif

struct Instant {
  int64_t ticks = ticks_now(), nanoseconds = nanoseconds_now();
};
// Long ago, so that the rate is known well.
const Instant loaded;

void watch_storage(void* data, int64_t bytes) {
  set_traces(true);
  tracer.memory(data, bytes);
}

// Where a gradient rule's forward operation came from; elsewhere the line that runs.
Origin* origin_now() {
  if (modes.running && modes.running->origin) return modes.running->origin;
  if (backward_id() && here.session == tracer.session() && here.current >= 0) {
    // What the engine does with a rule's gradients counts for the rule.
    const TraceRecord& around = tracer.at(here.current);
    if (around.kind <= TraceKind::node && around.origin) return around.origin;
  }
  return origin_here();
}

}  // namespace

void Tracer::start(TraceOptions options) {
  clear();
  ++session_;
  options_ = options;
  running_ = true;
  live_bytes = memory_stats().live_bytes;
  watch_storages(watch_storage);
  set_traces(true);
  join();
  Instant now;
  started = now.nanoseconds;
  started_ticks_ = now.ticks;
}

void Tracer::stop() {
  Instant now;
  if (now.ticks > loaded.ticks)
    rate_ = static_cast<double>(now.nanoseconds - loaded.nanoseconds) /
            static_cast<double>(now.ticks - loaded.ticks);
  stopped = nanoseconds(now.ticks);
  running_ = false;
  watch_storages(nullptr);
  set_traces(false);
}

int64_t Tracer::nanoseconds(int64_t ticks) const {
  return started + static_cast<int64_t>(static_cast<double>(ticks - started_ticks_) * rate_);
}

void Tracer::clear() {
  for (int32_t i = 0; i < count_; ++i) {
    TraceRecord& r = at(i);
    if (r.origin) r.origin->decref();
    if (r.kind == TraceKind::module && r.what)
      static_cast<Scope*>(const_cast<void*>(r.what))->decref();
  }
  count_ = 0;
  for (TraceChunk& chunk : chunks_)
    if (spare.size() < spare_most) spare.push_back(std::move(chunk));
  chunks_.clear();
  names_.clear();
  name_index_.clear();
  accumulation_ = -1;
  details_.clear();
}

constexpr size_t chunk_bytes = TraceChunk::size * sizeof(TraceRecord);
TraceChunk::TraceChunk() {
  void* memory = std::aligned_alloc(chunk_bytes, chunk_bytes);  // aligned to a large page
  if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(memory, chunk_bytes, MADV_HUGEPAGE);  // advice: without them it is slower
#endif
  records_.reset(static_cast<TraceRecord*>(memory));
}
void TraceChunk::Free::operator()(TraceRecord* p) const { std::free(p); }

static TraceChunk new_chunk() {
  if (spare.empty()) return {};
  TraceChunk chunk = std::move(spare.back());
  spare.pop_back();
  return chunk;
}

TraceRecord& Tracer::add(TraceKind kind) {
  if ((count_ & mask) == 0) chunks_.push_back(new_chunk());
  ThreadState& thread = join();
  // Ranges may end in another order than that of their begins.
  while (thread.current >= 0 && at(thread.current).end) thread.current = at(thread.current).parent;
  TraceRecord& r = at(count_++);
  r.end = 0;
  r.value = -1;
  r.extra = 0;
  r.what = nullptr;
  r.origin = nullptr;
  r.name = -1;
  r.parent = thread.current;
  r.detail = -1;
  r.thread = thread.thread & 0x3ffffff;
  r.kind = kind;
  r.flags = modes.running || backward_id() ? trace_backward : uint8_t{0};
  return r;
}

int32_t Tracer::begin(TraceKind kind, const void* what, int32_t name, Origin* origin) {
  TraceRecord& r = add(kind);
  r.what = what;
  r.name = name;
  r.origin = kept(origin);
  here.current = count_ - 1;
  r.begin = ticks_now();
  return here.current;
}

void Tracer::end(int32_t index) {
  TraceRecord& r = at(index);
  r.end = ticks_now();
  if (here.current == index) here.current = r.parent;
}

void Tracer::memory(void* address, int64_t bytes) {
  if (!options_.memory) return;
  TraceRecord& r = add(bytes > 0 ? TraceKind::allocation : TraceKind::free);
  r.value = bytes > 0 ? bytes : -bytes;
  r.extra = reinterpret_cast<int64_t>(address);
  if (bytes > 0) {
    // Most happen in an operation, whose line is known.
    Origin* around = r.parent >= 0 ? at(r.parent).origin : nullptr;
    bool same = around && at(r.parent).kind <= TraceKind::node;
    r.origin = kept(same ? around : origin_now());
  }
  r.begin = r.end = ticks_now();
}

int32_t Tracer::intern(std::string_view name) {
  auto [at, fresh] =
      name_index_.try_emplace(std::string(name), static_cast<int32_t>(names_.size()));
  if (fresh) names_.emplace_back(name);
  return at->second;
}

int32_t Tracer::accumulation() {
  if (accumulation_ < 0) accumulation_ = intern("AccumulateGrad");
  return accumulation_;
}

void Tracer::add_shapes(std::span<const Tensor> ts) {
  details_.push_back(static_cast<int64_t>(ts.size()));
  for (const Tensor& t : ts) {
    if (!t.defined()) {
      details_.push_back(-1);
      continue;
    }
    details_.push_back(static_cast<int64_t>(t.dtype()));
    details_.push_back(t.ndim());
    for (int64_t n : t.sizes()) details_.push_back(n);
  }
}

// The numbers among the attributes: (field, kind, length, values).
void Tracer::add_arguments(const OpDef& op, const void* attrs) {
  size_t counted = details_.size();
  details_.push_back(0);
  if (!op.attrs || !attrs) return;
  auto add = [&](int field, int kind, std::span<const int64_t> values) {
    details_.push_back(field);
    details_.push_back(kind);
    details_.push_back(static_cast<int64_t>(values.size()));
    for (int64_t v : values) details_.push_back(v);
    ++details_[counted];
  };
  auto add_one = [&](int field, int kind, int64_t value) { add(field, kind, {&value, 1}); };
  for (int i = 0; i < op.attrs->count; ++i) {
    const AttrField& f = op.attrs->fields[static_cast<size_t>(i)];
    const void* at = static_cast<const char*>(attrs) + f.offset;
    switch (f.kind) {
      case FieldKind::Int: add_one(i, 0, *static_cast<const int64_t*>(at)); break;
      case FieldKind::Bool: add_one(i, 1, *static_cast<const bool*>(at)); break;
      case FieldKind::Float:
        add_one(i, 3, std::bit_cast<int64_t>(*static_cast<const double*>(at)));
        break;
      case FieldKind::Ints: {
        const auto& dims = *static_cast<const Dims*>(at);
        add(i, 2, {dims.data(), static_cast<size_t>(dims.size())});
        break;
      }
      case FieldKind::OptInt:
        if (auto& v = *static_cast<const std::optional<int64_t>*>(at)) add_one(i, 0, *v);
        break;
      case FieldKind::OptBool:
        if (auto& v = *static_cast<const std::optional<bool>*>(at)) add_one(i, 1, *v);
        break;
      case FieldKind::OptFloat:
        if (auto& v = *static_cast<const std::optional<double>*>(at))
          add_one(i, 3, std::bit_cast<int64_t>(*v));
        break;
      case FieldKind::OptInts:
        if (auto& v = *static_cast<const std::optional<Dims>*>(at))
          add(i, 2, {v->data(), static_cast<size_t>(v->size())});
        break;
      case FieldKind::Number:
      case FieldKind::Text:
      case FieldKind::OptDType:
      case FieldKind::Generator: break;
    }
  }
}

void Tracer::add_details(int32_t index, const OpDef& op, std::span<const Tensor> in,
                         const void* attrs, std::span<const Tensor> outs) {
  at(index).detail = static_cast<int32_t>(details_.size());
  add_shapes(in);
  add_shapes(outs);
  add_arguments(op, attrs);
}

void TraceSpan::open(TraceKind kind, const void* what, int32_t name, Origin* origin) {
  if (!tracer.running()) return set_traces(false);
  index_ = tracer.begin(kind, what, name, origin);
  session_ = tracer.session();
}

TraceRecord* TraceSpan::record() const {
  return index_ >= 0 && tracer.running() && tracer.session() == session_ ? &tracer.at(index_)
                                                                         : nullptr;
}

void TraceSpan::close() {
  if (record()) tracer.end(index_);
}

void TraceSpan::open_call(const char* call) {
  if (!tracer.running()) return set_traces(false);
  open(TraceKind::call, nullptr, tracer.intern(call), origin_now());
}

void TraceOp::open_op(const OpDef& op, bool inplace) {
  open(TraceKind::op, &op, -1, origin_now());
  if (TraceRecord* r = inplace ? record() : nullptr) r->flags |= trace_inplace;
}

void TraceOp::note_results(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                           std::span<const Tensor> outs) const {
  TraceRecord* r = record();
  if (!r) return;
  if (op.kind != OpKind::Composite && modes.grad)
    for (const Tensor& t : outs)
      if (t.defined() && t->grad_fn) {
        r->value = static_cast<int64_t>(t->grad_fn->sequence);
        break;
      }
  // Of samples in vmap, the operation on all of them inside knows the shapes.
  if (tracer.shapes() && !levels_of(in)) tracer.add_details(index(), op, in, attrs, outs);
}

void TraceNode::open_node(const Node& node, uint64_t unwanted) {
  if (!tracer.running()) return set_traces(false);
  const auto* op = typeid(node) == typeid(OpNode) ? static_cast<const OpNode*>(&node) : nullptr;
  int32_t name = op ? -1 : node.is_accumulator ? tracer.accumulation() : tracer.intern(node.name());
  open(TraceKind::node, op ? op->op : nullptr, name, node.origin ? node.origin : origin_now());
  TraceRecord* r = record();
  if (!r) return;
  r->value = node.is_accumulator ? -1 : static_cast<int64_t>(node.sequence);
  for (uint32_t i = 0; i < node.edge_count && i < 63; ++i)
    if (node.edges[i].fn && (unwanted >> i & 1) == 0) r->extra |= int64_t{1} << i;
}

void TraceModule::open_module() {
  Origin* place = origin_here();
  modes.scope->incref();
  open(TraceKind::module, modes.scope, -1, place);
  if (!record()) modes.scope->decref();
}

TraceRange open_range(std::string_view name, TraceKind kind) {
  if (!tracer.running()) return {};
  set_traces(true);
  int32_t index = tracer.begin(kind, nullptr, tracer.intern(name), origin_now());
  return {index, tracer.session()};
}

void close_range(TraceRange range) {
  if (range.index >= 0 && tracer.running() && tracer.session() == range.session)
    tracer.end(range.index);
}

}  // namespace clew

// Writing the records, and letting threads in and out of a recording.
// May include: graph.
// Invariant: a thread's innermost open record is known; a thread learns of a recording when it
// first allocates, and of its end when it next looks.
#include "graph/trace.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <typeinfo>

#include "graph/attrs.h"
#include "graph/batch.h"
#include "graph/frames.h"

namespace clew {

Tracer tracer;

namespace {

// Chunks kept from earlier recordings.
std::vector<TraceChunk> spare;
constexpr size_t spare_most = 1;

struct ThreadState {
  uint32_t session = UINT32_MAX;  // the last recording that this thread joined
  int32_t current = -1;           // innermost open record
  uint32_t thread = 0;            // the system's number; below 2^22 on Linux
};
constinit thread_local ThreadState here;

void set_traces(bool on) {
  modes.intercept = static_cast<uint8_t>(on ? modes.intercept | intercept_trace
                                            : modes.intercept & ~intercept_trace);
}

[[gnu::noinline]] bool join() {
  if (!tracer.running()) {
    set_traces(false);
    return false;
  }
  here = {tracer.session(), -1, static_cast<uint32_t>(PyThread_get_thread_native_id())};
  return true;
}

// Long ago, so that the rate of ticks is known well.
const Instant loaded = Instant::now();
constexpr int64_t enough = 50'000'000;  // a recording this long gives the rate as well

void watch_storage(void* data, int64_t bytes) {
  set_traces(true);
  tracer.memory(data, bytes);
}

Origin* origin_of(int32_t record) {
  return tracer.sites()[static_cast<size_t>(tracer.at(record).site)].origin;
}
bool is_operation(int32_t record) {
  return tracer.sites()[static_cast<size_t>(tracer.at(record).site)].kind <= TraceKind::node;
}

// Where a gradient rule's forward operation came from; elsewhere the line that runs.
Origin* origin_now() {
  if (modes.running && modes.running->origin) return modes.running->origin;
  if (backward_id() && here.session == tracer.session() && here.current >= 0 &&
      is_operation(here.current)) {
    // What the engine does with a rule's gradients counts for the rule.
    if (Origin* around = origin_of(here.current)) return around;
  }
  return origin_here();
}

}  // namespace

bool TraceSpan::joins() { return (tracer.running() && here.session == tracer.session()) || join(); }

void Tracer::start(TraceOptions options) {
  clear();
  session_ = ++last_session_;
  options_ = options;
  base_ = static_cast<int64_t>(latest_sequence());
  live_bytes = memory_stats().live_bytes;
  watch_storages(watch_storage);
  set_traces(true);
  join();
  begun_ = Instant::now();
  started = begun_.nanoseconds;
}

void Tracer::stop() {
  const Instant now = Instant::now();
  const bool is_long = now.nanoseconds - begun_.nanoseconds >= enough;
  const double rate = (is_long ? begun_ : loaded).rate(now);
  if (rate > 0) rate_ = rate;
  stopped = nanoseconds(now.ticks);
  session_ = 0;
  watch_storages(nullptr);
  set_traces(false);
}

int64_t Tracer::nanoseconds(int64_t ticks) const {
  return started + static_cast<int64_t>(static_cast<double>(ticks - begun_.ticks) * rate_);
}

void Tracer::clear() {
  for (const TraceSite& site : sites_) {
    if (site.origin) site.origin->decref();
    if (site.kind == TraceKind::module && site.what)
      static_cast<Scope*>(const_cast<void*>(site.what))->decref();
  }
  for (TraceChunk& chunk : chunks_)
    if (spare.size() < spare_most) spare.push_back(std::move(chunk));
  count_ = 0;
  next_ = chunk_end_ = nullptr;
  strayed_ = false;
  accumulation_ = -1;
  lately_ = lines_ = {};
  site_of_.clear();
  sites_.clear();
  chunks_.clear();
  name_index_.clear();
  names_.clear();
  details_.clear();
  detailed_.clear();
  blocks_.clear();
  long_ends_.clear();
}

constexpr size_t large_page = size_t{1} << 21;
constexpr size_t chunk_bytes = TraceChunk::size * sizeof(TraceRecord);
static_assert(chunk_bytes % large_page == 0);
TraceChunk::TraceChunk() {
  void* memory = std::aligned_alloc(large_page, chunk_bytes);
  if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(memory, chunk_bytes, MADV_HUGEPAGE);  // advice: without them it is slower
#endif
  records_.reset(static_cast<TraceRecord*>(memory));
}
void TraceChunk::Free::operator()(TraceRecord* p) const { std::free(p); }

[[gnu::noinline]] void Tracer::add_chunk() {
  if (spare.empty()) {
    chunks_.emplace_back();
  } else {
    chunks_.push_back(std::move(spare.back()));
    spare.pop_back();
  }
  next_ = chunks_.back().begin();
  chunk_end_ = next_ + TraceChunk::size;
}

// --- Sites ---

size_t Tracer::Key::hash() const {
  uint64_t h = reinterpret_cast<uintptr_t>(what) * 0x9E3779B97F4A7C15u ^
               reinterpret_cast<uintptr_t>(place) * 0xC2B2AE3D27D4EB4Fu ^
               (more + tag + static_cast<uint64_t>(name)) * 0xD6E8FEB86659FD93u;
  return static_cast<size_t>(h >> 40 ^ h >> 20);
}

static uint32_t tag_of(TraceKind kind, uint8_t flags) {
  return here.thread << 6 | static_cast<uint32_t>(kind) << 2 | flags;
}

int32_t Tracer::new_site(const Key& key, TraceKind kind, Origin* origin, uint8_t flags) {
  auto [at, fresh] = site_of_.try_emplace(key, static_cast<int32_t>(sites_.size()));
  if (!fresh) return at->second;
  TraceSite& site = sites_.emplace_back();
  site.what = key.what;
  site.origin = kept(origin);
  site.extra = static_cast<int64_t>(key.more);
  site.name = key.name;
  site.thread = here.thread & 0x3ffffff;
  site.kind = kind;
  site.flags = flags & 3;
  if (kind == TraceKind::module)
    static_cast<Scope*>(const_cast<void*>(key.what))->incref();
  else if (kind == TraceKind::call && key.what)
    site.name = intern(static_cast<const char*>(key.what));
  return at->second;
}

int32_t Tracer::site_at(TraceKind kind, const void* what, int32_t name, Origin* origin,
                        uint8_t flags, int64_t extra) {
  if (modes.running || backward_id()) flags |= trace_backward;
  const Key key{what, origin, static_cast<uint64_t>(extra), name, tag_of(kind, flags)};
  Known& known = lately_[key.hash() % lately_.size()];
  if (known.site < 0 || !(known.key == key)) [[unlikely]]
    known = {key, new_site(key, kind, origin, flags)};
  return known.site;
}

int32_t Tracer::site_here(TraceKind kind, const void* what, int32_t name, uint8_t flags) {
  if (modes.running || modes.whole_stacks || backward_id())
    return site_at(kind, what, name, origin_now(), flags);
  const Frames frame;
  const void* at = frame ? frame.at() : nullptr;
  const Key key{what, at, reinterpret_cast<uintptr_t>(modes.scope), name, tag_of(kind, flags)};
  Known& known = lines_[key.hash() % lines_.size()];
  if (known.site >= 0 && known.key == key) [[likely]]
    return known.site;
  Origin* origin = origin_here();
  const int32_t site = site_at(kind, what, name, origin, flags);
  // An instruction inside the library is not remembered: its place is its caller's.
  if (origin && origin->at == at && origin->scope == modes.scope) known = {key, site};
  return site;
}

int32_t Tracer::intern(std::string_view name) {
  auto at = name_index_.find(name);
  if (at != name_index_.end()) return at->second;
  const auto number = static_cast<int32_t>(names_.size());
  name_index_[names_.emplace_back(name)] = number;
  return number;
}

int32_t Tracer::accumulation() {
  if (accumulation_ < 0) accumulation_ = intern("AccumulateGrad");
  return accumulation_;
}

// --- Records ---

TraceRecord* Tracer::add(int32_t site) {
  if (next_ == chunk_end_) [[unlikely]]
    add_chunk();
  if (strayed_) [[unlikely]]  // ranges may end in another order than that of their begins
    while (here.current >= 0 && at(here.current).length != TraceRecord::running)
      here.current = at(here.current).parent;
  TraceRecord* r = next_++;
  r->length = TraceRecord::running;
  r->site = site;
  r->parent = here.current;
  r->value = TraceRecord::none;
  ++count_;
  return r;
}

TraceRecord* Tracer::begin(int32_t site, int64_t ticks) {
  TraceRecord* r = add(site);
  here.current = last();
  r->begin = ticks ? ticks : ticks_now();
  return r;
}

void Tracer::end(TraceRecord& r, int32_t index, int64_t ticks) {
  const int64_t length = std::max(ticks - r.begin, int64_t{0});
  r.length = static_cast<uint32_t>(length);
  if (length >= TraceRecord::longer) [[unlikely]] {
    r.length = TraceRecord::longer;
    long_ends_[index] = ticks;
  }
  if (here.session == session_ && here.current == index)
    here.current = r.parent;
  else
    strayed_ = true;
}

bool Tracer::withdraw(TraceRecord* r) {
  if (r + 1 != next_) return false;
  here.current = r->parent;
  next_ = r;
  --count_;
  return true;
}

int64_t Tracer::end_of(int32_t index) const {
  const TraceRecord& r = at(index);
  if (r.length == TraceRecord::running) return 0;
  return r.length == TraceRecord::longer ? long_ends_.at(index) : r.begin + r.length;
}

// Node numbers are stored relative to the latest node at the start of the recording; a number that
// does not fit is stored as none.
int32_t Tracer::value(uint64_t sequence) const {
  const int64_t from = static_cast<int64_t>(sequence) - base_;
  return from > INT32_MIN && from <= INT32_MAX ? static_cast<int32_t>(from) : TraceRecord::none;
}

int64_t Tracer::value_of(const TraceRecord& r) const {
  if (r.value == TraceRecord::none) return -1;
  const bool block = sites_[static_cast<size_t>(r.site)].kind >= TraceKind::allocation;
  return block ? blocks_[static_cast<size_t>(r.value)].bytes : base_ + r.value;
}

int64_t Tracer::extra_of(const TraceRecord& r) const {
  const TraceSite& site = sites_[static_cast<size_t>(r.site)];
  if (site.kind >= TraceKind::allocation) return blocks_[static_cast<size_t>(r.value)].address;
  return site.extra;
}

void Tracer::memory(void* address, int64_t bytes) {
  if (!options_.memory || (here.session != session_ && !join())) return;
  Origin* origin = nullptr;
  if (bytes > 0) {
    // Most happen in an operation, whose line is known.
    const bool inside = here.current >= 0 && is_operation(here.current);
    Origin* around = inside ? origin_of(here.current) : nullptr;
    origin = around ? around : origin_now();
  }
  const TraceKind kind = bytes > 0 ? TraceKind::allocation : TraceKind::free;
  TraceRecord* r = add(site_at(kind, nullptr, -1, origin));
  r->value = static_cast<int32_t>(blocks_.size());
  blocks_.push_back({bytes > 0 ? bytes : -bytes, reinterpret_cast<int64_t>(address)});
  r->begin = ticks_now();
  r->length = 0;
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
  const auto add_value = [&]<class T>(int field, const T& v) {
    if constexpr (std::is_same_v<T, Dims>) {
      add(field, 2, {v.data(), static_cast<size_t>(v.size())});
    } else if constexpr (std::is_arithmetic_v<T>) {
      constexpr int kind = std::is_same_v<T, bool> ? 1 : std::is_same_v<T, double> ? 3 : 0;
      int64_t bits = 0;
      if constexpr (std::is_same_v<T, double>)
        bits = std::bit_cast<int64_t>(v);
      else
        bits = v;
      add(field, kind, {&bits, 1});
    }
  };
  op.attrs->visit(attrs, [&]<class T>(int field, const T& v) {
    if constexpr (is_optional<T>) {
      if (v) add_value(field, *v);
    } else {
      add_value(field, v);
    }
  });
}

void Tracer::add_details(int32_t index, const OpDef& op, std::span<const Tensor> in,
                         const void* attrs, std::span<const Tensor> outs) {
  detailed_.emplace_back(index, static_cast<int32_t>(details_.size()));
  add_shapes(in);
  add_shapes(outs);
  add_arguments(op, attrs);
}

// --- Spans ---

int64_t TraceSpan::close() {
  TraceRecord* r = record();
  record_ = nullptr;
  if (!r) return 0;
  const int64_t now = ticks_now();
  tracer.end(*r, index_, now);
  return now;
}

void TraceSpan::open_call(const char* call) {
  if (joins()) open(tracer.site_here(TraceKind::call, call, -1));
}

void TraceOp::open_op(const OpDef& op, uint8_t flags) {
  if (joins()) open(tracer.site_here(TraceKind::op, &op, -1, flags));
}

void TraceOp::open_first(const OpDef& op) {
  if (!joins()) return;
  const int32_t around = here.current;
  const bool first =
      around >= 0 && around == tracer.last() &&
      tracer.sites()[static_cast<size_t>(tracer.at(around).site)].kind == TraceKind::node;
  open(tracer.site_here(TraceKind::op, &op, -1), first ? tracer.at(around).begin : 0);
}

void TraceOp::withdraw() {
  TraceRecord* r = record();
  if (!r || tracer.withdraw(r)) return forget();
  close();  // memory was taken, and given back
}

void TraceOp::note_results(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                           std::span<const Tensor> outs) const {
  TraceRecord* r = record();
  if (!r) return;
  if (op.kind != OpKind::Composite && modes.grad)
    for (const Tensor& t : outs)
      if (t.defined() && t->grad_fn) {
        r->value = tracer.value(t->grad_fn->sequence);
        break;
      }
  // Inside vmap, the inner operation on all samples records the shapes.
  if (tracer.shapes() && !levels_of(in)) tracer.add_details(index(), op, in, attrs, outs);
}

void TraceNode::open_node(const Node& node, uint64_t unwanted) {
  const int64_t turn = std::exchange(turn_, 0);
  if (!joins()) return;
  const auto* op = typeid(node) == typeid(OpNode) ? static_cast<const OpNode*>(&node) : nullptr;
  int32_t name = op ? -1 : node.is_accumulator ? tracer.accumulation() : tracer.intern(node.name());
  int64_t wanted = 0;
  for (uint32_t i = 0; i < node.edge_count && i < 63; ++i)
    if (node.edges[i].fn && (unwanted >> i & 1) == 0) wanted |= int64_t{1} << i;
  open(tracer.site_at(TraceKind::node, op ? op->op : nullptr, name,
                      node.origin ? node.origin : origin_now(), 0, wanted),
       turn);
  if (!node.is_accumulator) record()->value = tracer.value(node.sequence);
}

void TraceModule::open_module() {
  if (joins()) open(tracer.site_at(TraceKind::module, modes.scope, -1, origin_here()));
}

TraceRange open_range(std::string_view name, TraceKind kind) {
  if (!tracer.running()) return {};
  set_traces(true);
  if (here.session != tracer.session()) join();
  tracer.begin(tracer.site_here(kind, nullptr, tracer.intern(name)));
  return {tracer.last(), tracer.session()};
}

void close_range(TraceRange range) {
  if (range.index >= 0 && tracer.running() && tracer.session() == range.session)
    tracer.end(tracer.at(range.index), range.index, ticks_now());
}

}  // namespace clew

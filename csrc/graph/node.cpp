// Lifetime of nodes, saved tensors, gradient edges, and recording.
// May include: graph.
// Invariant: a node never owns a tensor whose grad_fn is that node.
#include "graph/node.h"

#include <algorithm>
#include <bit>

#include "base/kept_blocks.h"
#include "base/lines.h"
#include "graph/explain.h"
#include "graph/inplace.h"

namespace clew {

constinit thread_local Modes modes;
Builtins builtins;

namespace {
uint64_t next_sequence = 1;

// Freed nodes wait here while another node is being freed, so that a long chain is freed by a loop.
// The graph has mostly left the cache by then: the last few wait until the counts of the nodes that
// their edges lead to have come from memory.
struct Dying {
  static constexpr size_t fetched = 8;
  SmallVec<Node*, 16> queue;
  Node* soon[fetched];
  size_t taken = 0, given = 0;  // of `soon`, in turn

  void push(Node* n) {
    auto* at = reinterpret_cast<char*>(n);
    for (int line = 1; line < 4; ++line) fetch_line(at + line * line_bytes);
    queue.push_back(n);
  }
  Node* pop() {
    while (taken - given < fetched && !queue.empty()) {
      Node* n = queue.back();
      queue.pop_back();
      for (uint32_t i = 0; i < n->edge_count; ++i)
        if (const Node* fn = n->edges[i].fn) fetch_line(fn);
      soon[taken++ % fetched] = n;
    }
    return taken == given ? nullptr : soon[given++ % fetched];
  }
};
constinit thread_local Dying* dying = nullptr;

// Blocks of nodes: multiples of a cache line; freed ones up to 1024 bytes wait in lists by size.
struct Block {
  Block* next;
};
constexpr uint8_t block_classes = 17;
constexpr size_t kept_most = 65536;  // of those that can be given back
struct FreeBlocks {
  Block* first = nullptr;
  size_t count = 0;
};
FreeBlocks free_nodes[block_classes];

uint8_t block_class(size_t bytes) {
  size_t c = (bytes + line_bytes - 1) / line_bytes;
  return static_cast<uint8_t>(std::min<size_t>(c, block_classes));
}

void* allocate_node(uint8_t c, size_t bytes) {
  if (c < block_classes && free_nodes[c].first) {
    Block* block = free_nodes[c].first;
    Block* next = free_nodes[c].first = block->next;
    --free_nodes[c].count;
    // A graph that outgrows the cache is slow by waiting for its memory: that of the next node is
    // on its way while the next operation computes.
    if (next)
      for (size_t i = 0; i < 4; ++i) fetch_line(reinterpret_cast<char*>(next) + i * line_bytes);
    return block;
  }
  void* block =
      c < block_classes
          ? allocate_lines(bytes)
          : std::aligned_alloc(line_bytes, (bytes + line_bytes - 1) / line_bytes * line_bytes);
  if (!block) fail(ErrorKind::OutOfMemory, "autograd: no memory for a graph node");
  return block;
}

void free_node(void* p, uint8_t c) {
  if (c >= block_classes || !keeps_freed_blocks ||
      (free_nodes[c].count >= kept_most && !is_permanent(p))) {
    std::free(p);
    return;
  }
  free_nodes[c].first = new (p) Block{free_nodes[c].first};
  ++free_nodes[c].count;
}

void release_tensor_graph_state(TensorObj* t) {
  if (AutogradExtra* e = std::exchange(t->extra, nullptr)) {
    if (e->retains_grad && t->grad_fn && t->grad_fn->extra) {
      auto& list = t->grad_fn->extra->retains_grad;
      std::erase_if(list, [&](auto& entry) { return entry.second == t; });
    }
    clear_in_turn(e->hooks);
    clear_in_turn(e->post_accumulate_hooks);
    if (e->unrecorded) e->unrecorded->decref();
    if (e->used) e->used->decref();
    delete e;
  }
  if (Cut* cut = std::exchange(t->cut, nullptr)) cut->decref();
  if (Node* fn = std::exchange(t->grad_fn, nullptr)) fn->decref();
}
[[maybe_unused]] const bool graph_state_installed =
    (release_graph_state = release_tensor_graph_state, true);
}  // namespace

NodeExtra::~NodeExtra() {
  for (TensorHooks& h : tensor_hooks) clear_in_turn(h.dict);
  clear_in_turn(pre_hooks);
  clear_in_turn(post_hooks);
  clear_in_turn(metadata);
}

uint64_t latest_sequence() { return next_sequence - 1; }

Node::Node(bool has_origin)
    : deferred(modes.deferred),
      sequence(next_sequence++),
      origin(has_origin ? origin_for_node() : nullptr) {}

Node::~Node() {
  for (uint32_t i = 0; i < edge_count; ++i) {
    Node* fn = edges[i].fn;
    if (!fn || --fn->refs > 0) continue;
    if (dying) [[likely]]
      dying->push(fn);
    else
      destroy(fn);
  }
  if (owns_edges) delete[] edges;
  if (origin) origin->decref();
  if (cut) cut->decref();
  delete extra;
  if (owns_more) delete[] more;
}

void Node::destroy(Node* n) {
  if (dying) return dying->push(n);
  Dying others;
  dying = &others;
  for (; n; n = others.pop()) n->dispose();
  dying = nullptr;
}

void Node::set_edge(uint32_t i, const Tensor& t) {
  if (t->grad_fn && !t->base) {  // the common case, without counting twice
    t->grad_fn->incref();
    edges[i] = {t->grad_fn, t->output_nr};
    return;
  }
  OwnedEdge e = gradient_edge(t);
  edges[i] = {e.fn.release(), e.nr};
  AutogradExtra* leaf = t->extra;
  if (!leaf || !edges[i].fn || !edges[i].fn->is_accumulator) return;
  leaf->used_by = sequence;
  if (leaf->used != origin)
    if (Origin* before = std::exchange(leaf->used, kept(origin))) before->decref();
}

AutogradExtra& extra_of(const Tensor& t) {
  if (!t->extra) t->extra = new AutogradExtra();
  return *t->extra;
}

AccumulateGrad::AccumulateGrad(const Tensor& t) : Node(false), variable(t) {
  is_accumulator = true;
  sequence = UINT64_MAX;  // runs as soon as it is ready
  --next_sequence;
  add_meta(0, t);
}

AccumulateGrad::~AccumulateGrad() {
  if (variable->extra && variable->extra->accumulator == this)
    variable->extra->accumulator = nullptr;
}

void set_grad_fn(const Tensor& t, Node* fn, uint32_t nr) {
  if (t->flags & flag_gathered) [[unlikely]]
    settle_storage(t->storage);
  if (fn) fn->incref();
  Node* before = std::exchange(t->grad_fn, fn);
  t->output_nr = nr;
  t->flags &= static_cast<uint8_t>(~flag_requires_grad);
  if (before) {
    if (t->extra && t->extra->retains_grad && before->extra) {
      // retain_grad follows the tensor to its new maker
      auto& list = before->extra->retains_grad;
      std::erase_if(list, [&](auto& entry) { return entry.second == t.get(); });
      if (fn) fn->extras().retains_grad.push_back({nr, t.get()});
    }
    before->decref();
  }
}

Node* grad_fn_of(const Tensor& t) {
  if (t->flags & flag_batched) [[unlikely]]
    return grad_fn_of(t.view_as_base());
  if (t->grad_fn && t->grad_fn->promised) [[unlikely]]
    settle_storage(t->storage);
  if (!t->base || !t.is_stale_view()) return t->grad_fn;
  Tensor base = Tensor::borrow(t->base);
  GradMode on(true);
  if (t->view_kind == ViewKind::custom_function && t->grad_fn) {
    fail("Output ", t->output_nr, " of ", t->grad_fn->name(),
         " is a view and its base or another view of its base has been modified inplace, which "
         "would override the custom "
         "backward; return a clone() from the Function's forward");
  }
  Tensor fresh = part_of(base, t.dtype(), t.sizes(), t.strides(), t.storage_offset());
  set_grad_fn(t, fresh->grad_fn, fresh->output_nr);
  t->view_version = t->storage->version;
  return t->grad_fn;
}

OwnedEdge gradient_edge(const Tensor& t) {
  if (t->flags & flag_batched) [[unlikely]]
    return gradient_edge(t.view_as_base());
  if (Node* fn = grad_fn_of(t)) return {NodeRef::borrow(fn), t->output_nr};
  if (!(t->flags & flag_requires_grad)) return {};
  AutogradExtra& e = extra_of(t);
  if (e.accumulator && !e.accumulator->is_dying()) {
    // Graphs that are recorded keep the accumulator of the shape and dtype that a leaf had then;
    // later ones get a new one.
    const OutMeta& of = e.accumulator->meta0;
    const bool same = of.shape.get() == t->shape || of.sizes() == t.sizes();
    if (same && of.dtype == t.dtype()) return {NodeRef::borrow(e.accumulator), 0};
  }
  e.accumulator = new AccumulateGrad(t);
  return {NodeRef::steal(e.accumulator), 0};
}

bool any_requires_grad(std::span<const Tensor> in) {
  for (const Tensor& t : in)
    if (t.defined() && t.requires_grad()) return true;
  return false;
}

// ---- nodes of ops ----

std::string_view op_name(const OpDef& op) { return {op.signature, op.name_length}; }
// What messages call the op: private ones by the name that users know them by.
std::string_view Call::name() const {
  std::string_view name = op_name(op);
  if (name.starts_with('_')) name.remove_prefix(1);
  return name;
}

std::string node_name(const OpDef& op) {
  std::string_view full = op_name(op);
  size_t dot = full.rfind('.');
  if (dot != std::string_view::npos) full.remove_prefix(dot + 1);
  std::string out;
  bool upper = true;
  for (char c : full) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return out + "Backward0";
}

OpNode::~OpNode() {
  if (!consumed)
    for (int i = 0; i < saved_count; ++i) saved(i).clear();
  for (uint32_t k = 0; more && k + 1 < output_count; ++k) more[k].~More();
  if (has_attrs && !op->attrs->trivial) op->attrs->destroy(this + 1);
}

// Destructors are inlined: freeing a graph is a walk through memory, and calls in between cost
// time.
[[gnu::flatten]] void OpNode::dispose() {
  uint8_t c = block_class;
  this->~OpNode();
  free_node(this, c);
}

static bool is_number(const Saved& s) {
  const uint8_t flags = s.kind == Saved::Kind::parts    ? s.flags
                        : s.kind == Saved::Kind::object ? s.tensor->flags
                                                        : uint8_t{0};
  return flags & flag_wrapped_number;
}

void OpNode::release_saved() {
  if (saved_count == 0) return;
  Saved* s = saved_behind_edges();
  if (op->numbers_stay && std::all_of(s, s + saved_count, is_number)) return;
  for (int i = 0; i < saved_count; ++i) s[i].clear();
  consumed = consuming_id();
}

std::string OpNode::name() const { return node_name(*op); }

int OpNode::saved_slot(int bit) const {
  uint32_t b = 1u << bit;
  if (!(saved_mask & b)) return -1;
  uint32_t before = saved_mask & (b - 1);
  int slot = 0;
  for (; before; before &= before - 1) ++slot;  // few: cheaper than counting bits without POPCNT
  return slot;
}

[[gnu::always_inline]] static inline void run_rule(OpNode& n, Vjp& c, std::span<const Tensor> grads,
                                                   Tensor* out) {
  const OpDef& op = *n.op;
  if (op.vjp) {
    op.vjp(c);
    return;
  }
  if (op.no_vjp) fail(op_name(op), ": the derivative is not implemented: ", op.no_vjp.reason);
  const Tensor& g = grads[0];
  for (uint32_t i = 0; i < n.edge_count; ++i) {
    if (!n.edges[i].fn || i >= 4 || !op.partials[i]) continue;
    Tensor p = op.partials[i](c);
    if (!p.defined()) {
      out[i] = g;
      continue;
    }
    if (p.is_complex()) p = builtins.conj(p);
    out[i] = builtins.mul(n.edge_count == 1 ? c.last_grad() : g, p);
  }
}
[[gnu::cold, gnu::noinline]] static void run_packed(OpNode& n, std::span<const Tensor> grads,
                                                    Tensor* out) {
  std::vector<Tensor> unpacked(n.saved_count);
  Vjp c(n, grads, out, unpacked.data());
  run_rule(n, c, grads, out);
}
void OpNode::run(std::span<const Tensor> grads, Tensor* out) {
  if (packed) [[unlikely]]
    return run_packed(*this, grads, out);
  Vjp c(*this, grads, out);
  run_rule(*this, c, grads, out);
}

// A node whose edges and saved tensors are to be filled in. Inlined, as record() is its one caller.
[[gnu::always_inline]] static inline OpNode* new_op_node(const OpDef& op, uint32_t edges,
                                                         uint32_t saved, uint32_t outputs,
                                                         const void* attrs) {
  static_assert(sizeof(OpNode) % 16 == 0, "attributes follow it");
  bool has_attrs = op.attrs && attrs;
  size_t edges_at = sizeof(OpNode) + (has_attrs ? (op.attrs->size + size_t{7}) / 8 * 8 : 0);
  size_t saved_at = edges_at + edges * sizeof(Edge);
  size_t more_at = saved_at + saved * sizeof(Saved);
  size_t bytes = more_at + (outputs > 1 ? outputs - 1 : 0) * sizeof(Node::More);
  uint8_t c = block_class(bytes);
  char* block = static_cast<char*>(allocate_node(c, bytes));
  auto* n = new (block) OpNode;
  n->op = &op;
  n->block_class = c;
  n->accumulates = op.accumulate != nullptr;
  n->edge_count = edges;
  n->edges = reinterpret_cast<Edge*>(block + edges_at);
  for (uint32_t i = 0; i < edges; ++i) new (n->edges + i) Edge();
  n->saved_count = static_cast<uint8_t>(saved);
  for (uint32_t i = 0; i < saved; ++i) new (block + saved_at + i * sizeof(Saved)) Saved();
  n->output_count = outputs;
  if (outputs > 1) {
    n->more = reinterpret_cast<Node::More*>(block + more_at);
    for (uint32_t k = 0; k + 1 < outputs; ++k) new (n->more + k) Node::More();
  }
  if (has_attrs) {
    if (op.attrs->trivial)
      std::memcpy(static_cast<void*>(n + 1), attrs, op.attrs->size);
    else
      op.attrs->copy(n + 1, attrs);
    n->has_attrs = true;
  }
  return n;
}

NodeRef record(const OpDef& op, std::span<const Tensor> in, const void* attrs,
               std::span<const Tensor> outs, bool attach) {
  auto n = static_cast<uint32_t>(in.size());
  uint32_t mask = op.saves.always;
  uint32_t there = 0xffff0000;  // outputs, and those of the first inputs that were given
  uint64_t wants = 0;  // of the first 64 inputs; a stale view makes its new grad_fn here, before
                       // this node: edges point to smaller sequences
  for (uint32_t i = 0; i < n; ++i) {
    const TensorObj* t = in[i].get();
    if (!t) continue;
    if (i < 16) there |= 1u << i;
    if (t->base) {
      grad_fn_of(in[i]);
      if (!in[i].requires_grad()) continue;
    } else if (!t->grad_fn && !(t->flags & flag_requires_grad)) {
      continue;
    }
    if (i < 64) wants |= uint64_t{1} << i;
    if (i < 6) mask |= op.saves.when[i];
  }
  mask &= there;
  uint32_t saved = 0;
  for (uint32_t m = mask; m; m &= m - 1) ++saved;
  OpNode* node = new_op_node(op, n, saved, static_cast<uint32_t>(outs.size()), attrs);
  NodeRef guard = NodeRef::steal(node);
  node->saved_mask = mask;
  for (uint64_t w = wants; w; w &= w - 1) {
    auto i = static_cast<uint32_t>(std::countr_zero(w));
    node->set_edge(i, in[i]);
  }
  for (uint32_t i = 64; i < n; ++i)
    if (in[i].defined() && in[i].requires_grad()) node->set_edge(i, in[i]);
  Saved* slot = node->saved_behind_edges();
  for (uint32_t m = mask; m; m &= m - 1, ++slot) {
    auto bit = static_cast<uint32_t>(std::countr_zero(m));
    const bool output = bit >= 16;
    const Tensor& t = output ? outs[bit - 16] : in[bit];
    if (!modes.saved_hooks && !(t->flags & flag_inference) && Saved::parts_tell_all(t)) [[likely]]
      slot->save_parts(t, output);
    else {
      slot->save(t, output);
      node->packed |= slot->kind == Saved::Kind::packed;
    }
  }
  for (uint32_t k = 0; k < outs.size(); ++k) {
    const Tensor& t = outs[k];
    node->add_meta(k, t);
    if (!attach || !is_inexact(t->dtype)) continue;
    if (t->grad_fn) [[unlikely]] {
      set_grad_fn(t, node, k);
      continue;
    }
    node->incref();
    t->grad_fn = node;
    t->output_nr = k;
    t->flags &= static_cast<uint8_t>(~flag_requires_grad);
  }
  return guard;
}

// ---- what a gradient rule sees ----

static OpNode& op_node(Node& n) { return static_cast<OpNode&>(n); }

Tensor Vjp::in(int i) const {
  OpNode& n = op_node(node_);
  int slot = n.saved_slot(i);
  if (slot < 0)
    fail_internal(n.name(), " uses input ", i, " in its gradient but does not list it in saves");
  return n.saved(slot).unpack_for(n, &n.edges[i], 0, unpacked_ ? unpacked_ + slot : nullptr);
}
Tensor Vjp::out(int k) const {
  OpNode& n = op_node(node_);
  int slot = n.saved_slot(16 + k);
  if (slot < 0)
    fail_internal(n.name(), " uses output ", k, " in its gradient but does not list it in saves");
  return n.saved(slot).unpack_for(n, nullptr, static_cast<uint32_t>(k),
                                  unpacked_ ? unpacked_ + slot : nullptr);
}
const Tensor& Vjp::last_grad() const {
  const Tensor& g = grads_[0];
  if (!modes.grad && Py_REFCNT(reinterpret_cast<PyObject*>(g.get())) == 1 &&
      g->storage->refs == 1 && g->shape->contiguous && !g->grad_fn && !g->base && g->flags == 0 &&
      g->storage->resizable && !(node_.extra && node_.extra->post_hooks))
    modes.disposable = g.get();
  return g;
}
uint32_t matrix_factor_of(const Node& product) {
  const Edge& left = product.edges[0];
  if (!left.fn) return 1;
  const int matrices = left.fn->meta(left.nr).sizes().size();  // the last two dims are the matrix
  return matrices >= 2 && product.meta0.sizes().size() == matrices - 1 ? 0 : 1;
}
bool Vjp::has_in(int i) const { return op_node(node_).saved_slot(i) >= 0; }
constinit thread_local Skip skip;

bool Vjp::needs(int i) const {
  return i < static_cast<int>(node_.edge_count) && node_.edges[i].fn != nullptr &&
         !(skip.node == &node_ && skip.has(i));
}
const Dims& Vjp::sizes(int i) const {
  if (!needs(i))
    fail_internal(node_.name(), " asks for the shape of input ", i, " which needs no gradient");
  return node_.edges[i].fn->meta(node_.edges[i].nr).sizes();
}
Tensor Vjp::empty_like_input(int i, DType dtype) const {
  if (!needs(i))
    fail_internal(node_.name(), " asks for the shape of input ", i, " which needs no gradient");
  return empty_dense(node_.edges[i].fn->meta(node_.edges[i].nr).shape.get(), dtype);
}
DType Vjp::dtype(int i) const {
  if (!needs(i))
    fail_internal(node_.name(), " asks for the dtype of input ", i, " which needs no gradient");
  return node_.edges[i].fn->meta(node_.edges[i].nr).dtype;
}
int Vjp::inputs() const { return static_cast<int>(node_.edge_count); }
const Dims& Vjp::out_sizes(int k) const { return node_.meta(static_cast<uint32_t>(k)).sizes(); }
DType Vjp::out_dtype(int k) const { return node_.meta(static_cast<uint32_t>(k)).dtype; }
const void* Vjp::attrs() const { return op_node(node_).attrs(); }

// ---- Tensors ----

Tensors::Tensors(Tensors&& o) noexcept : size_(o.size_), capacity_(o.capacity_) {
  if (o.data_ == o.inline_) {
    for (int i = 0; i < size_; ++i) inline_[i] = std::move(o.inline_[i]);
  } else {
    data_ = o.data_;
    o.data_ = o.inline_;
    o.capacity_ = inline_count;
  }
  o.size_ = 0;
}
void Tensors::grow(int need) {
  const int cap = std::max(need, capacity_ * 2);
  auto* fresh = new Tensor[static_cast<size_t>(cap)];
  for (int i = 0; i < size_; ++i) fresh[i] = std::move(data_[i]);
  if (data_ != inline_) delete[] data_;
  data_ = fresh;
  capacity_ = cap;
}

}  // namespace clew

// Node: one recorded operation, its edges to the operations before it and the tensors it saved.
// May include: base, tensor, graph/op.h.
// Invariant: nodes are counted under the GIL; freeing a graph is a loop, never a recursion.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/lines.h"
#include "graph/budget.h"
#include "graph/modes.h"
#include "graph/op.h"
#include "graph/provenance.h"
#include "tensor/tensor.h"

namespace clew {

// Thrown when a Python call inside the core left an exception set.
struct PythonError : std::exception {
  const char* what() const noexcept override { return "a Python exception is set"; }
};

struct GraphTask;
struct Node;

struct Edge {
  Node* fn = nullptr;  // owned by the node that holds the edge
  uint32_t nr = 0;
};

// What a saved-tensor hook made of a tensor.
struct Packed {
  PyObject* value = nullptr;   // owned
  PyObject* unpack = nullptr;  // owned: the hook that brings it back
  Device device = Device::CPU;
  bool batched = false;
  uint64_t fingerprint = 0;  // of integers and truth values, whose values rules rely on
  ~Packed() {
    Py_XDECREF(value);
    Py_XDECREF(unpack);
  }
};

// A tensor kept for backward, with the version it had. Mostly its parts, not the object: that would
// hold memory which the next operation can use, and an output's would be a cycle.
struct Saved {
  enum class Kind : uint8_t { none, parts, object, packed };
  union {
    Storage* storage = nullptr;  // owned; of parts
    TensorObj* tensor;           // owned; object: a tensor with state beyond its parts
    Packed* hooked;              // owned; packed
  };
  Shape* shape = nullptr;  // owned; of parts, and of what rules get
  int64_t offset = 0;      // of parts: bytes from the storage's first; of an object: its storage
  uint32_t version = 0;    // of what is packed: which output it is
  DType dtype = DType::Float32;
  uint8_t flags = 0;
  bool is_output = false;
  bool was_meta = false;  // of an object that rules get
  bool counted = false;   // of parts: Retention::count
  Kind kind = Kind::none;

  // Whether storing the parts of t is enough for every gradient rule. Under a memory budget parts
  // are stored even if t has a cut: bytes behind parts can be given up, those of a tensor object
  // cannot. An error message then cannot say why t has no history.
  static bool parts_tell_all(const Tensor& t) {
    return !(t->flags & flag_batched) && (!t->cut || keeps_recipes()) &&
           Py_TYPE(reinterpret_cast<PyObject*>(t.get())) == tensor_type;
  }
  void save_parts(const Tensor& t, bool output) {
    is_output = output;
    version = t->storage->version;
    storage = t->storage;
    storage->incref();
    shape = t->shape;
    shape->incref();
    offset = t->offset;
    dtype = t->dtype;
    flags = t->flags & kept_flags;
    kind = Kind::parts;
    if (keeps_recipes()) [[unlikely]] {
      counted = true;
      retention.count(storage);
    }
  }
  // With `as_object`, the given tensor object itself is kept, unless it is an output.
  void save(const Tensor& t, bool output, bool as_object = false);
  bool is_held() const { return kind != Kind::none; }
  // Has the storage's state and the first values brought into the cache.
  void fetch() const {
    if (kind != Kind::parts) return;  // another pointer, or one to what was given back
    fetch_line(storage);
    if (storage->release) [[unlikely]]
      retention.fetch(storage);
    if (!storage->data) return;
    for (int line = 0; line < 4; ++line) fetch_line(storage->at(offset + line * line_bytes));
  }
  uint32_t output_nr() const {
    return kind == Kind::object ? tensor->output_nr : kind == Kind::packed ? version : 0;
  }
  // The values, without history and without a check; undefined where a hook took them.
  Tensor values() const;
  // The tensor, with its place in the graph; throws when it was written since. What a hook gives
  // back is left in `once`, or taken from there.
  Tensor unpack_for(const Node& node, const Edge* edge, uint32_t output_nr,
                    Tensor* once = nullptr) const;
  void clear();
};

struct OutMeta {
  ShapeRef shape;  // null where the output is no tensor
  DType dtype = DType::Float32;
  Device device = Device::CPU;
  const Dims& sizes() const {
    static const Dims none;
    return shape ? shape->sizes : none;
  }
};

// Rarely present parts of a node.
struct NodeExtra {
  struct TensorHooks {
    uint32_t nr;
    PyObject* dict;  // id -> hook, shared with the handle that removes them
  };
  std::vector<TensorHooks> tensor_hooks;
  std::vector<std::pair<uint32_t, TensorObj*>>
      retains_grad;  // weak: the tensor takes itself out when it dies
  PyObject* pre_hooks = nullptr;
  PyObject* post_hooks = nullptr;
  PyObject* metadata = nullptr;
  ~NodeExtra();
};

struct Node {
  uint32_t refs = 1;
  uint32_t output_count = 1;
  uint32_t consumed = 0;  // the backward call that released the saved tensors; 0 if none did
  bool owns_edges : 1 = false;
  bool owns_more : 1 = false;
  bool packed : 1 = false;      // a saved-tensor hook runs in its rule
  bool deferred : 1 = false;    // made where calls wait; its rule's calls wait as well
  bool batched : 1 = false;     // of calls of many samples that ran as one
  bool promised : 1 = false;    // stands for makers that are not there yet (program/batching.h)
  uint8_t saved_count = 0;      // of the tensors saved behind the edges, see OpNode
  bool is_accumulator = false;  // an AccumulateGrad
  bool accumulates = false;     // has run_into(), see OpDef::accumulate
  uint32_t edge_count = 0;
  uint32_t delivered = 0;     // engine: consumers that have run
  uint64_t sequence;          // creation order; edges always point to smaller numbers
  GraphTask* task = nullptr;  // engine: the backward call using the scratch fields
  Edge* edges = nullptr;
  Origin* origin = nullptr;  // owned: the line and module call that made the node
  Cut* cut = nullptr;        // owned: how an input that wants no gradient lost its history
  NodeExtra* extra = nullptr;
  PyObject* wrapper = nullptr;  // weak: the Python object standing for this node, if one is alive
  // Holders of a weak pointer check this first: the node may be waiting for its destruction.
  bool is_dying() const { return refs == 0; }
  Tensor grad_in;                  // engine: gradient gathered for output 0
  std::unique_ptr<Staged> staged;  // engine: products that belong to grad_in, not yet multiplied
  OutMeta meta0;
  // The same for the outputs after the first.
  struct More {
    OutMeta meta;
    Tensor grad_in;
  };
  More* more = nullptr;

  explicit Node(bool has_origin = true);
  virtual ~Node();
  Node(const Node&) = delete;

  // Computes the gradients of the inputs; out has edge_count undefined entries.
  virtual void run(std::span<const Tensor> grads, Tensor* out) = 0;
  // Instead of run(), for nodes that can: see OpDef::accumulate.
  virtual uint32_t accumulated_input() const { return 0; }
  virtual bool accumulates_part() const { return true; }
  virtual void run_into(std::span<const Tensor>, const Tensor&) {}
  // The same for each of the inputs, of nodes that can do so for all.
  virtual bool accumulates_all() const { return false; }
  virtual void run_into_input(std::span<const Tensor>, const Tensor&, uint32_t) {}
  virtual bool run_staged(std::span<const Tensor>, Staged&) { return false; }
  virtual void release_saved() {}
  virtual std::string name() const = 0;
  virtual std::span<const Saved> saved_tensors() const { return {}; }
  // The node whose rule runs: this one, or what a write into a view wraps.
  virtual const Node& inner() const { return *this; }
  virtual PyObject* python_object() {
    return nullptr;
  }  // borrowed; custom functions have their own
  virtual PyObject* saved_attribute(const char*) { return nullptr; }

  Saved* saved_behind_edges() const { return reinterpret_cast<Saved*>(edges + edge_count); }
  const OutMeta& meta(uint32_t nr) const { return nr == 0 ? meta0 : more[nr - 1].meta; }
  Tensor& gradient(uint32_t nr) { return nr == 0 ? grad_in : more[nr - 1].grad_in; }
  void add_meta(uint32_t nr, const Tensor& t) {
    OutMeta& m = nr == 0 ? meta0 : more[nr - 1].meta;
    m.shape = ShapeRef::borrow(t->shape);
    m.dtype = t.dtype();
    m.device = t.device();
  }
  void set_output_count(uint32_t n) {
    output_count = n;
    if (n < 2) return;
    more = new More[n - 1];
    owns_more = true;
  }
  void allocate_edges(uint32_t n) {
    edges = new Edge[n];
    edge_count = n;
    owns_edges = true;
  }
  void set_edge(uint32_t i, const Tensor& t);  // the gradient edge of t
  NodeExtra& extras() {
    if (!extra) extra = new NodeExtra();
    return *extra;
  }
  void note_cut(Cut* of_an_input) {
    if (!of_an_input || of_an_input->kind == CutKind::made) return;
    of_an_input->incref();
    cut = of_an_input;
  }
  void incref() { ++refs; }
  void decref() {
    if (--refs == 0) destroy(this);
  }
  static void destroy(Node*);
  virtual void dispose() { delete this; }
};

using NodeRef = Counted<Node>;

// Per-tensor autograd state that most tensors lack.
struct AutogradExtra {
  Node* accumulator = nullptr;  // weak: the leaf's AccumulateGrad node until it is destroyed
  PyObject* hooks = nullptr;    // of a leaf: id -> hook
  PyObject* post_accumulate_hooks = nullptr;  // id -> hook
  bool retains_grad = false;
  Cut* unrecorded = nullptr;  // owned; of a leaf: where it was last used without being recorded
  // For a leaf: where the last node that used it was made (owned), and that node's number. The node
  // may be gone.
  Origin* used = nullptr;
  uint64_t used_by = 0;
};
AutogradExtra& extra_of(const Tensor& t);

// Gathers gradients into a leaf's .grad.
struct AccumulateGrad final : Node {
  Tensor variable;
  explicit AccumulateGrad(const Tensor& t);
  ~AccumulateGrad() override;
  void run(std::span<const Tensor> grads, Tensor* out) override;
  std::string name() const override { return "AccumulateGrad"; }
};

// Inputs of the node that runs in this thread whose gradient need not be computed: it was
// accumulated already, or was not requested. One bit for each of the first 64 inputs.
struct Skip {
  const Node* node = nullptr;
  uint64_t inputs = 0;
  bool has(int input) const { return input < 64 && (inputs >> input & 1) != 0; }
};
extern constinit thread_local Skip skip;

uint32_t matrix_factor_of(const Node& product);

// A node of an OpDef. Behind it in the same block of memory: attributes, edges, saved tensors, what
// it knows of outputs after the first.
struct OpNode final : Node {
  const OpDef* op;
  uint32_t saved_mask = 0;  // which inputs (low half) and outputs (high half) were saved
  uint8_t block_class = 0;
  bool has_attrs = false;

  const void* attrs() const { return has_attrs ? this + 1 : nullptr; }
  Saved& saved(int slot) const { return saved_behind_edges()[slot]; }
  ~OpNode() override;
  void run(std::span<const Tensor> grads, Tensor* out) override;
  uint32_t accumulated_input() const override {
    return op->accumulates == matrix_factor ? matrix_factor_of(*this) : op->accumulates;
  }
  bool accumulates_part() const override { return op->accumulates_part; }
  void run_into(std::span<const Tensor> grads, const Tensor& into) override {
    Vjp c(*this, grads, nullptr);
    op->accumulate(c, into);
  }
  bool run_staged(std::span<const Tensor> grads, Staged& into) override {
    Vjp c(*this, grads, nullptr);
    return op->stage && op->stage(c, into);
  }
  void release_saved() override;
  std::span<const Saved> saved_tensors() const override { return {&saved(0), saved_count}; }
  std::string name() const override;
  PyObject* saved_attribute(const char* which) override;
  int saved_slot(int bit) const;  // index into saved, or -1
  void dispose() override;
};

// The name a node of this op shows: "AddBackward0".
std::string node_name(const OpDef& op);

struct OwnedEdge {
  NodeRef fn;
  uint32_t nr = 0;
};
// The node and output number a gradient for t is sent to; a null node when t does not require grad.
OwnedEdge gradient_edge(const Tensor& t);
// t.grad_fn, with a view's brought up to date when its base was rewritten.
Node* grad_fn_of(const Tensor& t);
void set_grad_fn(const Tensor& t, Node* fn, uint32_t nr);  // takes its own reference

// The number of the node made last.
uint64_t latest_sequence();

// Records `op` as the maker of outs. In-place callers record before they attach.
NodeRef record(const OpDef& op, std::span<const Tensor> in, const void* attrs,
               std::span<const Tensor> outs, bool attach = true);
bool any_requires_grad(std::span<const Tensor> in);

// The worst kind of value among a tensor's elements.
enum class NonFinite : uint8_t { none, infinity, nan };

// Ops the graph itself needs, filled in by ops/registry.cpp.
struct Builtins {
  Tensor (*add)(const Tensor&, const Tensor&) = nullptr;
  void (*add_over)(const Tensor& into, const Tensor&) = nullptr;  // not recorded
  // into = left^T right + beta * into, for matrices; not recorded.
  void (*multiply_into)(const Tensor& into, const Tensor& left, const Tensor& right,
                        const Scalar& beta) = nullptr;
  Tensor (*mul)(const Tensor&, const Tensor&) = nullptr;
  Tensor (*conj)(const Tensor&) = nullptr;
  Tensor (*sum_to)(const Tensor&, const Dims&) = nullptr;
  Tensor (*to_dtype)(const Tensor&, DType) = nullptr;
  Tensor (*real)(const Tensor&) = nullptr;
  Tensor (*view_as_real)(const Tensor&) = nullptr;
  Tensor (*view_as_complex)(const Tensor&) = nullptr;
  Tensor (*clone)(const Tensor&) = nullptr;
  // Sizes, strides and the storage offset, all in elements.
  Tensor (*as_strided)(const Tensor&, const Dims&, const Dims&, int64_t) = nullptr;
  Tensor (*unsqueeze)(const Tensor&, int64_t dim) = nullptr;
  Tensor (*expand)(const Tensor&, const Dims& sizes) = nullptr;
  Tensor (*movedim)(const Tensor&, int64_t from, int64_t to) = nullptr;
  Tensor (*select)(const Tensor&, int64_t dim, int64_t index) = nullptr;
  Tensor (*view)(const Tensor&, const Dims& sizes) = nullptr;
  Tensor (*stack)(std::span<const Tensor>) = nullptr;  // along a new first dim
  Tensor (*cat)(std::span<const Tensor>) = nullptr;    // along the first dim
  Tensor (*narrow)(const Tensor&, int64_t start, int64_t length) = nullptr;  // of the first dim
  Tensor (*take_rows)(const Tensor&, const Tensor& index) = nullptr;         // int64, none negative
  // Zeros of the sizes with the values added to the rows that the index names.
  Tensor (*add_rows)(const Dims& sizes, const Tensor& index, const Tensor& values) = nullptr;
  NonFinite (*non_finite)(const Tensor&) = nullptr;  // floating or complex, with elements
  RowRule rows = nullptr;                            // rows_by_rule()
};
extern Builtins builtins;
void init_builtins();                       // ops/registry.cpp
std::string_view op_name(const OpDef& op);  // public name, from the signature

// Fits a gradient to what edge expects (sums broadcast dims, casts dtype); throws when it cannot.
Tensor fit_gradient(const Edge& edge, Tensor grad, const Node& from, uint32_t index);

// Throws when it is on another device than edge expects.
void check_gradient_device(const Edge& edge, const Tensor& grad, const Node& from, uint32_t index);

// Runs backward from roots; with `inputs` (captures) returns their gradients instead of filling
// .grad.
struct BackwardArgs {
  std::vector<OwnedEdge> roots;
  std::vector<Tensor> grads;
  bool keep_graph = false;
  bool create_graph = false;
  bool accumulate = true;           // fill .grad of leaves (of `inputs` only, when there are some)
  std::vector<OwnedEdge> captures;  // where to catch gradients
};
std::vector<Tensor> run_backward(BackwardArgs& args);
// The number of the backward call that runs in this thread; 0 outside of one.
uint64_t backward_id();
// The node that runs in this thread's innermost backward, or whose hooks do; null outside of one.
Node* backward_node();
// The line that called it, for the last few hundred calls; null for others.
Origin* backward_origin(uint32_t id);
// The sequence of the node where it began; 0 for others.
uint64_t backward_root(uint32_t id);
// The roots of the last few hundred backward calls, in no order.
std::vector<uint64_t> backward_roots();
// The value that Node::consumed gets in the current backward.
uint32_t consuming_id();

}  // namespace clew

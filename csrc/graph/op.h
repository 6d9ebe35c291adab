// OpDef: the one declaration of an operation, and apply(), which runs and records it.
// May include: base, tensor, base/ndview.h.
// Invariant: an OpDef is constant data; everything about one call travels in Call, everything kept
// for backward in Node.
#pragma once
#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "graph/attrs.h"
#include "tensor/tensor.h"

namespace clew {

struct OpDef;

// A list of tensors with the first few inline; what apply() fills.
class Tensors {
  static constexpr int inline_count = 4;
  Tensor inline_[inline_count];
  Tensor* data_ = inline_;
  int size_ = 0;
  int capacity_ = inline_count;

 public:
  Tensors() = default;
  explicit Tensors(int n) { resize(n); }
  Tensors(std::initializer_list<Tensor> ts) {
    for (const Tensor& t : ts) push_back(t);
  }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;
  Tensors(Tensors&& o) noexcept;
  ~Tensors() {
    if (data_ != inline_) delete[] data_;
  }
  void push_back(Tensor t) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = std::move(t);
  }
  void resize(int n) {
    if (n > capacity_) grow(n);
    for (int i = n; i < size_; ++i) data_[i] = Tensor();
    size_ = n;
  }
  int size() const { return size_; }
  Tensor& operator[](int i) { return data_[i]; }
  const Tensor& operator[](int i) const { return data_[i]; }
  Tensor* begin() { return data_; }
  Tensor* end() { return data_ + size_; }
  const Tensor* begin() const { return data_; }
  const Tensor* end() const { return data_ + size_; }
  operator std::span<const Tensor>() const { return {data_, static_cast<size_t>(size_)}; }

 private:
  void grow(int need);
};

// One call, as shape rules and kernels see it. Tensor parameters come first to last in signature
// order; an optional one that was not given is an undefined Tensor; the elements of a Tensor[]
// parameter (at most one, the last tensor parameter) follow flattened.
struct Call {
  const OpDef& op;
  std::span<const Tensor> in;
  const void* attrs;
  template <class A> const A& as() const { return *static_cast<const A*>(attrs); }
  std::string_view name() const;
};

// Shape, dtype (and strides, when not contiguous) of one output to be.
struct OutSpec {
  DType dtype;
  Dims sizes;
  std::optional<Dims> strides;
  OutSpec(DType d, Dims s) : dtype(d), sizes(std::move(s)) {}  // a constructor: no zeros first
};
class OutSpecs {
  static constexpr int most = 4;
  alignas(OutSpec) std::byte bytes_[most * sizeof(OutSpec)];  // made one by one
  int size_ = 0;

 public:
  OutSpecs() = default;
  OutSpecs(const OutSpecs&) = delete;
  OutSpecs& operator=(const OutSpecs&) = delete;
  ~OutSpecs() {
    for (int i = 0; i < size_; ++i) (*this)[i].~OutSpec();
  }
  // Declares the next output.
  OutSpec& add(DType dtype, Dims sizes) {
    if (size_ == most)
      fail_internal("an operation with more than four outputs must be a view or a composite");
    auto* o = new (bytes_ + static_cast<size_t>(size_) * sizeof(OutSpec))
        OutSpec(dtype, std::move(sizes));
    ++size_;
    return *o;
  }
  int size() const { return size_; }
  OutSpec& operator[](int i) {
    return *std::launder(
        reinterpret_cast<OutSpec*>(bytes_ + static_cast<size_t>(i) * sizeof(OutSpec)));
  }
};

// Where a view's elements lie: sizes, strides in elements, offset in elements from the input's
// first element.
struct ViewSpec {
  Dims sizes;
  Dims strides;
  int64_t offset = 0;
  ViewSpec() {}  // not cleared: on some processors that takes longer than filling it in
  ViewSpec(Dims sizes, Dims strides, int64_t offset)
      : sizes(std::move(sizes)), strides(std::move(strides)), offset(offset) {}
};

struct Node;

// One backward call, as a gradient rule sees it.
class Vjp {
 public:
  // Gradient of the k-th output; undefined when nothing flowed into it (with one output always
  // defined).
  const Tensor& grad(int k = 0) const { return grads_[k]; }
  // The gradient of the only output, for a rule that uses it once, as the first argument of the
  // next operation: that one may write over it. Elsewhere it is grad().
  const Tensor& last_grad() const;
  // The gradient of the only output and a saved tensor (as Saves name it) as the operands of an
  // elementwise operation without attributes. `last`: the gradient is not used any more.
  Tensor with_saved(const OpDef& op, uint32_t saved, bool last) const;
  int outputs() const { return static_cast<int>(grads_.size()); }
  // A saved input or output; only those that OpDef::saves lists.
  Tensor in(int i) const;
  Tensor out(int k = 0) const;
  bool has_in(int i) const;  // false for an optional tensor that was not given or not saved
  // Whether input i wants a gradient; only then may sizes(i), dtype(i) be asked.
  bool needs(int i) const;
  const Dims& sizes(int i) const;
  DType dtype(int i) const;
  // Uninitialised, dense and in its shape; on the CPU.
  Tensor empty_like_input(int i, DType dtype) const;
  int inputs() const;
  const Dims& out_sizes(int k = 0) const;
  DType out_dtype(int k = 0) const;
  template <class A> const A& as() const { return *static_cast<const A*>(attrs()); }
  // Sets the gradient of input i. It is reduced to the input's shape (broadcast dims summed) and
  // cast to its dtype.
  void set(int i, Tensor g) { out_grads_[i] = std::move(g); }

  // `unpacked`: where hooks hold what was saved, room for what they give back, a tensor each, so
  // that a rule that reads one twice asks once (a checkpoint would run its function again).
  Vjp(Node& node, std::span<const Tensor> grads, Tensor* out_grads, Tensor* unpacked = nullptr)
      : node_(node), grads_(grads), out_grads_(out_grads), unpacked_(unpacked) {}
  Node& node() const { return node_; }

 private:
  const void* attrs() const;
  Node& node_;
  std::span<const Tensor> grads_;
  Tensor* out_grads_;
  Tensor* unpacked_;
};

// Which tensors backward needs. `always`: kept whenever the call is recorded. `when[i]`: kept if
// input i wants a gradient.
constexpr uint32_t in(int i) { return 1u << i; }
constexpr uint32_t out(int k) { return 1u << (16 + k); }
struct Saves {
  uint32_t always = 0;
  uint32_t when[6] = {};
};

enum class OpKind : uint8_t { Elementwise, View, General, Composite };

// How the inputs' dtypes become the dtype an elementwise kernel computes in.
enum class Promote : uint8_t {
  same,       // promoted dtype of the inputs
  to_float,   // the same, integers and bool become the default float dtype
  to_number,  // the same, bool becomes int64
  none,       // the first input's dtype; others must equal it
};
// How the compute dtype becomes the output dtype.
enum class Result : uint8_t { same, boolean, real };

using Partial = Tensor (*)(const Vjp& c);

// Where a public name is offered.
enum class Offer : uint8_t {
  both,      // clew.name(input, ...) and input.name(...)
  function,  // clew.name(...) only
  method,    // input.name(...) only
};

// How an op runs on all samples of a vmap at once: physical results into outs (graph/batch.h).
struct Batch;
using BatchRule = void (*)(const Batch& b, Tensors& outs);
// How a call goes over the first dim of its inputs (graph/rows.h).
struct RowWise;
using RowRule = RowWise (*)(const Call& c, void* attrs, int64_t rows);

// Adds the gradient of one input to what others have put into `into`, a dense tensor of its shape
// and dtype, where that is cheaper than a tensor of its own. Used when backward is not recorded.
using Accumulate = void (*)(Vjp& c, const Tensor& into);
// Rows of the two factors of a gradient left^T right, gathered from many calls on the same tensor,
// so that many small products become one.
struct Staged {
  static constexpr int64_t capacity = 128;           // rows
  static constexpr int64_t shared_work = 8'000'000;  // multiply-adds from which threads are woken
  Tensor left, right;
  int64_t rows = 0;
  // Takes the rows of two factors, of n and k elements each; false when they are too many to gain
  // by it, or do not lie in order.
  bool append(const Tensor& a, int64_t n, const Tensor& b, int64_t k);
};
// In the place of an input's number: of a product, the left factor where the other one is a vector
// and it is not, else the right one.
constexpr uint8_t matrix_factor = 0xff;
// Takes this call's rows instead of multiplying them; false when they are too many to gain by it.
using Stage = bool (*)(Vjp& c, Staged& into);
// The rule of views that show a part of their input.
void add_to_part(Vjp& c, const Tensor& into);

constexpr uint8_t name_size(const char* signature) {
  return static_cast<uint8_t>(std::string_view(signature).find('('));
}

// How a kernel goes through an input in order, R rows of C elements, a part at a time
// (csrc/program): over columns, `run` makes each row's result of that row alone, [R, 1] of [R, C];
// over rows, the result is kernels::ColumnSums of all rows; over all, kernels::TotalSum. Picked is
// the element of each row that in[1], int64 [R, 1], counts; placed are rows of the number in[0], to
// whose element that in[1] counts in[2], [R, 1], is added.
struct Passes {
  enum class Over : uint8_t { nothing, columns, rows, all, picked, placed };
  Over over = Over::nothing;
  bool mean = false;  // over rows or all: their mean
  int dims = 0;       // the last ones, that make a row
  void (*run)(const void* attrs, const kernels::NdView& out, const kernels::NdView& in) = nullptr;
};

// A choice that the kind of op makes where the declaration does not.
class Choice {
  int8_t made_ = -1;

 public:
  constexpr Choice() = default;
  constexpr Choice(bool yes) : made_(yes) {}
  constexpr operator bool() const { return made_ > 0; }
  constexpr Choice or_else(bool usual) const { return made_ < 0 ? Choice(usual) : *this; }
};

// The reason an op has no derivative, where it has none.
struct NoRule {
  const char* reason = nullptr;
  constexpr explicit operator bool() const { return reason != nullptr; }
};
consteval NoRule no_rule(const char* reason) { return {reason}; }

// What autocast makes of the floating inputs.
enum class Autocast : uint8_t {
  none,      // nothing; the parts of a composite follow their own policies
  as_given,  // nothing, and the parts have no policies
  lower,     // the dtype of the region
  float32,
  widest,  // float32 if any input has it
};

// Which dtype out= may have.
enum class OutDtype : uint8_t {
  usual,         // converted for elementwise and private ops, own for others
  own,           // the result's
  own_or_uint8,  // the same; uint8 takes bools, too
  any,           // any: the result is zeros and ones
  converted,     // any that the result can be cast to
  given,         // the same, but that of the attribute dtype where it is given
  chosen,        // the same, and the op computes in it where none is given
  running,       // the same, whatever the input is
};
// How out= may lie in the memory of an input.
enum class OutMemory : uint8_t {
  usual,    // aligned for elementwise ops, anywhere for others
  aligned,  // it may be an input, but share memory with none in another way
  apart,    // it shares no memory with any: the op reads while it writes
  anywhere,
};

// One operation. A declaration names the fields that it needs, in this order, and hands them to
// elementwise(), view(), general() or composite(), which check them.
struct OpDef {
  const char* signature = nullptr;
  const char* doc = nullptr;
  OpKind kind = OpKind::General;

  // ---- elementwise
  Promote promote = Promote::same;
  Result result = Result::same;
  const kernels::LoopTable* loops = nullptr;
  // Raises for operands of dtypes that could be promoted but must not be.
  void (*check_operands)(const OpDef& op, std::span<const Tensor> in) = nullptr;
  // Raises for a Python number that must not be made one of the kernel's dtype.
  void (*check_number)(int operand, const Scalar& value, DType compute) = nullptr;
  // Whether its loop raises for some integers, as for a divisor of 0.
  bool divides = false;

  // ---- view: where each output lies in the input's storage
  void (*view)(const Call&, std::vector<ViewSpec>&) = nullptr;

  // ---- general
  void (*shape)(const Call&, OutSpecs&) = nullptr;
  void (*cpu)(const Call&, Tensors& outs) = nullptr;
  // shape and cpu in one step, for the commonest inputs. For all others, and for wrong ones, it
  // does nothing and gives an undefined tensor: shape and cpu then run, or raise. Of a composite
  // op: what run does, if nothing is recorded.
  Tensor (*quick)(const Call&) = nullptr;
  Passes (*passes)(const Call&) = nullptr;
  // In the place of shape and cpu, where values decide the results' sizes, or which results there
  // are: makes them and fills them. Its calls never wait, and the meta device has no values.
  void (*find)(const Call&, Tensors& outs) = nullptr;
  // Of a random op, when calls are gathered (csrc/program): draws at once and leaves what depends
  // on the input's elements to other ops, whose calls may wait. False where it cannot.
  bool (*draw)(const Call&, Tensors& outs) = nullptr;

  // ---- composite: made of other ops, which record themselves
  void (*run)(const Call&, Tensors& outs) = nullptr;

  // How name_(...) changes in[0] where it lies; without it, the result is made and copied there. A
  // composite's writes with recorded operations, a general one's is recorded like `cpu`.
  void (*write)(const Call&) = nullptr;
  // The same of a general op for the commonest small inputs, where nothing is recorded. For all
  // others, and for wrong ones, it does nothing and gives false.
  bool (*write_few)(const Call&) = nullptr;
  // The same of a general op, with recorded operations, where in[0] is an expanded tensor: such a
  // write warns. Without it, such writes are refused.
  void (*write_expanded)(const Call&) = nullptr;
  Saves saves = {};
  // Whether saved Python numbers outlive a backward, which may then run again if that was all.
  bool numbers_stay = false;
  // Elementwise: the gradient of input i is sum_to(grad * conj(partials[i](c)), shape of input i);
  // or there is a vjp, where a fused rule is better.
  std::array<Partial, 4> partials = {};
  void (*vjp)(Vjp&) = nullptr;
  NoRule no_vjp = {};
  BatchRule batch = nullptr;      // without one, vmap runs the op sample by sample
  RowRule rows = nullptr;         // where `batch` does not tell it (ops/row_rules.cpp)
  bool no_dims_are_none = false;  // an empty list of dims names none, where others mean all
  Accumulate accumulate = nullptr;
  uint8_t accumulates = 0;  // the input that `accumulate` is about, or matrix_factor
  // Whether that gradient is mostly zeros: then even the first one is added into a buffer.
  bool accumulates_part = true;
  Stage stage = nullptr;  // of the same input
  // An elementwise op's is a struct of Scalar fields only: the loops get them as `params`.
  const AttrInfo* attrs = nullptr;
  Choice inplace = {};      // also offered as name_(...); elementwise ops usually are
  bool aliases = false;     // `cpu` reads and writes no element: the result shows the input's bytes
  bool by_strides = false;  // the result depends on the input's strides too
  // Random numbers, without an argument that says so: vmap need not know, but its calls never wait.
  bool draws = false;
  // Its calls never wait: a gradient would keep all that the forward saved until then.
  bool at_once = false;
  bool takes_stored = false;   // also of dtypes that are only stored, whose elements pass unread
  bool casts = false;          // to the dtype in its attributes
  bool takes_numbers = false;  // numbers alone, which then stand for tensors without dims
  Autocast autocast = Autocast::none;
  Offer offer = Offer::both;
  OutDtype out_dtype = OutDtype::usual;
  OutMemory out_memory = OutMemory::usual;
  uint8_t name_length = 0;  // of the public name, which the signature begins with

  // ---- what it costs, as an expression over the shapes of its tensors (src/clew/_ops/flops.py)
  bool is_product = false;  // its work is a product of matrices, which FlopCounterMode counts
  // Floating-point operations of a call: usually one for each element of an elementwise op's result
  // and none in a view; null where there is no formula, and for a composite, whose parts count.
  const char* flops = nullptr;
  const char* backward_flops = nullptr;  // of its gradient rule

  constexpr void sign(const char* text) {
    signature = text;
    name_length = name_size(text);
  }
};

consteval void demand(bool ok, const char* what) {
  if (!ok) throw what;  // not a constant expression: the build stops here
}
consteval OpDef made(OpDef op, OpKind kind) {
  op.kind = kind;
  const bool elementwise = kind == OpKind::Elementwise;
  op.inplace = op.inplace.or_else(elementwise);
  if (op.out_dtype == OutDtype::usual)
    op.out_dtype = elementwise || *op.signature == '_' ? OutDtype::converted : OutDtype::own;
  if (op.out_memory == OutMemory::usual)
    op.out_memory = elementwise ? OutMemory::aligned : OutMemory::anywhere;
  if (!op.flops) {
    if (elementwise) op.flops = "numel(result)";
    if (kind == OpKind::View) op.flops = "0";
  }
  if (op.flops && !op.backward_flops) {
    if (std::string_view(op.flops) == "0")
      op.backward_flops = "0";
    else if (elementwise)
      op.backward_flops = "wanted() * numel(result)";
  }
  op.sign(op.signature);
  return op;
}

// One output, each element of it made from the elements at the same place of up to four broadcast
// inputs.
consteval OpDef elementwise(OpDef op) {
  demand(op.signature && op.doc && op.loops, "elementwise: signature, doc and loops are required");
  demand(!op.view && !op.shape && !op.cpu && !op.quick && !op.passes && !op.draw && !op.run &&
             !op.batch && !op.find && !op.write_few && !op.write_expanded,
         "elementwise: there are fields of another kind");
  demand((op.partials[0] || op.partials[1] || op.partials[2]) + (op.vjp != nullptr) +
                 (op.no_vjp ? 1 : 0) ==
             1,
         "elementwise: give partials, or vjp, or no_vjp = no_rule(reason)");
  return made(op, OpKind::Elementwise);
}
// Outputs share the input's storage. Without a batch rule, vmap makes the view from the strides of
// one sample.
consteval OpDef view(OpDef op) {
  demand(op.signature && op.doc && op.view && op.vjp,
         "view: signature, doc, view and vjp are required");
  demand(!op.loops && !op.check_operands && !op.shape && !op.cpu && !op.quick && !op.passes &&
             !op.draw && !op.run && !op.find && !op.write && !op.write_few && !op.write_expanded &&
             !op.inplace,
         "view: there are fields of another kind");
  return made(op, OpKind::View);
}
// Anything with a shape rule and a kernel.
consteval OpDef general(OpDef op) {
  demand(op.signature && op.doc && op.shape && op.cpu,
         "general: signature, doc, shape and cpu are required");
  demand(!op.loops && !op.check_operands && !op.view && !op.run && !op.find && !op.partials[0],
         "general: there are fields of another kind");
  demand((op.vjp != nullptr) + (op.no_vjp ? 1 : 0) == 1,
         "general: give vjp, or no_vjp = no_rule(reason)");
  return made(op, OpKind::General);
}
// A general op whose results' sizes depend on values. Its results are indices and counts, or
// constants as far as gradients are concerned.
consteval OpDef finding(OpDef op) {
  demand(op.signature && op.doc && op.find, "finding: signature, doc and find are required");
  demand(!op.loops && !op.check_operands && !op.view && !op.shape && !op.cpu && !op.quick &&
             !op.passes && !op.draw && !op.run && !op.write && !op.batch && !op.partials[0] &&
             !op.vjp && !op.no_vjp && !op.inplace,
         "finding: there are fields of another kind");
  op.no_vjp = no_rule("what is found is not a differentiable function of the input");
  return made(op, OpKind::General);
}
// Written with other ops, which record themselves; needs no rule of its own.
consteval OpDef composite(OpDef op) {
  demand(op.signature && op.doc && op.run, "composite: signature, doc and run are required");
  demand(!op.loops && !op.check_operands && !op.view && !op.shape && !op.cpu && !op.draw &&
             !op.find && !op.write_few && !op.write_expanded && !op.vjp && !op.no_vjp,
         "composite: there are fields of another kind");
  return made(op, OpKind::Composite);
}

// The same operation under another name, or for other callers.
consteval OpDef also(OpDef op, const char* signature, const char* doc) {
  op.doc = doc;
  op.sign(signature);
  return op;
}
consteval OpDef also(OpDef op, const char* signature, const char* doc, Offer offer) {
  op.offer = offer;
  return also(op, signature, doc);
}

// Runs one op: shape rule, allocation, kernel (none on meta), record when grad mode is on and an
// input requires grad. `attrs` points at the op's attribute struct (null when it has none).
void apply(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs);
// The same for ops with one output.
Tensor apply_one(const OpDef& op, std::span<const Tensor> in, const void* attrs);
inline Tensor apply(const OpDef& op, std::initializer_list<Tensor> in) {
  return apply_one(op, {in.begin(), in.size()}, nullptr);
}
template <class A> Tensor apply(const OpDef& op, std::initializer_list<Tensor> in, const A& attrs) {
  return apply_one(op, {in.begin(), in.size()}, &attrs);
}
// In place: the result is written into in[0], its version rises, its history continues from the new
// node.
void apply_inplace(const OpDef& op, std::span<const Tensor> in, const void* attrs);

}  // namespace clew

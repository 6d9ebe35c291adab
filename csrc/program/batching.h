// Batching: calls of many samples that wait, to run as few calls on many rows.
// May include: base, tensor, graph, program.
// Invariant: a result that waits belongs to one Batching, which holds it by its tensor object; what
// anybody else holds of it when the calls run gets bytes and a history of its own.
#pragma once
#include <exception>
#include <vector>

#include "graph/batch.h"
#include "program/known_results.h"
#include "program/program.h"

namespace clew::program {

// An operand: a tensor that was there, or a result that waits, or not given.
struct Given {
  Tensor outer;
  int32_t value = -1;
  bool recorded = false;    // it required grad
  Storage* read = nullptr;  // owned: of the tensor that was there
};

// A result that waits.
struct Value {
  TensorObj* tensor;  // weak: takes itself out when it dies
  Storage* storage;   // owned; null unless other tensor objects look at it after that one died
  Shape* shape;       // owned
  uint64_t type;      // a hash of dtype and sizes
  DType dtype;
  bool is_held() const { return tensor || storage; }
};

// A call of one sample.
struct Gathered {
  const OpDef* op;
  void* attrs;     // owned copy in the arena, or null
  Origin* origin;  // owned
  uint32_t first_given, given;
  uint32_t first_value, values;
  bool grad, inference;
  uint64_t kind;  // a hash of what calls that may run as one have in common
};

// Where a result's numbers are: a tensor that was computed, one of its rows, or `rows` of them from
// `row` on.
struct Place {
  int32_t whole = -1;
  int32_t row = -1;   // -1: all of it
  int32_t rows = -1;  // -1: one, which is the whole result
};

// One batched call, for the report.
struct BatchedCall {
  const OpDef* op;
  Origin* origin;  // owned: of its first member
  uint32_t members;
  const char* why_alone;  // null where there were several
};
struct BatchReport {
  std::vector<BatchedCall> calls;
  std::vector<End> ends;
  uint64_t gathered = 0;
  // What it cost or gained, roughly: times of one core for the calls and groups of small operands,
  // with backward, beside the plain program's.
  double saved_ns = 0, lost_ns = 0;
  bool paid() const { return saved_ns > lost_ns; }
  BatchReport() = default;
  BatchReport(const BatchReport& r);
  BatchReport& operator=(const BatchReport&) = delete;
  ~BatchReport() { forget(); }
  void forget();
};
// The report of the region of this process that began last.
BatchReport& batch_report();

class Batching final : public Waiting {
 public:
  // Takes a call, as deferral.collect.
  bool take(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs);
  void run(Ending why) override;
  size_t waiting() const override { return calls_.size(); }

 private:
  std::vector<Gathered> calls_;
  std::vector<Given> givens_;
  std::vector<Value> values_;
  std::vector<Gathered> spare_calls_;
  std::vector<Given> spare_givens_;
  Arena arena_;
  KnownResults known_;
  NodeRef promise_;          // grad_fn of results that will have one
  Origin* asked_ = nullptr;  // owned: where the first of the parked tasks asked for a value
  bool running_ = false;
  pthread_t thread_ = {};

  ~Batching() override;
  int32_t value_of(const Tensor& t) const;
  friend void forget(TensorObj* t);
  Tensor promised(Tensor t, bool records);
  void promise(const OpDef& op, std::span<const Tensor> in, const void* attrs, bool records,
               Tensors& results);
  void keep(const OpDef& op, std::span<const Tensor> in, const void* attrs, uint64_t call,
            std::span<const Tensor> results);
};

// This thread's batching, or null.
Batching* gathering();
// The calls of this thread are gathered from now on, or run at once again. What waits stays so.
void gather_calls(bool on);

// In deferral's form.
void forget(TensorObj* t);
Tensor detach_gathered(const Tensor& t);
// What detach_gathered() gathers.
extern const OpDef detach_op;
bool collect(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs);
size_t run_collected();

// Called before calls run because a result is read. Returns true if they have run in the meantime,
// or throws. Null removes it. For tasks that wait for each other (python/autobatch.cpp).
extern thread_local bool (*before_observation)();

// Groups of calls that can run as one, in an order in which results are made before they are
// needed.
std::vector<std::vector<uint32_t>> make_groups(std::span<const Gathered> calls,
                                               std::span<const Given> givens,
                                               std::span<const Value> values);
// A hash of what calls have in common that may run as one, operands aside; and of a tensor's dtype
// and sizes.
uint64_t hash_of_call(const OpDef& op, const void* attrs, size_t operands);
uint64_t hash_of_type(DType dtype, const Dims& sizes);
uint64_t mixed(uint64_t hash, uint64_t value);
// Who gets the gradient: the leaf, or the result, that the tensor is, or shows as a view that
// nobody watches; 0 if none is wanted.
uint64_t history_of(const Tensor& t);
// A hash of which elements a tensor shows, and of its history.
uint64_t place_of(const Tensor& t);

// Whether two tensors that were there are the same elements, with the same history.
bool same_place(const Tensor& a, const Tensor& b);

}  // namespace clew::program

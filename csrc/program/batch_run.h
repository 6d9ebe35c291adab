// Running gathered calls in groups.
// May include: program.
// Invariant: a group's members are the same operation on operands of the same kind, and none needs
// another's result.
#pragma once
#include <exception>
#include <vector>

#include "program/batching.h"

namespace clew::program {

// What the calls had switched on.
class ModesOf {
  Modes before_;

 public:
  explicit ModesOf(const Gathered& c) : before_(modes) {
    modes.grad = c.grad;
    modes.inference = c.inference;
    modes.deferred = false;
    modes.saved_hooks = 0;
    modes.disposable = nullptr;
    modes.running = nullptr;
    modes.intercept = static_cast<uint8_t>(modes.intercept &
                                           (intercept_trace | intercept_watch | intercept_anomaly));
  }
  ~ModesOf() { modes = before_; }
  ModesOf(const ModesOf&) = delete;
};

class BatchRun {
 public:
  BatchRun(std::span<const Gathered> calls, std::span<const Given> givens, std::span<Value> values);
  // Returns the exception of the first failed call, or null. Its results, and those of calls that
  // need them, keep the exception. Interrupts are thrown.
  std::exception_ptr execute();
  // After an interrupt or an allocation failure: reading a result that was not computed raises
  // `why`.
  void abandon(std::exception_ptr why);

 private:
  std::span<const Gathered> calls_;
  std::span<const Given> givens_;
  std::span<Value> values_;
  std::vector<Place> places_;                 // of values
  std::vector<int32_t> failed_;               // of calls: in failures_, or -1
  std::vector<std::exception_ptr> failures_;  // in order
  uint32_t first_failed_ = UINT32_MAX;        // call
  std::exception_ptr first_failure_;
  // Of values: whether they hold infinity or NaN. Calls that read them are batched by themselves.
  std::vector<bool> apart_;
  std::vector<Tensor> wholes_;
  std::vector<int32_t> part_of_;      // -1 for each whole, but while rows are gathered
  std::vector<uint32_t> uses_;        // of values, by calls that have not run, or by others
  std::vector<uint32_t> whole_uses_;  // of wholes: by their values
  std::vector<bool> whole_shared_;    // of wholes: whether several values are all of it

  const Given& given(uint32_t call, uint32_t at) const {
    return givens_[calls_[call].first_given + at];
  }
  // Added to the uses of what is held by others than calls.
  static constexpr uint32_t shown = uint32_t{1} << 30;
  void count_uses();
  bool fails_with_operand(uint32_t call);
  void run_group(std::vector<uint32_t>& members);
  enum class Together : uint8_t { done, failed, to_split };
  Together run_together(std::span<const uint32_t> members, std::vector<bool>& not_finite);
  bool is_joined(std::span<const uint32_t> members) const;
  void run_kinds(std::vector<uint32_t>& members);
  void run_joined(std::vector<uint32_t>& members);
  Together run_rows(std::span<const uint32_t> members, std::vector<bool>& not_finite);
  std::vector<int64_t> rows_made(std::span<const uint32_t> members, std::span<const int64_t> counts,
                                 std::span<const Tensor> whole) const;
  void place_rows(std::span<const uint32_t> members, uint32_t k, int64_t each,
                  std::span<const int64_t> counts);
  Tensor joined_operand(std::span<const uint32_t> members, uint32_t at);
  Tensor spread_operand(std::span<const uint32_t> members, uint32_t at,
                        std::span<const int64_t> counts, int ndim);
  const Dims& sizes_of(uint32_t call, uint32_t at) const;
  std::vector<int64_t> row_counts(std::span<const uint32_t> members, uint32_t at) const;
  Tensor gather_joined(std::span<const Place> places);
  void run_members(std::vector<uint32_t>& members);
  template <class Predicate>
  static std::vector<uint32_t> split(std::vector<uint32_t>& members, Predicate apart);
  bool has_operand_apart(uint32_t call) const;
  static std::vector<bool> not_finite_of(std::span<const Tensor> outs,
                                         std::span<const int64_t> counts);
  void set_apart(std::span<const uint32_t> members);
  void run_alone(uint32_t call, const char* why);
  void note(uint32_t call, uint32_t members, const char* why_alone, int64_t weight_bytes = 0) const;
  int64_t weight_bytes(uint32_t call, std::span<const Tensor> shared) const;
  Tensor row(Place p) const;
  int64_t rows_of(const Place& p) const;
  Tensor operand(std::span<const uint32_t> members, uint32_t at, bool& shared);
  Tensor gather(std::span<const Place> places);
  Tensor as_promised(Tensor t, int32_t value, bool rows) const;
  void keep_results(std::span<const uint32_t> members, std::span<const Tensor> outs, bool shared);
  void release_operands(std::span<const uint32_t> members);
  void deliver();
  void deliver_views(uint32_t call);
  void deliver_value(uint32_t call, uint32_t value);
  std::vector<Tensor> revived_;  // what live views are views of
};

// Where its history was recorded.
inline void set_origin(const Tensor& t, Origin* where) {
  Node* fn = t->grad_fn;
  if (!fn || fn->origin == where) return;
  if (Origin* before = std::exchange(fn->origin, kept(where))) before->decref();
}

}  // namespace clew::program

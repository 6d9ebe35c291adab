// Program: calls that wait, in the order in which they were made, and what runs them.
// May include: base, tensor, graph, kernels/core.
// Invariant: from the time a call waits until it has run, each storage that it writes says
// Bytes::pending, and its owner is the Program.
#pragma once
#include <pthread.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "graph/deferral.h"
#include "program/waiting.h"

namespace clew::program {

// A tensor as a waiting call knows it: the bytes and where they lie, not the object.
struct Operand {
  Storage* storage = nullptr;  // owned; null for an optional tensor that was not given
  Shape* shape = nullptr;      // owned
  int64_t offset = 0;          // in bytes
  DType dtype = DType::Float32;
  uint8_t flags = 0;

  Operand() = default;
  explicit Operand(const Tensor& t);
  // Another tensor object over the same bytes.
  Tensor tensor() const;
  bool same_place(const Operand& o) const {
    return storage == o.storage && offset == o.offset && dtype == o.dtype &&
           (shape == o.shape ||
            (shape->sizes == o.shape->sizes && shape->strides == o.shape->strides));
  }
};

struct Call {
  const OpDef* op;
  void* attrs;     // owned copy in the program's memory, or null
  Origin* origin;  // owned: the line that made the call
  uint32_t first;  // of its operands: the inputs, then the results
  uint32_t inputs, results;
  Waits how;
  DType compute;  // of loops
  bool in_place;  // bytes that were there before are written over
};

// Bytes that are handed out one after the other and given back all at once.
class Arena {
  static constexpr size_t block = 8192;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  size_t left_ = 0;
  std::byte* next_ = nullptr;

 public:
  void* take(size_t bytes);
};

class Program final : public Waiting {
 public:
  // Takes a call that has passed its shape rule. `results` are over pending storages, or written in
  // place.
  void keep(const OpDef& op, std::span<const Tensor> in, const void* attrs,
            std::span<const Tensor> results, Waits how, DType compute);
  // Runs what waits, in order; returns at once when nothing does. Throws what a call throws: calls
  // after it never run, and reading their results raises that error again.
  void run(Ending why) override;
  size_t waiting() const override { return calls_.size() - next_; }

  // Runs a call by itself, where it may in the bytes of an operand.
  void run_one(const Call& c, bool may_overwrite);

  size_t size() const { return calls_.size(); }
  const Call& call(size_t i) const { return calls_[i]; }
  std::span<const Operand> inputs(const Call& c) const {
    return {operands_.data() + c.first, c.inputs};
  }
  std::span<const Operand> results(const Call& c) const {
    return {operands_.data() + c.first + c.inputs, c.results};
  }

 private:
  bool running_ = false;
  pthread_t thread_ = {};  // which runs it
  size_t next_ = 0;        // the first call that has not run
  std::vector<Call> calls_;
  std::vector<Operand> operands_;
  Arena arena_;
  std::exception_ptr failure_;

  ~Program() override;
  void run_calls();
  void note(size_t end, Pass&& pass);
  bool run_over_operand(const Call& c);
  bool run_quick(const Call& c, std::span<const Tensor> in);
  void drop_results(size_t first);
  void finish(size_t end);
  void release(Operand& o);
};

// A copy of a tensor whose bytes other code may write. It has the same layout, because kernels
// choose their path by that.
Tensor copy_of_now(const Tensor& t);

// The exception in flight, with the line that made the call.
[[noreturn]] void rethrow_made_at(Origin* origin);

// A loop over more elements may take so long that it must be possible to interrupt it.
constexpr int64_t most_overwritten = int64_t{1} << 22;
// Whether nobody will read the storage once `uses` operands of calls that run now have been read,
// so that a result may lie in its bytes.
bool is_spent(const Storage& s, uint32_t uses);

// Gives the storage bytes, uninitialised, where it has none yet.
void give_bytes(Storage* s);

// Runs calls from `first` on as one pass over tiles where several elementwise calls follow each
// other. Returns the first call that was not run: `first` itself where nothing was to be gained.
size_t run_tiles(Program& p, size_t first, Pass& told);

// Fills in what graph/ and tensor/ ask of programs.
void init_deferral();

}  // namespace clew::program

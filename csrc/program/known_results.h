// KnownResults: caches result shapes and dtypes of calls with equal operation, attributes and
// operand types.
// May include: base, tensor, graph.
// Invariant: an answer depends on the operation, its attributes and its operands' types alone.
#pragma once
#include <array>
#include <span>

#include "graph/op.h"

namespace clew::program {

class KnownResults {
 public:
  static constexpr size_t most_operands = 4, most_results = 4;
  struct Result {
    ShapeRef shape;
    DType dtype = DType::Float32;
    size_t nbytes = 0;
    uint64_t type = 0;  // a hash of dtype and sizes
  };
  class Entry {
    friend KnownResults;
    uint64_t call_ = 0;
    uint32_t operands_ = 0, results_ = 0;
    std::array<uint16_t, most_operands> types_ = {};
    std::array<ShapeRef, most_operands> shapes_;  // kept, so that no other has its address
    std::array<Result, most_results> made_;

   public:
    std::span<const Result> results() const { return {made_.data(), results_}; }
  };

  // Null where no such call came lately. `call`: a hash of operation, attributes and modes.
  const Entry* find(uint64_t call, std::span<const Tensor> in);
  // Results of the call that find() was just asked about.
  void learn(const OpDef& op, uint64_t call, std::span<const Tensor> in,
             std::span<const Tensor> results);

 private:
  std::array<Entry, 256> table_;
};

}  // namespace clew::program

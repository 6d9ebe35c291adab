// Random fills of existing tensors, and dropout, as C++ functions.
// May include: graph, base/generator.h.
// Invariant: a null generator means the default one.
#pragma once
#include <optional>

#include "base/generator.h"
#include "graph/budget.h"
#include "graph/op.h"

namespace clew {

// In place; recorded as a write that cuts the old history (its gradient is zero).
void uniform_(const Tensor& x, double from, double to, Generator* g);
void normal_(const Tensor& x, double mean, double std, Generator* g);
void bernoulli_(const Tensor& x, double p, Generator* g);
void bernoulli_(const Tensor& x, const Tensor& p, Generator* g);
// from <= number < to; without `to`, up to the largest number that the dtype holds exactly.
void random_(const Tensor& x, std::optional<int64_t> from, std::optional<int64_t> to, Generator* g);
void exponential_(const Tensor& x, double lambd, Generator* g);
void geometric_(const Tensor& x, double p, Generator* g);
void cauchy_(const Tensor& x, double median, double sigma, Generator* g);
void log_normal_(const Tensor& x, double mean, double std, Generator* g);
void fill_recorded_(const Tensor& x, const Scalar& value);
// A permutation of 0 .. n-1 into a fresh tensor.
Tensor randperm(int64_t n, DType dtype, Device device, Generator* g);
// Fills a fresh tensor with low <= number < high.
void fill_randint(const Tensor& fresh, int64_t low, int64_t high, Generator* g);

Tensor dropout(const Tensor& x, double p, bool training);

enum class Fill : uint8_t { value, normal, uniform };
// Made before a fresh tensor is filled, and told of it afterwards: in a memory budget it need not
// be kept for what is computed of it.
class NotedFresh {
  std::optional<NotedCall> call_;
  void begin(const Tensor& fresh, Fill fill, const Scalar& value, Generator* generator);

 public:
  NotedFresh(const Tensor& fresh, Fill fill, const Scalar& value, Generator* generator) {
    if (keeps_recipes()) [[unlikely]]
      begin(fresh, fill, value, generator);
  }
  void filled(const Tensor& fresh) {
    if (call_) [[unlikely]]
      call_->results({&fresh, 1});
  }
};

}  // namespace clew

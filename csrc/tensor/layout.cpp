// Orders of dims in memory.
// May include: base, tensor.
// Invariant: equal operands give equal strides, whatever the number of threads.
#include "tensor/layout.h"

#include <utility>
#include <vector>

namespace clew {

Dims ordered_strides(const Dims& sizes, std::span<const Tensor> operands) {
  const int n = sizes.size();
  std::vector<Dims> steps;
  steps.reserve(operands.size());
  for (const Tensor& t : operands) {
    if (t.sizes() == sizes)
      steps.push_back(t.strides());
    else
      steps.push_back(broadcast_strides(t.sizes(), t.strides(), sizes));
  }
  // Positive if dim a is outside dim b in memory; 0 if no operand decides.
  auto compare = [&](int64_t a, int64_t b) {
    const auto first = static_cast<int>(a), second = static_cast<int>(b);
    for (const Dims& step : steps) {
      if (step[first] == 0 || step[second] == 0) continue;
      if (step[first] != step[second]) return step[first] < step[second] ? -1 : 1;
      if (sizes[first] > sizes[second]) return 1;
    }
    return 0;
  };
  // Sorts the dims from the innermost outwards by insertion, because compare() need not be a total
  // order.
  Dims order(n);
  for (int i = 0; i < n; ++i) order[i] = n - 1 - i;
  for (int i = 1; i < n; ++i) {
    int at = i;
    for (int below = i - 1; below >= 0; --below) {
      const int c = compare(order[below], order[at]);
      if (c < 0) break;
      if (c == 0) continue;
      std::swap(order[below], order[at]);
      at = below;
    }
  }
  Dims strides(n);
  int64_t step = 1;
  for (int64_t d : order) {
    const auto dim = static_cast<int>(d);
    strides[dim] = step;
    step *= sizes[dim] > 1 ? sizes[dim] : 1;
  }
  return strides;
}

Dims kept_strides(const Tensor& x) {
  if (is_non_overlapping_and_dense(x.sizes(), x.strides())) return x.strides();
  return ordered_strides(x.sizes(), {&x, 1});
}

Dims channels_last_strides(const Dims& sizes) {
  Dims strides(sizes.size());
  int64_t step = 1;
  auto take = [&](int d) {
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  };
  take(1);
  for (int d = sizes.size() - 1; d > 1; --d) take(d);
  take(0);
  return strides;
}

Tensor dense(const Tensor& x, bool last) {
  if (!last) return dense(x);
  const Dims strides = channels_last_strides(x.sizes());
  if (x.strides() == strides) return x;
  Tensor copy = empty_strided(x.sizes(), strides, x.dtype());
  copy_into(copy, x);
  return copy;
}

bool has_channels_last(const Tensor& x) {
  const int n = x.ndim();
  if ((n != 4 && n != 5) || x.stride(1) == 0) return false;
  int64_t least = 0;
  auto lies_outside = [&](int d) {
    if (x.size(d) == 0 || x.stride(d) < least) return false;
    if (d == 0 && least == x.stride(1)) return false;  // all but the batch have one element
    least = x.stride(d) * (x.size(d) > 1 ? x.size(d) : 1);
    return true;
  };
  if (!lies_outside(1)) return false;
  for (int d = n - 1; d > 1; --d)
    if (!lies_outside(d)) return false;
  return lies_outside(0);
}

std::optional<Dims> format_strides(const Tensor& x, const Dims& sizes) {
  if (x.ndim() != sizes.size() || x.is_contiguous() || !has_channels_last(x)) return {};
  return channels_last_strides(sizes);
}

}  // namespace clew

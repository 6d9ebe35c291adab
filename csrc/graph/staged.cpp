// Factors of several matrix products that become one: their rows, one below the other.
// May include: base, graph/op.h.
// Invariant: what is appended is copied; it is multiplied once, by the engine.
#include <cstring>

#include "graph/op.h"

namespace clew {

bool Staged::append(const Tensor& a, int64_t n, const Tensor& b, int64_t k) {
  const int64_t count = k ? b.numel() / k : 0;
  if (count == 0 || count > 16 || a.numel() != count * n || n == 0 || !a.is_contiguous() ||
      !b.is_contiguous())
    return false;
  if (!left) {
    left = empty({capacity, n}, a.dtype());
    right = empty({capacity, k}, b.dtype());
  }
  const auto add = [&](const Tensor& all, const Tensor& t, int64_t width) {
    const size_t row = static_cast<size_t>(width) * itemsize(t.dtype());
    std::memcpy(all.data<char>() + static_cast<size_t>(rows) * row, t.data<char>(),
                static_cast<size_t>(count) * row);
  };
  add(left, a, n);
  add(right, b, k);
  rows += count;
  return true;
}

}  // namespace clew

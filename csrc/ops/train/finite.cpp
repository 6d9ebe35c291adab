// Whether a tensor holds NaN or infinity, in one pass over its memory.
// May include: ops, kernels.
// Invariant: each element is looked at once; elements shown several times (stride 0) too.
#include <atomic>
#include <cmath>

#include "base/parallel.h"
#include "kernels/train/gradients.h"
#include "ops/calls/finite.h"
#include "tensor/kernel_frame.h"

namespace clew {

static NonFinite kind_of(double greatest) {
  return std::isnan(greatest)   ? NonFinite::nan
         : std::isinf(greatest) ? NonFinite::infinity
                                : NonFinite::none;
}

NonFinite non_finite(const Tensor& t) {
  Tensor seen = t;
  if (!t.is_contiguous()) {
    Dims sizes = t.sizes();
    for (int i = 0; i < t.ndim(); ++i)
      if (t.stride(i) == 0 && sizes[i] > 1) sizes[i] = 1;
    seen = alias(t, sizes, t.strides());
    if (!is_non_overlapping_and_dense(sizes, t.strides())) {
      Tensor dense = empty(sizes, t.dtype());
      copy_into(dense, seen);
      seen = dense;
    }
  }
  DType d = real_of(seen.dtype());
  int64_t n = seen.numel() * (seen.is_complex() ? 2 : 1);
  const auto& loops = kernels::gradient_loops(d);
  const char* data = seen->address();
  if (n <= grain_default) return kind_of(loops.greatest(data, n));
  auto step = static_cast<int64_t>(itemsize(d));
  std::atomic<int> worst{0};
  const Held held{seen};
  parallel_for(n, grain_default, [&](int64_t from, int64_t to) {
    int found = static_cast<int>(kind_of(loops.greatest(data + from * step, to - from)));
    for (int before = worst.load(); before < found && !worst.compare_exchange_weak(before, found);)
      ;
  });
  return static_cast<NonFinite>(worst.load());
}

}  // namespace clew

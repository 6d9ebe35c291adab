// The networks of exchanges that sort short lines.
// May include: base, kernels/sort.
// Invariant: a network is made once and stays until the process has ended, also for threads that
// still sort then.
#include "kernels/sort/short_lines.h"

#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <vector>

namespace clew::kernels {

static std::vector<Exchange> made_exchanges(int64_t n) {
  std::vector<Exchange> list;
  const auto top = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)) / 2);
  for (int64_t p = top; p > 0; p /= 2) {
    for (int64_t q = top, r = 0, d = p;; d = q - p, q /= 2, r = p) {
      for (int64_t i = 0; i + d < n; ++i)
        if ((i & p) == r) list.push_back({static_cast<uint8_t>(i), static_cast<uint8_t>(i + d)});
      if (q == p) break;
    }
  }
  return list;
}

// Not std::call_once: its thread-local variables are the standard library's, which has no room for
// them in processes that have loaded it otherwise before.
std::span<const Exchange> exchanges_for(int64_t n) {
  using Network = std::atomic<const std::vector<Exchange>*>;
  static auto& networks = *new std::array<Network, side_by_side_most + 1>();
  Network& own = networks[static_cast<size_t>(n)];
  const std::vector<Exchange>* known = own.load(std::memory_order_acquire);
  if (known) return *known;
  auto made = std::make_unique<const std::vector<Exchange>>(made_exchanges(n));
  if (own.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel))
    known = made.release();
  return *known;
}

}  // namespace clew::kernels

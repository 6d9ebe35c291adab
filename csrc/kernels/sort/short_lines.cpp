// The networks of exchanges that sort short lines.
// May include: base, kernels/sort.
// Invariant: a network is made once and stays until the process has ended, also for threads that
// still sort then.
#include "kernels/sort/short_lines.h"

#include <bit>
#include <mutex>
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

std::span<const Exchange> exchanges_for(int64_t n) {
  struct Network {
    std::once_flag once;
    std::vector<Exchange> list;
  };
  static auto& networks = *new std::array<Network, side_by_side_most + 1>;
  Network& own = networks[static_cast<size_t>(n)];
  std::call_once(own.once, [&] { own.list = made_exchanges(n); });
  return own.list;
}

}  // namespace clew::kernels

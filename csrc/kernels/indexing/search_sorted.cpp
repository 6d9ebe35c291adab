// Places of values in sorted rows.
// May include: base, kernels.
// Invariant: NaN sorts after everything.
#include "base/long_work.h"
#include "base/read_once.h"
#include "kernels/indexing/index.h"

namespace clew::kernels {

namespace {

template <class T> bool before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return (a < b) | ((b != b) & (a == a));
  else
    return a < b;
}

constexpr int64_t side_by_side = 8;  // searches that wait for memory together

// low[q] = the first place whose element does not come before values[q] (`right`: comes after it),
// for `count` searches in at(0) ... at(length - 1). No branch depends on the data: half of such
// branches would be mispredicted.
template <bool right, class T, class At>
void search(const T* values, int64_t count, int64_t length, At&& at, int64_t* low) {
  using C = compute_t<T>;
  C want[side_by_side];
  for (int64_t q = 0; q < side_by_side; ++q) {
    want[q] = static_cast<C>(values[q < count ? q : 0]);
    low[q] = 0;
  }
  auto further = [&](int64_t q, int64_t place) {
    const C here = at(place);
    return right ? !before(want[q], here) : before(here, want[q]);
  };
  int64_t left = length;
  while (left > 1) {
    const int64_t half = left / 2;
    for (int64_t q = 0; q < side_by_side; ++q)
      low[q] += half & -int64_t{further(q, low[q] + half - 1)};
    left -= half;
  }
  for (int64_t q = 0; left == 1 && q < side_by_side; ++q) low[q] += further(q, low[q]);
}

}  // namespace

void search_sorted(const NdView& sorted, const int64_t* sorter, const NdView& values,
                   const NdView& out, bool right) {
  const LongWork work(values.numel());
  const int64_t length = sorted.sizes[sorted.ndim - 1];
  const int64_t per_row = values.ndim ? values.sizes[values.ndim - 1] : 1;
  const bool shared = sorted.ndim == 1;
  const auto last = static_cast<uint64_t>(length - 1);
  dispatch(sorted.dtype, RealTypes{}, [&]<class T>() {
    using C = compute_t<T>;
    const T* rows = sorted.ptr<const T>();
    const T* v = values.ptr<const T>();
    parallel_for(values.numel(), 2048, [&](int64_t begin, int64_t end) {
      int64_t low[side_by_side];
      for (int64_t i = begin; i < end;) {
        const int64_t in_row = shared ? end - i : per_row - i % per_row;
        const int64_t count = std::min({side_by_side, end - i, in_row});
        const int64_t base = shared ? 0 : i / per_row * length;
        auto run = [&](auto&& at) {
          if (right)
            search<true>(v + i, count, length, at, low);
          else
            search<false>(v + i, count, length, at, low);
        };
        // A sorter out of range was refused before, unless another thread writes to it meanwhile.
        if (sorter)
          run([=](int64_t k) {
            const auto place = static_cast<uint64_t>(read_once(sorter[base + k]));
            return static_cast<C>(rows[base + static_cast<int64_t>(std::min(place, last))]);
          });
        else
          run([=](int64_t k) { return static_cast<C>(rows[base + k]); });
        for (int64_t q = 0; q < count; ++q) {
          if (out.dtype == DType::Int32)
            out.ptr<int32_t>()[i + q] = static_cast<int32_t>(low[q]);
          else
            out.ptr<int64_t>()[i + q] = low[q];
        }
        i += count;
      }
    });
  });
}

}  // namespace clew::kernels

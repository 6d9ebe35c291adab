// Whether indices lie in range, and indices as offsets.
// May include: base, kernels.
// Invariant: the index that is named as bad is the first in row-major order, however many threads.
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/read_once.h"
#include "kernels/core/index_walk.h"
#include "kernels/indexing/index.h"

namespace clew::kernels {

namespace {

// The indices without those that broadcasting repeats: broadcast dims get size 1.
struct Distinct {
  Dims sizes;
  NdView view;
  explicit Distinct(const NdView& v) : sizes(v.sizes, v.ndim), view(v) {
    for (int d = 0; d < v.ndim; ++d)
      if (v.strides[d] == 0 && sizes[d] > 1) sizes[d] = 1;
    view.sizes = sizes.data();
  }
  Distinct(const Distinct&) = delete;
  Distinct& operator=(const Distinct&) = delete;
};

constexpr int64_t limit = int64_t{1} << 62;

// Whether low <= p[j * step] <= high; both are less than the limit from zero. Signs are gathered
// instead of comparisons, which vectors of 64 bits have no instruction for on older processors: one
// of the differences is negative if the index is out of range, wrapped around or not.
bool all_between(const int64_t* p, int64_t n, int64_t step, int64_t low, int64_t high) {
  uint64_t outside = 0;
  auto add = [&](int64_t at) {
    auto i = static_cast<uint64_t>(at);
    outside |= (i - static_cast<uint64_t>(low)) | (static_cast<uint64_t>(high) - i);
  };
  if (step == 1)
    for (int64_t j = 0; j < n; ++j) add(p[j]);
  else
    for (int64_t j = 0; j < n; ++j) add(p[j * step]);
  return static_cast<int64_t>(outside) >= 0;
}

bool all_in_range(const NdView& index, int64_t least, int64_t size) {
  if (size >= limit) return false;
  Distinct distinct(index);
  Runs runs(distinct.view);
  const auto* at = index.ptr<const int64_t>();
  std::atomic<bool> ok = true;
  parallel_for(distinct.view.numel(), grain_default, [&](int64_t begin, int64_t end) {
    runs.each(begin, end, [&](int64_t, int64_t offset, int64_t n) {
      if (!all_between(at + offset, n, runs.step(), least, size - 1)) ok = false;
    });
  });
  return ok;
}

}  // namespace

int64_t find_bad_index(const NdView& index, int64_t size, bool negative) {
  int64_t n = index.numel();
  int64_t least = negative ? -size : 0;
  if (n == 0) return -1;
  // Short vectors, which are common, need no plan.
  bool brief = index.ndim == 1 && n < grain_default && size < limit;
  if (brief ? all_between(index.ptr<const int64_t>(), n, index.strides[0], least, size - 1)
            : all_in_range(index, least, size))
    return -1;
  const auto* at = index.ptr<const int64_t>();
  const int64_t* strides[1] = {index.strides};
  Walk<1> walk(index.sizes, index.ndim, strides);
  for (int64_t k = 0; k < n; ++k, walk.next()) {
    int64_t i = at[walk.offset[0]];
    if (i < least || i >= size) return k;
  }
  return -1;
}

namespace {

// Calls put(k, index) for every index that lies in [least, size), each read once.
template <class F>
BadIndex each_checked(const NdView& index, int64_t least, int64_t size, F&& put) {
  Runs runs(index);
  const auto* at = index.ptr<const int64_t>();
  std::mutex mutex;
  BadIndex first;
  parallel_for(index.numel(), grain_default, [&](int64_t begin, int64_t end) {
    runs.each(begin, end, [&](int64_t k, int64_t offset, int64_t n) {
      const int64_t* from = at + offset;
      for (int64_t j = 0; j < n; ++j) {
        const int64_t i = read_once(from[j * runs.step()]);
        if (i >= least && i < size) {
          put(k + j, i);
          continue;
        }
        const std::lock_guard lock(mutex);
        if (!first || k + j < first.at) first = {k + j, i};
        return;
      }
    });
  });
  return first;
}

}  // namespace

BadIndex add_offsets(int64_t* out, const NdView& index, int64_t size, int64_t stride) {
  return each_checked(index, -size, size,
                      [=](int64_t k, int64_t i) { out[k] += (i + (size & (i >> 63))) * stride; });
}

BadIndex copy_indices(int64_t* out, const NdView& index, int64_t size) {
  Runs runs(index);
  const auto* at = index.ptr<const int64_t>();
  const int64_t count = index.numel(), one = 1;
  parallel_for(count, grain_default, [&](int64_t begin, int64_t end) {
    runs.each(begin, end, [&](int64_t k, int64_t offset, int64_t n) {
      if (runs.step() == 1)
        std::memcpy(out + k, at + offset, static_cast<size_t>(n) * sizeof(int64_t));
      else
        for (int64_t j = 0; j < n; ++j) out[k + j] = at[offset + j * runs.step()];
    });
  });
  const int64_t bad =
      find_bad_index({reinterpret_cast<char*>(out), &count, &one, 1, DType::Int64}, size, false);
  return bad < 0 ? BadIndex{} : BadIndex{bad, out[bad]};
}

int64_t index_value(const NdView& index, int64_t k) {
  const int64_t* strides[1] = {index.strides};
  Walk<1> walk(index.sizes, index.ndim, strides);
  walk.seek(k);
  return index.ptr<const int64_t>()[walk.offset[0]];
}

}  // namespace clew::kernels

// Walking over several strided arrays of equal sizes at once, element or row at a time.
// May include: base, base/ndview.h.
// Invariant: a walk visits positions in row-major order; its offsets are always those of the
// current position.
#pragma once
#include <algorithm>

#include "base/ndview.h"

namespace clew::kernels {

template <int N> class Walk {
  Dims sizes_;
  Dims strides_[N];
  Dims at_;

 public:
  int64_t offset[N] = {};

  Walk() = default;
  // The first ndim dims of these sizes; strides[k] belongs to array k.
  Walk(const int64_t* sizes, int ndim, const int64_t* const (&strides)[N]) {
    for (int d = 0; d < ndim; ++d) add(sizes, strides, d);
  }
  void add(const int64_t* sizes, const int64_t* const (&strides)[N], int d) {
    if (sizes[d] == 1) return;
    sizes_.push_back(sizes[d]);
    for (int k = 0; k < N; ++k) strides_[k].push_back(strides[k][d]);
    at_.push_back(0);
  }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t s : sizes_) n *= s;
    return n;
  }
  void seek(int64_t i) {
    for (int k = 0; k < N; ++k) offset[k] = 0;
    for (int d = sizes_.size() - 1; d >= 0; --d) {
      at_[d] = i % sizes_[d];
      i /= sizes_[d];
      for (int k = 0; k < N; ++k) offset[k] += at_[d] * strides_[k][d];
    }
  }
  void next() {
    for (int d = sizes_.size() - 1; d >= 0; --d) {
      for (int k = 0; k < N; ++k) offset[k] += strides_[k][d];
      if (++at_[d] < sizes_[d]) return;
      at_[d] = 0;
      for (int k = 0; k < N; ++k) offset[k] -= sizes_[d] * strides_[k][d];
    }
  }
  // f(offsets, i) for the steps i from begin to end. Offsets stay in registers where f, which is
  // inlined, writes to memory that could be the walk's own.
  template <class F> [[gnu::always_inline]] inline void each(int64_t begin, int64_t end, F&& f) {
    seek(begin);
    const int last = sizes_.size() - 1;
    for (int64_t i = begin; i < end; next()) {
      const int64_t left = last < 0 ? 1 : sizes_[last] - at_[last];
      const int64_t stop = std::min(end, i + left);
      int64_t at[N], step[N];
      for (int k = 0; k < N; ++k) {
        at[k] = offset[k];
        step[k] = last < 0 ? 0 : strides_[k][last];
        offset[k] += (stop - i - 1) * step[k];
      }
      if (last >= 0) at_[last] += stop - i - 1;
      for (; i < stop; ++i) {
        f(at, i);
        for (int k = 0; k < N; ++k) at[k] += step[k];
      }
    }
  }
};

// The elements of one array in row-major order, as runs of equal steps: neighbouring dims are
// joined where memory allows.
class Runs {
  Walk<1> outer_;
  int64_t length_ = 1;
  int64_t step_ = 1;

 public:
  explicit Runs(const NdView& v) {
    Dims sizes;
    Dims strides;
    for (int d = 0; d < v.ndim; ++d) {
      if (v.sizes[d] == 1) continue;
      int last = sizes.size() - 1;
      if (last >= 0 && strides[last] == v.sizes[d] * v.strides[d]) {
        sizes[last] *= v.sizes[d];
        strides[last] = v.strides[d];
      } else {
        sizes.push_back(v.sizes[d]);
        strides.push_back(v.strides[d]);
      }
    }
    if (sizes.empty()) return;
    int last = sizes.size() - 1;
    length_ = sizes[last];
    step_ = strides[last];
    const int64_t* outer[1] = {strides.data()};
    outer_ = Walk<1>(sizes.data(), last, outer);
  }
  // Between the elements of a run.
  int64_t step() const { return step_; }
  // f(position, offset, count) for the elements at positions [begin, end).
  template <class F> void each(int64_t begin, int64_t end, F&& f) const {
    if (begin >= end) return;
    Walk<1> walk = outer_;
    walk.seek(begin / length_);
    for (int64_t at = begin, j = begin % length_; at < end; j = 0, walk.next()) {
      int64_t count = std::min(length_ - j, end - at);
      f(at, walk.offset[0] + j * step_, count);
      at += count;
    }
  }
};

struct Bytes16 {
  uint64_t half[2];
};
// Calls f.operator()<T>() with a plain type as large as an element.
template <class F> void dispatch_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1: f.template operator()<uint8_t>(); break;
    case 2: f.template operator()<uint16_t>(); break;
    case 4: f.template operator()<uint32_t>(); break;
    case 8: f.template operator()<uint64_t>(); break;
    default: f.template operator()<Bytes16>(); break;
  }
}

}  // namespace clew::kernels

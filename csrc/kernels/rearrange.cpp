// Reordering loops.
// May include: base, kernels.
// Invariant: rows are independent, so any split over threads gives the same result.
#include "kernels/rearrange.h"

#include "kernels/index_walk.h"
#include "kernels/stream.h"

namespace clew::kernels {

// d[j] = s[n - 1 - j], blocks of elements at a time.
template <class T> static void copy_reversed(T* d, const T* s, int64_t n) {
  constexpr int block = 16;
  int64_t j = 0;
  for (; j + block <= n; j += block) {
    T tmp[block];
    std::memcpy(static_cast<void*>(tmp), s + n - j - block, sizeof tmp);
    std::reverse(tmp, tmp + block);
    std::memcpy(static_cast<void*>(d + j), tmp, sizeof tmp);
  }
  for (; j < n; ++j) d[j] = s[n - 1 - j];
}

// Calls f(to, from, r) for all rows of two views with the same sizes.
template <class T, class F> static void for_rows(const NdView& dst, const NdView& src, F&& f) {
  const int last = dst.ndim - 1;
  const int64_t inner = dst.sizes[last];
  const int64_t* strides[2] = {dst.strides, src.strides};
  parallel_for(dst.numel() / inner, std::max<int64_t>(1, grain_default / inner),
               [&](int64_t begin, int64_t end) {
                 Walk<2> walk(dst.sizes, last, strides);
                 walk.seek(begin);
                 for (int64_t r = begin; r < end; ++r, walk.next())
                   f(dst.ptr<T>() + walk.offset[0], src.ptr<const T>() + walk.offset[1], r);
               });
}

void copy_signed(const NdView& dst, const NdView& src) {
  int64_t n = dst.numel();
  if (n == 0) return;
  int last = dst.ndim - 1;
  dispatch_size(itemsize(dst.dtype), [&]<class T>() {
    if (last < 0) {
      *dst.ptr<T>() = *src.ptr<const T>();
      return;
    }
    int64_t inner = dst.sizes[last];
    int64_t sd = dst.strides[last];
    int64_t ss = src.strides[last];
    for_rows<T>(dst, src, [=](T* d, const T* s, int64_t) {
      if (sd == 1 && ss == 1)
        copy_bytes(d, s, sizeof(T) * static_cast<size_t>(inner));
      else if (sd == 1 && ss == -1)
        copy_reversed(d, s - (inner - 1), inner);
      else
        for (int64_t j = 0; j < inner; ++j) d[j * sd] = s[j * ss];
    });
  });
}

void triangle(const NdView& dst, const NdView& src, int64_t diagonal, bool lower) {
  int64_t n = dst.numel();
  if (n == 0) return;
  int last = dst.ndim - 1;
  int64_t rows = dst.sizes[last - 1];
  int64_t columns = dst.sizes[last];
  int64_t sd = dst.strides[last];
  int64_t ss = src.strides[last];
  diagonal = std::clamp(diagonal, -rows - 1, columns + 1);
  dispatch_size(itemsize(dst.dtype), [&]<class T>() {
    for_rows<T>(dst, src, [=](T* d, const T* s, int64_t r) {
      const int64_t edge = std::clamp<int64_t>(r % rows + diagonal + (lower ? 1 : 0), 0, columns);
      const int64_t first = lower ? 0 : edge, stop = lower ? edge : columns;
      for (int64_t j = 0; j < first; ++j) d[j * sd] = T{};
      for (int64_t j = first; j < stop; ++j) d[j * sd] = s[j * ss];
      for (int64_t j = stop; j < columns; ++j) d[j * sd] = T{};
    });
  });
}

}  // namespace clew::kernels

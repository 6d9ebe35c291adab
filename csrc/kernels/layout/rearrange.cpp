// Reordering loops.
// May include: base, kernels.
// Invariant: rows are independent, so any split over threads gives the same result.
#include "kernels/layout/rearrange.h"

#include <algorithm>

#include "kernels/core/index_walk.h"
#include "kernels/core/instruction_set.h"
#include "kernels/core/stream.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(void reverse_row(void* to, const void* s, int64_t n, size_t item);)

// to[n - 1 - j] = s[j].
template <class T> static void reverse_piece(T* to, const T* s, int64_t n) {
  if constexpr (sizeof(T) <= 8)
    CLEW_CHOSEN(reverse_row)(to, s, n, sizeof(T));
  else
    std::reverse_copy(s, s + n, to);
}
// Calls f(to, from, r) for all rows of two views with the same sizes.
template <class T, class F> static void for_rows(const NdView& dst, const NdView& src, F&& f) {
  const int last = dst.ndim - 1;
  const int64_t inner = dst.sizes[last];
  const int64_t* strides[2] = {dst.strides, src.strides};
  parallel_for(dst.numel() / inner, std::max<int64_t>(1, grain_default / inner),
               [&](int64_t begin, int64_t end) {
                 T* to = dst.ptr<T>();
                 const T* from = src.ptr<const T>();
                 Walk<2>(dst.sizes, last, strides).each(begin, end, [&](const auto& at, int64_t r) {
                   f(to + at[0], from + at[1], r);
                 });
               });
}

void copy_signed(const NdView& to, const NdView& from) {
  int64_t n = to.numel();
  if (n == 0) return;
  int last = to.ndim - 1;
  NdView dst = to, src = from;
  // As the written elements lie in memory.
  Dims order;
  for (int d = 0; d < to.ndim; ++d) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const bool one = to.sizes[a] == 1, other = to.sizes[b] == 1;
    return one != other ? one : !one && to.strides[a] > to.strides[b];
  });
  Dims sizes, strides[2];
  for (int64_t d : order) {
    sizes.push_back(to.sizes[d]);
    strides[0].push_back(to.strides[d]);
    strides[1].push_back(from.strides[d]);
  }
  // Dims that are turned as one are one, such as the rows and columns of images.
  while (last > 0 && strides[0][last - 1] == strides[0][last] * sizes[last] &&
         strides[1][last - 1] == strides[1][last] * sizes[last]) {
    sizes[last - 1] *= sizes[last];
    for (Dims* dims : {&strides[0], &strides[1]}) (*dims)[last - 1] = (*dims)[last];
    for (Dims* dims : {&sizes, &strides[0], &strides[1]}) dims->pop_back();
    --last;
  }
  dst.ndim = src.ndim = sizes.size();
  dst.sizes = src.sizes = sizes.data();
  for (int d = 0; d < last; ++d) {
    if (strides[1][d] >= 0) continue;
    for (NdView* v : {&dst, &src}) {
      int64_t& step = strides[v == &src][d];
      v->data += (v->sizes[d] - 1) * step * static_cast<int64_t>(itemsize(v->dtype));
      step = -step;
    }
  }
  dst.strides = strides[0].data();
  src.strides = strides[1].data();
  dispatch_size(itemsize(dst.dtype), [&]<class T>() {
    if (last < 0) {
      *dst.ptr<T>() = *src.ptr<const T>();
      return;
    }
    int64_t inner = dst.sizes[last];
    int64_t sd = dst.strides[last];
    int64_t ss = src.strides[last];
    if (last == 0 && sd == 1 && ss == -1) {  // one row, of which each thread turns a piece
      T* to_row = dst.ptr<T>();
      const T* from_row = src.ptr<const T>() - (inner - 1);
      return parallel_for(inner, grain_default, [=](int64_t begin, int64_t end) {
        reverse_piece(to_row + inner - end, from_row + begin, end - begin);
      });
    }
    for_rows<T>(dst, src, [=](T* d, const T* s, int64_t) {
      if (sd == 1 && ss == 1)
        copy_bytes(d, s, sizeof(T) * static_cast<size_t>(inner));
      else if (sd == 1 && ss == -1)
        reverse_piece(d, s - (inner - 1), inner);
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
      if (sd == 1 && ss == 1) {
        std::fill_n(d, first, T{});
        if (d != s && first < stop)
          std::memcpy(d + first, s + first, sizeof(T) * static_cast<size_t>(stop - first));
        return static_cast<void>(std::fill(d + stop, d + columns, T{}));
      }
      for (int64_t j = 0; j < first; ++j) d[j * sd] = T{};
      for (int64_t j = first; d != s && j < stop; ++j) d[j * sd] = s[j * ss];  // or in place
      for (int64_t j = stop; j < columns; ++j) d[j * sd] = T{};
    });
  });
}

}  // namespace clew::kernels

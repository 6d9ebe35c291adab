// Finding elements: nonzero ones, those under a mask.
// May include: base, kernels.
// Invariant: results come in row-major order.
#include <cmath>

#include "kernels/index.h"
#include "kernels/index_walk.h"

namespace clew::kernels {

namespace {

template <class T> bool is_nonzero(const T& v) {
  if constexpr (is_complex_v<T>)
    return v.real() != 0 || v.imag() != 0;
  else
    return static_cast<compute_t<T>>(v) != compute_t<T>(0);
}

}  // namespace

int64_t count_nonzero(const NdView& x) {
  int64_t count = 0;
  int64_t n = x.numel();
  dispatch(as_signed(x.dtype), PlainTypes{}, [&]<class T>() {
    const T* p = x.ptr<const T>();
    if (x.contiguous()) {
      for (int64_t i = 0; i < n; ++i) count += is_nonzero(p[i]);
      return;
    }
    const int64_t* strides[1] = {x.strides};
    Walk<1> walk(x.sizes, x.ndim, strides);
    for (int64_t i = 0; i < n; ++i, walk.next()) count += is_nonzero(p[walk.offset[0]]);
  });
  return count;
}

void nonzero(const NdView& x, int64_t* out, int64_t row_step, int64_t column_step) {
  int64_t n = x.numel();
  int ndim = x.ndim;
  if (n == 0 || ndim == 0) return;
  Dims at(ndim, 0);
  dispatch(as_signed(x.dtype), PlainTypes{}, [&]<class T>() {
    const int64_t* strides[1] = {x.strides};
    Walk<1> walk(x.sizes, ndim - 1, strides);
    int64_t inner = x.sizes[ndim - 1];
    int64_t step = x.strides[ndim - 1];
    for (int64_t rows = n / inner; rows > 0; --rows, walk.next()) {
      const T* p = x.ptr<const T>() + walk.offset[0];
      for (int64_t j = 0; j < inner; ++j) {
        if (!is_nonzero(p[j * step])) continue;
        for (int d = 0; d + 1 < ndim; ++d) out[d * column_step] = at[d];
        out[(ndim - 1) * column_step] = j;
        out += row_step;
      }
      for (int d = ndim - 2; d >= 0; --d) {
        if (++at[d] < x.sizes[d]) break;
        at[d] = 0;
      }
    }
  });
}

void nonzero_flat(const NdView& x, int64_t* out) {
  int64_t n = x.numel();
  dispatch(as_signed(x.dtype), PlainTypes{}, [&]<class T>() {
    const T* p = x.ptr<const T>();
    if (x.contiguous()) {
      for (int64_t i = 0; i < n; ++i) {
        if (is_nonzero(p[i])) *out++ = i;
      }
      return;
    }
    const int64_t* strides[1] = {x.strides};
    Walk<1> walk(x.sizes, x.ndim, strides);
    for (int64_t i = 0; i < n; ++i, walk.next()) {
      if (is_nonzero(p[walk.offset[0]])) *out++ = i;
    }
  });
}

}  // namespace clew::kernels

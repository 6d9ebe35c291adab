// Finding elements: nonzero ones, those under a mask, places in sorted rows.
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

// NaN sorts after everything.
template <class T> bool before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a < b || (b != b && a == a);
  else
    return a < b;
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

void search_sorted(const NdView& sorted, const int64_t* sorter, const NdView& values,
                   const NdView& out, bool right) {
  int64_t length = sorted.sizes[sorted.ndim - 1];
  int64_t per_row = values.ndim ? values.sizes[values.ndim - 1] : 1;
  bool shared = sorted.ndim == 1;
  int64_t n = values.numel();
  dispatch(sorted.dtype, RealTypes{}, [&]<class T>() {
    using C = compute_t<T>;
    const T* rows = sorted.ptr<const T>();
    const T* v = values.ptr<const T>();
    parallel_for(n, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t base = shared ? 0 : i / per_row * length;
        C want = static_cast<C>(v[i]);
        int64_t low = 0;
        int64_t high = length;
        while (low < high) {
          int64_t mid = low + (high - low) / 2;
          // A sorter out of range was refused before; this only reads.
          C here = static_cast<C>(rows[base + (sorter ? sorter[base + mid] : mid)]);
          bool further = right ? !before(want, here) : before(here, want);
          if (further)
            low = mid + 1;
          else
            high = mid;
        }
        if (out.dtype == DType::Int32)
          out.ptr<int32_t>()[i] = static_cast<int32_t>(low);
        else
          out.ptr<int64_t>()[i] = low;
      }
    });
  });
}

}  // namespace clew::kernels

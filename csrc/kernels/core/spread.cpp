// spread(): small broadcast or strided operands laid out as dense rows.
// May include: base, kernels.
// Invariant: exactly the target's elements are written, in the order of its indices.
#include "kernels/core/spread.h"

#include <complex>
#include <cstring>

#include "kernels/core/loop_tables.h"

namespace clew::kernels {

namespace {

struct Axis {
  int64_t size;
  int64_t step;  // in elements
};

// Axis 0 is the outermost.
template <class T> void lay(const T* from, const Axis* axes, int count, T* to) {
  if (count == 0) {
    *to = *from;
    return;
  }
  const Axis& last = axes[count - 1];
  int64_t index[spread_dims] = {};
  while (true) {
    if (last.step == 0) {
      const T value = *from;
      for (int64_t i = 0; i < last.size; ++i) to[i] = value;
    } else if (last.step == 1) {
      for (int64_t i = 0; i < last.size; ++i) to[i] = from[i];
    } else {
      for (int64_t i = 0; i < last.size; ++i) to[i] = from[i * last.step];
    }
    to += last.size;
    int d = count - 2;
    for (; d >= 0; --d) {
      from += axes[d].step;
      if (++index[d] < axes[d].size) break;
      from -= axes[d].size * axes[d].step;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

// Copies of the first `block` elements until there are `want` blocks.
template <class T> void repeat_block(T* to, int64_t block, int64_t want) {
  for (int64_t have = 1; have < want; have *= 2)
    std::memcpy(to + have * block, to,
                static_cast<size_t>(std::min(have, want - have) * block) * sizeof(T));
}

// A vector in every row of a matrix.
template <class T> bool spread_row(const NdView& from, const int64_t* sizes, int ndim, T* to) {
  if (ndim != 2 || from.ndim != 1 || from.sizes[0] != sizes[1] || from.strides[0] != 1)
    return false;
  const T* row = from.ptr<const T>();
  for (int64_t i = 0; i < sizes[1]; ++i) to[i] = row[i];
  repeat_block(to, sizes[1], sizes[0]);
  return true;
}

template <class T>
void spread_items(const NdView& from, const int64_t* sizes, int ndim, char* bytes) {
  auto* to = reinterpret_cast<T*>(bytes);
  if (spread_row(from, sizes, ndim, to)) return;
  Axis axes[spread_dims];
  int count = 0;
  const int lead = ndim - from.ndim;
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == 1) continue;
    const int64_t step = d < lead || from.sizes[d - lead] == 1 ? 0 : from.strides[d - lead];
    if (count && axes[count - 1].step == step * sizes[d])
      axes[count - 1] = {axes[count - 1].size * sizes[d], step};
    else
      axes[count++] = {sizes[d], step};
  }
  const bool repeated = count > 1 && axes[0].step == 0;
  lay(from.ptr<const T>(), axes + repeated, count - repeated, to);
  if (!repeated) return;
  int64_t block = 1;
  for (int k = 1; k < count; ++k) block *= axes[k].size;
  repeat_block(to, block, axes[0].size);
}

void spread_as_it_is(const NdView& from, const int64_t* sizes, int ndim, char* to) {
  switch (itemsize(from.dtype)) {
    case 1: return spread_items<uint8_t>(from, sizes, ndim, to);
    case 2: return spread_items<uint16_t>(from, sizes, ndim, to);
    case 4: return spread_items<uint32_t>(from, sizes, ndim, to);
    case 8: return spread_items<uint64_t>(from, sizes, ndim, to);
    default: return spread_items<std::complex<double>>(from, sizes, ndim, to);
  }
}

}  // namespace

void spread(const NdView& from, const int64_t* sizes, int ndim, DType dtype, char* to) {
  if (from.dtype == dtype) return spread_as_it_is(from, sizes, ndim, to);
  // Converted first, then repeated.
  alignas(16) char dense[2][spread_elements * 16];
  const int64_t n = from.numel();
  const bool fits = from.contiguous();
  if (!fits) spread_as_it_is(from, from.sizes, from.ndim, dense[0]);
  char* const data[2] = {dense[1], fits ? from.data : dense[0]};
  const int64_t steps[2] = {static_cast<int64_t>(itemsize(dtype)),
                            static_cast<int64_t>(itemsize(from.dtype))};
  cast_loop_of(from.dtype, dtype)(data, steps, n, nullptr);
  int64_t strides[spread_dims];
  for (int64_t d = from.ndim - 1, step = 1; d >= 0; step *= from.sizes[d--]) strides[d] = step;
  spread_as_it_is({dense[1], from.sizes, strides, from.ndim, dtype}, sizes, ndim, to);
}

}  // namespace clew::kernels

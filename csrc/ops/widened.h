// 16-bit floats for kernels without loops of their own for them: computed in float32, rounded once.
// May include: tensor, kernels.
// Invariant: other dtypes pass through untouched.
#pragma once
#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/core/loop_tables.h"
#include "tensor/tensor.h"

namespace clew {

// A float32 copy of a float16 tensor: copying converts in vectors, while loops over float16 would
// call a library function for each element.
inline Tensor widened(const Tensor& x) {
  return x.dtype() == DType::Float16 ? dense_copy(x, DType::Float32) : x;
}
// Calls run(to) with out itself or, for float16, with a float32 tensor that is copied to out after.
template <class F> void through_floats(const Tensor& out, F&& run) {
  if (out.dtype() != DType::Float16) return run(out);
  Tensor wide = empty(out.sizes(), DType::Float32);
  run(wide);
  copy_into(out, wide);
}

// For kernels that only test elements for zero: converts tensors of stored dtypes to bool.
inline Tensor for_zeros(const Tensor& x) {
  return is_stored(x.dtype()) ? dense_copy(x, DType::Bool) : x;
}

inline const LocalScratch half_rooms[2];
// Calls f(to, from, first, count) for pieces of the rows of x, which is contiguous and 16-bit.
// `from` has `count` rows from row `first` of x on, as float32; f writes as many rows to `to`,
// which are rounded into y. Pieces stay in the cache, and f runs on several threads.
template <class F>
void in_float_rows(const Tensor& y, const Tensor& x, int64_t rows, int64_t width, F&& f) {
  if (rows == 0 || width == 0) return;
  const auto widen = kernels::cast_loop_of(x.dtype(), DType::Float32);
  const auto narrow = kernels::cast_loop_of(DType::Float32, y.dtype());
  const int64_t some = std::max<int64_t>(1, 8192 / width), pieces = (rows + some - 1) / some;
  parallel_for(pieces, 1 + grain_default / (some * width), [&](int64_t begin, int64_t end) {
    float *to = half_rooms[0].of<float>(some * width),
          *from = half_rooms[1].of<float>(some * width);
    constexpr int64_t half = 2, whole = sizeof(float);
    const int64_t out[] = {half, whole}, in[] = {whole, half};
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p * some, count = std::min(some, rows - first);
      char* const source[] = {reinterpret_cast<char*>(from), x->address() + first * width * half};
      widen(source, in, count * width, nullptr);
      f(to, static_cast<const float*>(from), first, count);
      char* const target[] = {y->address() + first * width * half, reinterpret_cast<char*>(to)};
      narrow(target, out, count * width, nullptr);
    }
    for (const LocalScratch& room : half_rooms) room.trim(1);
  });
}

}  // namespace clew

// Reading and writing dense tensors at a few places: no plan, no threads.
// May include: base.
// Invariant: a place that is out of range is not followed, and is found before anything is written.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace clew::kernels {

// The most places.
constexpr int64_t few_places = 512;

// A dense tensor as `outer` blocks of `total` places of `inner` elements of `item` bytes.
struct DenseBlocks {
  int64_t outer = 1, total = 1, inner = 1;
  size_t item = 0;
};

// out[o, k, i] = src[o, places[k], i], of which there are n. False where a place is out of range;
// `out` is half written then.
[[nodiscard]] bool take_few(char* out, const char* src, const DenseBlocks& blocks,
                            const int64_t* places, int64_t n);
// dst[o, places[k], i] = values[o, k, i], or always the one value. False, and nothing written,
// where a place is out of range.
[[nodiscard]] bool put_few(char* dst, const char* values, bool one, const DenseBlocks& blocks,
                           const int64_t* places, int64_t n);
// dst[o, places[k], i] += values[o, k, i], or always the one value; place by place. False, and
// nothing written, also for dtypes whose sums are kept in another one, or are rare.
[[nodiscard]] bool add_few(DType dtype, char* dst, const char* values, bool one,
                           const DenseBlocks& blocks, const int64_t* places, int64_t n);
// dst[o, index[o, k, i], i] = values[o, k, i], or +=, as put_few() and add_few() do.
[[nodiscard]] bool scatter_few(char* dst, const char* values, const DenseBlocks& blocks,
                               const int64_t* index, int64_t n);
[[nodiscard]] bool scatter_add_few(DType dtype, char* dst, const char* values,
                                   const DenseBlocks& blocks, const int64_t* index, int64_t n);
// out[k] = out[k] * size + index[k], counted from the end where it is negative. False where one is
// out of range.
[[nodiscard]] bool append_few(int64_t* out, std::span<const int64_t> index, int64_t size);
// out[o, k, i] = src[o, index[o, k, i], i], where k runs through n places. False where a place is
// out of range; `out` is half written then.
[[nodiscard]] bool gather_few(char* out, const char* src, const DenseBlocks& blocks,
                              const int64_t* index, int64_t n);
// Whether all are within [0, size).
bool all_within(std::span<const int64_t> index, int64_t size);
// Writes the places of mask's bytes that are not 0 and returns their number; `out` has room for
// all.
int64_t mask_places(int64_t* out, std::span<const uint8_t> mask);

}  // namespace clew::kernels

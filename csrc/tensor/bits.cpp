// Looks at the bytes of small tensors for NaN and infinity, and at those of any for a fingerprint.
// May include: base, tensor.
// Invariant: as bits.h.
#include "tensor/bits.h"

namespace clew {

namespace {

// x * 0 is 0 where x is finite and NaN elsewhere.
template <class T> bool is_finite(const Tensor& t) {
  using Lanes [[gnu::vector_size(16)]] = T;
  constexpr int64_t width = sizeof(Lanes) / sizeof(T);
  const auto* x = reinterpret_cast<const T*>(t->address());
  const int64_t n = t->shape->numel;
  const auto zeros = [x](int64_t at) {
    Lanes some;  // rows of a tensor begin anywhere
    std::memcpy(&some, x + at, sizeof some);
    return some * T{0};
  };
  Lanes sum = {}, others[3] = {};  // four, since each addition waits for the one before
  int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    sum += zeros(i);
    for (int k = 0; k < 3; ++k) others[k] += zeros(i + (k + 1) * width);
  }
  sum += others[0] + (others[1] + others[2]);
  for (; i + width <= n; i += width) sum += zeros(i);
  T total = 0;
  for (int64_t k = 0; k < width; ++k) total += sum[k];
  for (; i < n; ++i) total += x[i] * T{0};
  return total == 0;
}

}  // namespace

bool is_small_and_finite(const Tensor& t) {
  constexpr int64_t most = 1024;
  if (!t->shape->contiguous || t->shape->numel > most || !t->storage->is_ready() ||
      (t->flags & flag_batched))
    return false;
  return (t->dtype == DType::Float32 && is_finite<float>(t)) ||
         (t->dtype == DType::Float64 && is_finite<double>(t));
}

uint64_t fingerprint_of(const Tensor& t) {
  Tensor dense = t;
  if (!t.is_contiguous()) {
    dense = empty(t.sizes(), t.dtype());
    copy_into(dense, t);
  }
  std::span<const std::byte> bytes = bytes_of(dense);
  uint64_t h = 0x9E3779B97F4A7C15u;
  auto mix = [&](uint64_t word) {
    h = (h ^ word) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  };
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    mix(word);
  }
  uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  mix(rest ^ uint64_t{bytes.size()} << 60);
  return h;
}

}  // namespace clew

// The loops over gradients, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/pointwise_loops.h"
#include "kernels/train/gradients.h"

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int lanes = 16;
constexpr int64_t half_block = 256;  // elements of half precision that are widened at once

// f(values, count) over pieces of x in the type that is computed in.
template <class T, class F> void in_blocks(const T* x, int64_t n, F&& f) {
  if constexpr (is_half_v<T>) {
    float wide[half_block];
    for (int64_t i = 0; i < n; i += half_block) {
      int64_t count = std::min(half_block, n - i);
      widen(x + i, wide, count);
      f(static_cast<const float*>(wide), count);
    }
  } else {
    f(x, n);
  }
}
// The same for what is written back.
template <class T, class F> void change_blocks(T* x, int64_t n, F&& f) {
  if constexpr (is_half_v<T>) {
    float wide[half_block];
    for (int64_t i = 0; i < n; i += half_block) {
      int64_t count = std::min(half_block, n - i);
      widen(x + i, wide, count);
      f(wide, count);
      narrow(wide, x + i, count);
    }
  } else {
    f(x, n);
  }
}

double total(const double (&part)[lanes]) {
  double sum = 0;
  for (double p : part) sum += p;
  return sum;
}

template <class T> double sum_squares(const void* x, int64_t n) {
  double part[lanes] = {};
  in_blocks(static_cast<const T*>(x), n, [&](const auto* v, int64_t count) {
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (int k = 0; k < lanes; ++k) {
        double d = v[i + k];
        part[k] += d * d;
      }
    for (; i < count; ++i) part[0] += static_cast<double>(v[i]) * static_cast<double>(v[i]);
  });
  return total(part);
}
template <class T> double sum_sizes(const void* x, int64_t n) {
  double part[lanes] = {};
  in_blocks(static_cast<const T*>(x), n, [&](const auto* v, int64_t count) {
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (int k = 0; k < lanes; ++k) part[k] += std::fabs(static_cast<double>(v[i + k]));
    for (; i < count; ++i) part[0] += std::fabs(static_cast<double>(v[i]));
  });
  return total(part);
}
// Sizes of numbers are ordered as their bits without the sign are, NaN above infinity.
template <class T> double greatest(const void* x, int64_t n) {
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t,
                                  std::conditional_t<sizeof(T) == 4, int32_t, int16_t>>;
  constexpr Bits no_sign = std::numeric_limits<Bits>::max();
  const char* at = static_cast<const char*>(x);
  Bits most = 0;
  for (int64_t i = 0; i < n; ++i) {
    Bits v;
    std::memcpy(&v, at + i * static_cast<int64_t>(sizeof(Bits)), sizeof v);
    most = std::max(most, static_cast<Bits>(v & no_sign));
  }
  return static_cast<double>(std::bit_cast<T>(most));
}

template <class T> void scale(void* x, int64_t n, double factor) {
  change_blocks(static_cast<T*>(x), n, [&](auto* v, int64_t count) {
    const auto f = static_cast<std::remove_cvref_t<decltype(*v)>>(factor);
    for (int64_t i = 0; i < count; ++i) v[i] *= f;
  });
}
template <class T> void clamp(void* x, int64_t n, double bound) {
  change_blocks(static_cast<T*>(x), n, [&](auto* v, int64_t count) {
    const auto b = static_cast<std::remove_cvref_t<decltype(*v)>>(bound);
    for (int64_t i = 0; i < count; ++i) {
      auto low = v[i] < -b ? -b : v[i];  // NaN stays
      v[i] = low > b ? b : low;
    }
  });
}
template <class T> bool unscale(void* x, int64_t n, double factor) {
  int bad = 0;
  change_blocks(static_cast<T*>(x), n, [&](auto* v, int64_t count) {
    using C = std::remove_cvref_t<decltype(*v)>;
    const auto f = static_cast<C>(factor);
    for (int64_t i = 0; i < count; ++i) {
      bad |= !(std::fabs(v[i]) <= std::numeric_limits<C>::max());
      v[i] *= f;
    }
  });
  return !bad;
}

template <class T>
constexpr GradientLoops loops = {sum_squares<T>, sum_sizes<T>, greatest<T>,
                                 scale<T>,       clamp<T>,     unscale<T>};

}  // namespace

extern const GradientTables gradients;
const GradientTables gradients = {loops<float>, loops<double>, loops<bf16>, loops<f16>};

}  // namespace clew::kernels::CLEW_ISA

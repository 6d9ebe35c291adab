// Loops that convert between float dtypes, and between floats and integers, compiled once for each
// instruction set.
// May include: base, kernels.
// Invariant: values are those of convert().
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/pointwise_loops.h"

namespace clew::kernels::CLEW_ISA {

namespace {

// Numbers that fit 32 bits are cut to integers in vectors; blocks with others go one by one.
template <class To, class From> [[gnu::flatten]] void cut_rows(To* out, const From* in, int64_t n) {
  constexpr int64_t block = 512;
  constexpr From most = static_cast<From>(2147483520.0);  // the float before 2^31
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = begin + block < n ? begin + block : n;
    int bad = 0;
    for (int64_t i = begin; i < end; ++i) bad |= !(std::fabs(in[i]) <= most);
    if (bad) {
      for (int64_t i = begin; i < end; ++i) out[i] = convert<To>(in[i]);
      continue;
    }
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) out[i] = static_cast<To>(static_cast<int32_t>(in[i]));
  }
}

template <class To, class From> [[gnu::flatten]] void cast_rows(char* d, const char* a, int64_t n) {
  auto* out = reinterpret_cast<To*>(d);
  auto* in = reinterpret_cast<const From*>(a);
  if constexpr (is_half_v<To> && std::is_same_v<From, float>) {
    narrow(in, out, n);
  } else if constexpr (is_half_v<From> && std::is_same_v<To, float>) {
    widen(in, out, n);
  } else if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool> &&
                       std::is_floating_point_v<From>) {
    cut_rows(out, in, n);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
  }
}
constexpr int64_t few = 16;  // elements that are not worth bringing side by side
template <class To, class From>
void cast_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  if (s[0] == sizeof(To) && s[1] == sizeof(From)) {
    cast_rows<To, From>(p[0], p[1], n);
  } else if (n >= few) {
    block_rows<1, From, From, To>(cast_loop<To, From>, p, s, n, nullptr);
  } else {
    for (int64_t i = 0; i < n; ++i)
      at<To>(p[0], i * s[0]) = convert<To>(read<From>(p[1], i * s[1]));
  }
}

template <class From, class... To> void set_casts(TypeList<To...>, DType from = dtype_of<From>()) {
  LoopTable& row = table::casts[static_cast<int>(from)];
  ((row.fn[static_cast<int>(dtype_of<To>())] = cast_loop<To, From>), ...);
}

}  // namespace

void init_casts();
void init_casts() {
  set_casts<float>(TypeList<double, f16, bf16, int64_t, int32_t, int16_t, int8_t, uint8_t, bool>{});
  set_casts<double>(TypeList<float, int64_t, int32_t, int16_t, int8_t, uint8_t, bool>{});
  set_casts<f16>(TypeList<float>{});
  set_casts<bf16>(TypeList<float, double>{});
  set_casts<int64_t>(TypeList<float, double, int32_t, bool>{});
  set_casts<int32_t>(TypeList<float, double, int64_t, bool>{});
  set_casts<int16_t>(TypeList<float, int64_t>{});
  set_casts<int8_t>(TypeList<float, int64_t>{});
  set_casts<uint8_t>(TypeList<float, double, int64_t, int32_t>{});
  // A truth value is a byte of 0 or 1, and loops of bytes are vectors.
  set_casts<uint8_t>(TypeList<float, double, int64_t, int32_t>{}, DType::Bool);
}

}  // namespace clew::kernels::CLEW_ISA

// Loops that convert one operand, between any two dtypes.
// May include: base, kernels.
// Invariant: values are those of convert(), a 16-bit float's on the way through float32; equal
// dtypes move bytes, so every bit pattern (NaN payloads too) survives.
#include <cstring>

#include "base/ndview.h"
#include "kernels/core/cast_loop.h"
#include "kernels/core/index_walk.h"
#include "kernels/core/loop_tables.h"
#include "kernels/core/stream.h"

namespace clew::kernels {

namespace {

template <class T> void move_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  char* d = p[0];
  const char* a = p[1];
  constexpr int64_t item = sizeof(T);
  if (s[0] == item && s[1] == item) {
    const size_t bytes = static_cast<size_t>(n) * sizeof(T);
    if (d + bytes <= a || a + bytes <= d)
      copy_bytes(d, a, bytes);
    else
      std::memmove(d, a, bytes);
  } else if (s[0] == item && s[1] == 0) {
    std::fill_n(reinterpret_cast<T*>(d), n, *reinterpret_cast<const T*>(a));
  } else {
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<T*>(d + i * s[0]) = *reinterpret_cast<const T*>(a + i * s[1]);
    }
  }
}

Loop move_loop_of(size_t item) {
  Loop found = nullptr;
  dispatch_size(item, [&]<class T>() { found = move_loop<T>; });
  return found;
}

// By way of a dtype that both sides have fast loops for: fifteen dtypes make two hundred pairs.
template <DType from, DType way, DType to>
void two_steps(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  static const Loop first = cast_loop_of(from, way), second = cast_loop_of(way, to);
  constexpr int64_t block = 512, item = static_cast<int64_t>(itemsize(way));
  alignas(line_bytes) char room[block * item];
  for (int64_t i = 0; i < n; i += block) {
    const int64_t take = std::min(block, n - i);
    char* const in[] = {room, p[1] + i * s[1]};
    const int64_t in_steps[] = {item, s[1]};
    first(in, in_steps, take, nullptr);
    char* const out[] = {p[0] + i * s[0], room};
    const int64_t out_steps[] = {s[0], item};
    second(out, out_steps, take, nullptr);
  }
}
// A complex number begins with its real part.
template <DType real, DType to>
void real_parts(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  static const Loop loop = cast_loop_of(real, to);
  loop(p, s, n, nullptr);
}

template <size_t size>
using Signed = std::conditional_t<
    size == 1, int8_t,
    std::conditional_t<size == 2, int16_t, std::conditional_t<size == 4, int32_t, int64_t>>>;

template <class To, class From> constexpr Loop loop_between() {
  constexpr DType from = dtype_of<From>(), to = dtype_of<To>();
  constexpr bool whole = std::is_integral_v<From> && std::is_integral_v<To>;
  if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To> || std::is_same_v<To, bool>)
      return cast_loop<To, From>;
    else
      return real_parts<real_of(from), to>;
  } else if constexpr (is_complex_v<To>) {
    if constexpr (std::is_same_v<From, typename To::value_type>)
      return cast_loop<To, From>;
    else
      return two_steps<from, real_of(to), to>;
  } else if constexpr (is_half_v<From> || is_half_v<To>) {
    if constexpr (std::is_same_v<From, float> || std::is_same_v<To, float>)
      return cast_loop<To, From>;
    else
      return two_steps<from, DType::Float32, to>;
  } else if constexpr (std::is_same_v<From, bool>) {
    return loop_between<To, uint8_t>();
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (std::is_integral_v<From>)
      return cast_loop<bool, std::make_unsigned_t<From>>;
    else
      return cast_loop<bool, From>;
  } else if constexpr (whole && sizeof(To) <= sizeof(From)) {  // the low bytes, whatever the sign
    return cast_loop<Signed<sizeof(To)>, Signed<sizeof(From)>>;
  } else if constexpr (whole) {
    return cast_loop<Signed<sizeof(To)>, From>;
  } else {
    return cast_loop<To, From>;
  }
}

struct CastTable {
  Loop fn[num_dtypes][num_dtypes] = {};  // [from][to]
};
template <class From, class... To> constexpr void set_casts(CastTable& t, TypeList<To...>) {
  ((t.fn[static_cast<int>(dtype_of<From>())][static_cast<int>(dtype_of<To>())] =
        loop_between<To, From>()),
   ...);
}
template <class... From> constexpr CastTable make_cast_table(TypeList<From...>) {
  CastTable t;
  (set_casts<From>(t, AllTypes{}), ...);
  return t;
}
constexpr CastTable casts = make_cast_table(AllTypes{});

}  // namespace

Loop cast_loop_of(DType from, DType to) {
  if (from == to) return move_loop_of(itemsize(to));
  if (is_stored(from) || is_stored(to)) return stored_cast_of(from, to);
  Loop fast = table::casts[static_cast<int>(from)][to];
  return fast ? fast : casts.fn[static_cast<int>(from)][static_cast<int>(to)];
}

}  // namespace clew::kernels

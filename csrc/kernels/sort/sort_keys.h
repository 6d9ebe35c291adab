// Unsigned keys that have the order of their elements, and the vector loops over them.
// May include: base.
// Invariant: NaN has the greatest key, -0 and 0 have the same.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/dtype.h"

namespace clew::kernels {

template <int Bytes> struct unsigned_of;
template <> struct unsigned_of<1> { using type = uint8_t; };
template <> struct unsigned_of<2> { using type = uint16_t; };
template <> struct unsigned_of<4> { using type = uint32_t; };
template <> struct unsigned_of<8> { using type = uint64_t; };
template <class T> using key_t = typename unsigned_of<sizeof(T)>::type;

template <class T>
constexpr key_t<T> infinity_bits = std::is_same_v<T, double>  ? key_t<T>(0x7ffull << 52)
                                   : std::is_same_v<T, float> ? key_t<T>(0xffu << 23)
                                   : std::is_same_v<T, bf16>  ? key_t<T>(0xffu << 7)
                                                              : key_t<T>(0x1fu << 10);

template <class T> [[gnu::always_inline]] inline key_t<T> key_of_bits(key_t<T> bits) {
  using U = key_t<T>;
  constexpr U top = static_cast<U>(U(1) << (sizeof(T) * 8 - 1));
  if constexpr (std::is_unsigned_v<T>) {
    return bits;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<U>(bits ^ top);
  } else {
    // Without branches, so that lines are turned into keys by vectors.
    constexpr U infinity = infinity_bits<T>;
    const U size = static_cast<U>(bits & ~top);
    const U key = static_cast<U>(bits & top ? ~bits : bits | top);
    const U number = size == 0 ? top : key;
    return size > infinity ? static_cast<U>(~U(0)) : number;
  }
}
template <class T> [[gnu::always_inline]] inline key_t<T> key_of(T v) {
  return key_of_bits<T>(std::bit_cast<key_t<T>>(v));
}
// The same of an element in memory: 16-bit floats are no numbers that vectors could be loaded of.
template <class T> [[gnu::always_inline]] inline key_t<T> key_at(const T* p) {
  key_t<T> bits;
  std::memcpy(&bits, p, sizeof bits);
  return key_of_bits<T>(bits);
}

// The integer that has this key.
template <class T> [[gnu::always_inline]] inline T value_of(key_t<T> key) {
  using U = key_t<T>;
  constexpr U top = static_cast<U>(U(1) << (sizeof(T) * 8 - 1));
  return static_cast<T>(std::is_unsigned_v<T> ? key : static_cast<U>(key ^ top));
}

// Loops over keys of contiguous elements, which are turned around by a `flip` of all ones.
template <class T> struct KeyLoops {
  using U = key_t<T>;
  // keys[i] = the key of from[i], for i < n.
  void (*turn)(const T* from, int64_t n, U flip, U* keys);
  // The same, not kept: minima[i] becomes the key where that is smaller.
  void (*lower)(const T* from, int64_t n, U flip, U* minima);
  // Writes the places of keys up to a bound and returns how many there are.
  int64_t (*below)(const U* keys, int64_t n, U bound, uint32_t* places);
};

// Lines that are sorted together: word i of line k lies at i * side_by_side + k.
constexpr int64_t side_by_side = 8;
constexpr int64_t least_most = 8;
// Two words of a line, of which the smaller goes to `low`.
struct Exchange {
  uint8_t low, high;
};

struct KeyTable {
  KeyLoops<float> f32;
  KeyLoops<double> f64;
  KeyLoops<int32_t> i32;
  KeyLoops<int64_t> i64;
  KeyLoops<f16> f16s;
  KeyLoops<bf16> bf16s;
  void (*sort)(int64_t* words, const Exchange* list, size_t count);
  // The same by two words: places decide where keys are equal.
  void (*sort_wide)(int64_t* keys, int64_t* places, const Exchange* list, size_t count);
  // The smallest k words, least_most at most, of n, in order; the others are lost.
  void (*least)(int64_t* words, int64_t n, int64_t k);
};

}  // namespace clew::kernels

// Rows in reverse order, compiled once for each instruction set.
// May include: the standard library only.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace clew::kernels::CLEW_ISA {
namespace {

template <class V, int... I> V turned(V v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (static_cast<int>(sizeof...(I)) - 1 - I)...);
}
// Lanes change places within 16 bytes by one instruction; pieces of that size are taken in turn.
template <class T> int64_t reverse_vectors(T* to, const T* s, int64_t n) {
  constexpr int lanes = 16 / sizeof(T), vectors = 4;
  typedef T V __attribute__((vector_size(16)));
  constexpr auto all = std::make_integer_sequence<int, lanes>();
  int64_t j = 0;
  for (; j + vectors * lanes <= n; j += vectors * lanes) {
    V v[vectors];
    std::memcpy(v, s + j, sizeof v);
    T* line = to + n - j - vectors * lanes;
    // Not every processor fetches ahead of what goes backwards.
    __builtin_prefetch(reinterpret_cast<const char*>(line) - 1024, 1);
    for (int k = 0; k < vectors; ++k) {
      const V back = turned(v[vectors - 1 - k], all);
      std::memcpy(line + k * lanes, &back, sizeof back);
    }
  }
  for (; j + lanes <= n; j += lanes) {
    V v;
    std::memcpy(&v, s + j, sizeof v);
    v = turned(v, all);
    std::memcpy(to + n - j - lanes, &v, sizeof v);
  }
  return j;
}
#ifndef __SSSE3__
// Shuffles of so small lanes come with later processors only.
template <class T> int64_t reverse_words(T* to, const T* s, int64_t n) {
  constexpr int64_t each = sizeof(uint64_t) / sizeof(T);
  int64_t j = 0;
  for (; j + each <= n; j += each) {
    uint64_t word;
    std::memcpy(&word, s + j, sizeof word);
    word = __builtin_bswap64(word);
    if constexpr (sizeof(T) == 2) {
      constexpr uint64_t low = 0x00ff00ff00ff00ffu;
      word = (word >> 8 & low) | (word & low) << 8;
    }
    std::memcpy(to + n - j - each, &word, sizeof word);
  }
  return j;
}
template <> int64_t reverse_vectors(uint8_t* to, const uint8_t* s, int64_t n) {
  return reverse_words(to, s, n);
}
template <> int64_t reverse_vectors(uint16_t* to, const uint16_t* s, int64_t n) {
  return reverse_words(to, s, n);
}
#endif
template <class T> void reverse(void* to, const void* from, int64_t n) {
  auto* d = static_cast<T*>(to);
  auto* s = static_cast<const T*>(from);
  for (int64_t j = reverse_vectors(d, s, n); j < n; ++j) d[n - 1 - j] = s[j];
}

}  // namespace

// Of elements of 1, 2, 4 or 8 bytes.
void reverse_row(void* to, const void* s, int64_t n, size_t item);
void reverse_row(void* to, const void* s, int64_t n, size_t item) {
  switch (item) {
    case 1: return reverse<uint8_t>(to, s, n);
    case 2: return reverse<uint16_t>(to, s, n);
    case 4: return reverse<uint32_t>(to, s, n);
    default: return reverse<uint64_t>(to, s, n);
  }
}

}  // namespace clew::kernels::CLEW_ISA

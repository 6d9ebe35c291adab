// Stores that go past the caches, for large results: they spare reading each line before.
// May include: the standard library only.
// Invariant: without such stores on this processor the same bytes are written in the usual way.
#pragma once
#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace clew::kernels {

constexpr int64_t line_bytes = 64;

// Scattered lines are streamed from this size of a result on: more than the cache of one core.
constexpr int64_t stream_bytes = int64_t{1} << 20;

// Results of at least this size, written in order, bypass the caches: the last cache would not keep
// much of them.
constexpr int64_t stream_in_order_bytes = int64_t{1} << 25;

// Copies whole lines to a place that is aligned to lines.
inline void stream_lines(char* to, const char* from, int64_t bytes) {
#ifdef __SSE2__
  for (int64_t i = 0; i < bytes; i += line_bytes) {
    auto* d = reinterpret_cast<__m128i*>(to + i);
    auto* s = reinterpret_cast<const __m128i*>(from + i);
    __m128i a = _mm_loadu_si128(s);
    __m128i b = _mm_loadu_si128(s + 1);
    __m128i c = _mm_loadu_si128(s + 2);
    __m128i e = _mm_loadu_si128(s + 3);
    _mm_stream_si128(d, a);
    _mm_stream_si128(d + 1, b);
    _mm_stream_si128(d + 2, c);
    _mm_stream_si128(d + 3, e);
    // Lines are finished one by one, whatever the compiler makes of the loop: the processor has
    // room for few that are begun.
    __asm__ volatile("" ::: "memory");
  }
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}
// Streamed lines are seen by other threads after this.
inline void stream_end() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

// Copies bytes that do not overlap. The C library does longer copies by one instruction, which on
// some processors is several times slower if source and destination differ in their offset within a
// line. Such copies are cut into pieces that are short enough to be copied in vectors.
inline void copy_bytes(void* to, const void* from, size_t n) {
  constexpr size_t piece = 1024, most = size_t{1} << 18;
  auto* d = static_cast<char*>(to);
  auto* s = static_cast<const char*>(from);
  if (n - 16 <= 48) {  // short rows: a call of memcpy would take longer than they do
    typedef uint64_t Half __attribute__((vector_size(16)));
    Half first, last, second, third;
    std::memcpy(&first, s, 16);
    std::memcpy(&last, s + n - 16, 16);
    if (n > 32) {
      std::memcpy(&second, s + 16, 16);
      std::memcpy(&third, s + n - 32, 16);
      std::memcpy(d + 16, &second, 16);
      std::memcpy(d + n - 32, &third, 16);
    }
    std::memcpy(d, &first, 16);
    std::memcpy(d + n - 16, &last, 16);
    return;
  }
  const auto apart = reinterpret_cast<uintptr_t>(d) - reinterpret_cast<uintptr_t>(s);
  if (n < most && apart % static_cast<uintptr_t>(line_bytes) != 0) {
    for (; n > piece; n -= piece, d += piece, s += piece) std::memcpy(d, s, piece);
  }
  std::memcpy(d, s, n);
}

inline bool starts_line(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(line_bytes) == 0;
}

}  // namespace clew::kernels

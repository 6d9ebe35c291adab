// Texts put together while compiling.
// May include: the standard library only.
// Invariant: every text is a static array, so what holds it stays constant data.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>

namespace clew {

// A text that can be a template argument.
template <size_t N> struct Text {
  char chars[N] = {};
  consteval Text() = default;
  consteval Text(const char (&text)[N]) { std::copy_n(text, N, chars); }
  static constexpr size_t size = N - 1;
};

template <Text... parts>
inline constexpr auto joined_chars = [] {
  std::array<char, (parts.size + ...) + 1> all = {};
  size_t at = 0;
  ((std::copy_n(parts.chars, parts.size, all.begin() + at), at += parts.size), ...);
  return all;
}();
template <Text... parts> inline constexpr const char* joined = joined_chars<parts...>.data();
// The same as a template argument.
template <Text... parts>
inline constexpr auto joined_text = [] {
  Text<(parts.size + ...) + 1> all;
  std::ranges::copy(joined_chars<parts...>, all.chars);
  return all;
}();

}  // namespace clew

// How an op's non-tensor arguments live in a plain struct: the field kinds, and a table of them
// made at compile time.
// May include: base.
// Invariant: a struct's fields stand in the order of the signature's non-tensor parameters.
#pragma once
#include <array>
#include <new>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "base/dtype.h"
#include "base/scalar.h"
#include "base/smallvec.h"

namespace clew {

struct Generator;

// A short text argument ("mean", "trunc"), kept by value.
struct Str {
  char text[24] = {};
  Str() = default;
  Str(std::string_view s) {
    if (s.size() >= sizeof text) fail_value("string argument is too long: ", s);
    std::memcpy(text, s.data(), s.size());
  }
  Str(const char* s) : Str(std::string_view(s)) {}
  operator std::string_view() const { return text; }
  bool operator==(std::string_view s) const { return std::string_view(text) == s; }
};

enum class FieldKind : uint8_t {
  Int,
  Bool,
  Float,
  Number,
  Ints,
  Text,
  OptInt,
  OptBool,
  OptFloat,
  OptInts,
  OptDType,
  Generator
};

template <class T> constexpr FieldKind field_kind() {
  if constexpr (std::is_same_v<T, int64_t>)
    return FieldKind::Int;
  else if constexpr (std::is_same_v<T, bool>)
    return FieldKind::Bool;
  else if constexpr (std::is_same_v<T, double>)
    return FieldKind::Float;
  else if constexpr (std::is_same_v<T, Scalar>)
    return FieldKind::Number;
  else if constexpr (std::is_same_v<T, Dims>)
    return FieldKind::Ints;
  else if constexpr (std::is_same_v<T, Str>)
    return FieldKind::Text;
  else if constexpr (std::is_same_v<T, std::optional<int64_t>>)
    return FieldKind::OptInt;
  else if constexpr (std::is_same_v<T, std::optional<bool>>)
    return FieldKind::OptBool;
  else if constexpr (std::is_same_v<T, std::optional<double>>)
    return FieldKind::OptFloat;
  else if constexpr (std::is_same_v<T, std::optional<Dims>>)
    return FieldKind::OptInts;
  else if constexpr (std::is_same_v<T, std::optional<DType>>)
    return FieldKind::OptDType;
  else {
    static_assert(std::is_same_v<T, Generator*>,
                  "an attribute struct may hold: int64_t, bool, double, Scalar, Dims, Str, "
                  "optional<int64_t|bool|double|Dims|DType>, Generator*");
    return FieldKind::Generator;
  }
}

struct AttrField {
  FieldKind kind = FieldKind::Int;
  uint16_t offset = 0;
};
struct AttrInfo {
  uint16_t size = 0;
  uint8_t count = 0;
  bool trivial = true;
  std::array<AttrField, 12> fields = {};
  void (*construct)(void*) = nullptr;
  void (*copy)(void* dst, const void* src) = nullptr;
  void (*destroy)(void*) = nullptr;
};

namespace detail {
template <class M> struct member_of;
template <class C, class T> struct member_of<T C::*> { using type = T; };

template <class A, class... M> constexpr AttrInfo make_attr_info(const std::tuple<M...>&) {
  AttrInfo info;
  size_t at = 0;
  auto place = [&]<class T>() {
    at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
    info.fields[info.count++] = {field_kind<T>(), static_cast<uint16_t>(at)};
    at += sizeof(T);
  };
  (place.template operator()<typename member_of<M>::type>(), ...);
  info.size = sizeof(A);
  info.trivial = std::is_trivially_copyable_v<A>;
  info.construct = [](void* p) { new (p) A(); };
  info.copy = [](void* d, const void* s) { new (d) A(*static_cast<const A*>(s)); };
  info.destroy = [](void* p) { static_cast<A*>(p)->~A(); };
  return info;
}
}  // namespace detail

// The table of struct A. A lists its members once:
//   struct SumAttrs { std::optional<Dims> dim; bool keepdim; static constexpr auto members() {
//   return std::tuple(&SumAttrs::dim, &SumAttrs::keepdim); } };
template <class A> inline constexpr AttrInfo attr_info = detail::make_attr_info<A>(A::members());

}  // namespace clew

// How an op's non-tensor arguments live in a plain struct: the field kinds, and a table of them
// made at compile time.
// May include: base.
// Invariant: a struct's fields stand in the order of the signature's non-tensor parameters.
#pragma once
#include <array>
#include <cstddef>
#include <new>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/dtype.h"
#include "base/scalar.h"
#include "base/smallvec.h"

namespace clew {

struct Generator;

// A short text argument ("mean", "trunc"), kept by value. A mark in the last byte tells an
// empty argument from one that was not given.
struct Str {
  char text[24] = {};
  Str() = default;
  Str(std::string_view s) {
    if (s.size() + 1 >= sizeof text) fail_value("string argument is too long: ", s);
    std::memcpy(text, s.data(), s.size());
    if (s.empty()) text[sizeof text - 1] = 1;
  }
  bool given() const { return text[0] || text[sizeof text - 1]; }
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
// The type that a field of each kind has, in the order of the kinds.
using FieldTypes = std::tuple<int64_t, bool, double, Scalar, Dims, Str, std::optional<int64_t>,
                              std::optional<bool>, std::optional<double>, std::optional<Dims>,
                              std::optional<DType>, Generator*>;
static_assert(std::tuple_size_v<FieldTypes> == static_cast<size_t>(FieldKind::Generator) + 1);

template <class T, size_t at = 0> constexpr FieldKind field_kind() {
  static_assert(at < std::tuple_size_v<FieldTypes>,
                "an attribute struct may hold: int64_t, bool, double, Scalar, Dims, Str, "
                "optional<int64_t|bool|double|Dims|DType>, Generator*");
  if constexpr (std::is_same_v<T, std::tuple_element_t<at, FieldTypes>>)
    return static_cast<FieldKind>(at);
  else
    return field_kind<T, at + 1>();
}

// Calls f with the field at `field`, a void* or const void*, as a reference to the type it has.
template <size_t at = 0, class Void, class F>
inline decltype(auto) visit_field(FieldKind kind, Void* field, F&& f) {
  using T = std::tuple_element_t<at, FieldTypes>;
  using Field = std::conditional_t<std::is_const_v<Void>, const T, T>;
  if constexpr (at + 1 < std::tuple_size_v<FieldTypes>)
    if (kind != static_cast<FieldKind>(at)) return visit_field<at + 1>(kind, field, f);
  return f(*static_cast<Field*>(field));
}

template <class T> inline constexpr bool is_optional = false;
template <class T> inline constexpr bool is_optional<std::optional<T>> = true;

struct AttrField {
  FieldKind kind = FieldKind::Int;
  uint16_t offset = 0;
};
struct AttrInfo {
  uint16_t size = 0;
  uint8_t count = 0;
  bool trivial = true;
  int8_t generator = -1;  // which field says where random numbers come from; -1: none does
  std::array<AttrField, 12> fields = {};
  void (*construct)(void*) = nullptr;
  void (*copy)(void* dst, const void* src) = nullptr;
  void (*destroy)(void*) = nullptr;

  // The field that says where random numbers come from; null where there is none.
  Generator** generator_at(void* attrs) const {
    if (generator < 0) return nullptr;
    return reinterpret_cast<Generator**>(static_cast<std::byte*>(attrs) +
                                         fields[static_cast<size_t>(generator)].offset);
  }
  // Calls f(index, field) for each field of a struct, as a reference to the type it has.
  template <class Void, class F> void visit(Void* attrs, F&& f) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
    for (int i = 0; i < count; ++i) {
      const AttrField& own = fields[static_cast<size_t>(i)];
      visit_field(own.kind, static_cast<Void*>(static_cast<Byte*>(attrs) + own.offset),
                  [&](auto& field) { f(i, field); });
    }
  }
};

// An op's attributes, to be changed.
class AttrsCopy {
  const AttrInfo* info_;
  std::vector<std::max_align_t> block_;

 public:
  // Of none where `info` is null.
  AttrsCopy(const AttrInfo* info, const void* from)
      : info_(info), block_(info ? info->size / sizeof(std::max_align_t) + 1 : 0) {
    if (info) info->copy(block_.data(), from);
  }
  ~AttrsCopy() {
    if (info_) info_->destroy(block_.data());
  }
  AttrsCopy(const AttrsCopy&) = delete;
  AttrsCopy& operator=(const AttrsCopy&) = delete;
  void* data() { return info_ ? block_.data() : nullptr; }
  template <class T> T& field(int i) {
    return *reinterpret_cast<T*>(reinterpret_cast<char*>(block_.data()) +
                                 info_->fields[static_cast<size_t>(i)].offset);
  }
};

namespace detail {
template <class M> struct member_of;
template <class C, class T> struct member_of<T C::*> { using type = T; };

template <class A, class... M> constexpr AttrInfo make_attr_info(const std::tuple<M...>&) {
  AttrInfo info;
  size_t at = 0;
  auto place = [&]<class T>() {
    at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
    if (std::is_same_v<T, Generator*>) info.generator = static_cast<int8_t>(info.count);
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

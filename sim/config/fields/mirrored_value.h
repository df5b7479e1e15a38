#pragma once

#include <concepts>
#include <type_traits>

namespace tessera {

/// A value or a constant of type `T`. tools/mirror_schema writes `mirror(Of<T> auto& value, visit)`
/// for every value that the schema has a section for: it calls `visit(name, member)` for each
/// field, and serves both directions.
template <class Self, class T>
concept Of = std::same_as<std::remove_const_t<Self>, T>;

/// Instantiates `check` for a member's enumeration; where the value holds the word itself as a
/// text, there is nothing to check.
template <class Member, class Check>
constexpr void check_words(Check check) {
  if constexpr (std::is_enum_v<Member>) check(std::type_identity<Member>());
}

}  // namespace tessera

#pragma once

#include <concepts>
#include <type_traits>

namespace tessera {

/// A value or a constant of type `T`. tools/schema_values writes `mirror(Of<T> auto& value, visit)`
/// for every value that the schema has a section for: it calls `visit(name, member)` for each
/// field, and serves both directions.
template <class Self, class T>
concept Of = std::same_as<std::remove_const_t<Self>, T>;

}  // namespace tessera

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tessera {

/// The value of a shell's arithmetic over whole numbers: + - * / % **, comparisons, && || !, ? :,
/// brackets, names with or without '$'. `value_of` gives the text of a variable, empty where there
/// is none. Nothing where the text is something else, divides by 0, or leaves 64 bits.
std::optional<std::int64_t> shell_arithmetic(
    const std::string& text, const std::function<std::string(const std::string&)>& value_of);

}  // namespace tessera

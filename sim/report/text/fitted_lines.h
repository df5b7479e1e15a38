#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

constexpr std::size_t kTerminalWidth = 80;

/// Columns that UTF-8 text takes; every code point one, those of kMarks none.
std::size_t columns_of(std::string_view text);

/// `text` with lines of at most `width` columns where they have spaces to break at. What goes on
/// stands below the value of a row (after two spaces behind a label), else two columns further in
/// than its line.
std::string fitted(std::string_view text, std::size_t width = kTerminalWidth);

}  // namespace tessera

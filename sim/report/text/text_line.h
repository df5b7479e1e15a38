#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace tessera {

/// printf into a string; cut at 511 characters.
template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

/// The same with a line break behind it.
template <class... Values>
std::string text_line(const char* format, Values... values) {
  return formatted(format, values...) + "\n";
}

}  // namespace tessera

#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace tessera {

/// printf into a string with a line break behind it; cut at 511 characters.
template <class... Values>
std::string text_line(const char* format, Values... values) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return std::string(text.data()) + "\n";
}

}  // namespace tessera

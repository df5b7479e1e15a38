#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// ASCII letters in lower case, everything else as it is, whatever the locale.
inline std::string lower_case(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return small;
}

}  // namespace tessera

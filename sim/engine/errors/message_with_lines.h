#pragma once

#include <string>
#include <vector>

namespace tessera {

/// `message`, and each of `lines` indented below it.
inline std::string with_lines(std::string message, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) message += "\n  " + line;
  return message;
}

}  // namespace tessera

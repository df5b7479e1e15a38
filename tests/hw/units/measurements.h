#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

/// Where the measurements lie that are not in the repository: TESSERA_MEASUREMENTS, else beside it.
/// May not exist.
inline std::filesystem::path measurements_folder() {
  const char* folder = std::getenv("TESSERA_MEASUREMENTS");
  return folder != nullptr ? std::filesystem::path(folder)
                           : std::filesystem::path(TESSERA_SOURCE_DIR) / "../shared/measurements";
}

/// Fields of one line of a CSV file; fields in double quotes may hold commas.
inline std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace tessera

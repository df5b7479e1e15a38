#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/hw/units/measurements.h"
#include "tests/hw/units/scratch.h"

namespace tessera {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::filesystem::path committed_weights() {
  return std::filesystem::path(TESSERA_SOURCE_DIR) / "predictor/weights/tessera.pb";
}

}  // namespace tessera

#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/hw/units/measurements.h"

namespace tessera {

/// A folder of one test, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::path(testing::TempDir()) /
              ("tessera_predictor_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::filesystem::path committed_weights() {
  return std::filesystem::path(TESSERA_SOURCE_DIR) / "predictor/weights/tessera.pb";
}

}  // namespace tessera

#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace tessera {

/// A folder of one test in one process, removed at its end. The tests of a binary run in processes
/// of their own and at once: files of equal names elsewhere would be read while another test writes
/// them.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::canonical(testing::TempDir()) /
              ("tessera_test_" + std::to_string(::getpid()) + "_" + std::to_string(created()++))) {
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
  static int& created() {
    static int count = 0;
    return count;
  }

  std::filesystem::path path_;
};

}  // namespace tessera

#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "app/sweep/sweep_grid.h"

namespace tessera {

/// A folder that goes with the test.
class TestFolder {
 public:
  TestFolder() : path_(std::filesystem::temp_directory_path() / name()) {
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::filesystem::path plant(const std::string& file, const std::string& text) const {
    std::ofstream(path_ / file) << text;
    return path_ / file;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  static std::string name() {
    static int count = 0;
    return "tessera-sweep-" + std::to_string(getpid()) + "-" + std::to_string(++count);
  }
  std::filesystem::path path_;
};

inline Catalog test_catalog() {
  return Catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs");
}

/// A sweep over GPT-2 on eight H100; `rest` holds axes and conditions.
struct TestSweep {
  explicit TestSweep(const std::string& rest)
      : spec(read_sweep(folder.plant("sweep.yaml", kBase + rest), test_catalog())),
        source(spec.base, spec.source, test_catalog()),
        grid(spec, source) {}

  static inline const std::string kBase =
      "base: {model: gpt2, cluster: dgx-h100, training: {sequence_length: 128, global_batch: 8}}\n";
  TestFolder folder;
  SweepSpec spec;
  ScenarioSource source;
  SweepGrid grid;
};

}  // namespace tessera

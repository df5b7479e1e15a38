#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/config/load.h"

namespace tessera {

/// The repository's root is the working directory, so that paths in messages do not depend on the
/// machine.
class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::current_path(TESSERA_SOURCE_DIR);
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Writes a file that lives as long as the test.
  std::filesystem::path file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  Scenario load(const std::filesystem::path& path,
                const std::vector<std::string>& overrides = {}) const {
    return load_scenario(path, overrides, catalog_);
  }

  static std::string read(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

  /// The message of the InputError that `action` throws; empty if it throws none.
  template <class Action>
  static std::string message_of(const Action& action) {
    try {
      action();
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  }

  const Catalog catalog_{"configs"};

 private:
  std::filesystem::path folder_;
};

}  // namespace tessera

#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "tests/hw/units/scratch.h"

namespace tessera {

/// The repository's root is the working directory, so that paths in messages do not depend on the
/// machine.
class ConfigTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::current_path(TESSERA_SOURCE_DIR); }

  /// Writes a file that lives as long as the test.
  std::filesystem::path file(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
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
  ScratchFolder folder_;
};

}  // namespace tessera

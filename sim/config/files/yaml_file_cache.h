#pragma once

#include <filesystem>
#include <map>

#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// Files of descriptions, each read and parsed once. For those who load many variants of one
/// scenario.
class YamlFileCache {
 public:
  /// Tree of a YAML file. Throws InputError as read_yaml_file does, every time.
  const YamlNode& read(const std::filesystem::path& file);

 private:
  std::map<std::filesystem::path, YamlNode> trees_;
};

}  // namespace tessera

#include "sim/config/files/yaml_file_cache.h"

namespace tessera {

const YamlNode& YamlFileCache::read(const std::filesystem::path& file) {
  const auto found = trees_.find(file);
  if (found != trees_.end()) return found->second;
  return trees_.emplace(file, read_yaml_file(file)).first->second;
}

}  // namespace tessera

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/config/yaml_tree.h"

namespace tessera {

/// A Hugging Face config.json as the `model` section that it means; `unread` receives the keys that
/// it does not use. Throws InputError.
YamlNode read_hugging_face_tree(const std::filesystem::path& file,
                                std::vector<std::string>* unread = nullptr);

}  // namespace tessera

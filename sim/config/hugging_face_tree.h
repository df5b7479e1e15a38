#pragma once

#include <filesystem>

#include "sim/config/yaml_tree.h"

namespace tessera {

/// A Hugging Face config.json as the `model` section that it means. Throws InputError.
YamlNode read_hugging_face_tree(const std::filesystem::path& file);

}  // namespace tessera

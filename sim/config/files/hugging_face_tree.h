#pragma once

#include <filesystem>

#include "sim/config/files/yaml_tree.h"
#include "workloads/hugging_face/hugging_face.h"

namespace tessera {

/// A Hugging Face config.json as the `model` section that it means, and what it says beside.
struct HuggingFaceTree {
  YamlNode tree;
  HuggingFaceModel said;
};

/// Throws InputError. A lenient reader approximates what no family expresses.
HuggingFaceTree read_hugging_face_tree(const std::filesystem::path& file, bool lenient = false);

}  // namespace tessera

#pragma once

#include <string>

#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// Peaks and caches that a GPU of its own id would take over from `base`, which has another number
/// of SMs: "fp32, bf16, l2"; empty where it states them all. Both sections under schema names.
std::string figures_of_another_gpu(const YamlNode& base, const YamlNode& changes);

}  // namespace tessera

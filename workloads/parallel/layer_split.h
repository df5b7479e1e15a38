#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/step_options.h"

namespace tessera {

/// Layers of every part of the model in its order: pipeline * virtual_stages parts, or as many as
/// stages for DualPipe. Even, or as `step.split` says: numbers for all parts; fewer or more layers
/// in the first and the last stage, whose chunks share them evenly, while the other stages share
/// the rest; an embedding or a head that takes the place of a layer. Empty where the layers cannot
/// be split so. Source: Megatron-Core transformer_block.py, get_num_layers_to_build.
std::optional<std::vector<int>> layers_of_parts(std::int64_t layers, const StepOptions& step);

}  // namespace tessera

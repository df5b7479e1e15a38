#pragma once

#include <vector>

#include "hw/node.h"
#include "hw/units/input_error.h"

namespace tessera {

/// Everything that contradicts itself or physics in a description; empty = valid. `Problem::where`
/// is the path of the field inside the description ("gpu.sm_count", "pairs[3].links").
std::vector<Problem> problems_of(const GpuSpec& gpu);
std::vector<Problem> problems_of(const NodeSpec& node);        ///< its GPU's problems included
std::vector<Problem> problems_of(const ClusterSpec& cluster);  ///< its node's problems included

}  // namespace tessera

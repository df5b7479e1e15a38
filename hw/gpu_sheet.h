#pragma once

#include <vector>

#include "hw/node.h"
#include "hw/units/input_error.h"

namespace tessera {

/// Figures of a GPU's description that contradict each other or that no GPU has: of another GPU, in
/// another unit, of both directions. Each is named by its field, as hw/validation.h does. Limits
/// are wide, since what-ifs double a figure; machines that are made in memory are not held to them.
std::vector<Problem> sheet_problems_of(const GpuSpec& gpu);
std::vector<Problem> sheet_problems_of(const NodeSpec& node);
std::vector<Problem> sheet_problems_of(const ClusterSpec& cluster);

}  // namespace tessera

#pragma once

#include <vector>

#include "hw/topology/topology.h"
#include "hw/units/input_error.h"

namespace tessera {

/// What looks wrong in a description that can be used: cables whose two directions differ, NVLinks
/// that are not those of the GPU, links slower than what they have to carry. Faults of the
/// description are reported like oversights: they are what makes the links differ.
std::vector<Problem> doubts_about(const Topology& topology);

/// Bandwidths of a GPU or node that differ from those of the catalog's entry with the same id.
std::vector<Problem> differences_from_catalog(const GpuSpec& gpu, const GpuSpec& catalog);
std::vector<Problem> differences_from_catalog(const NodeSpec& node, const NodeSpec& catalog);

}  // namespace tessera

#pragma once

#include <functional>
#include <string>

#include "hw/gpu.h"

namespace tessera {

/// Finds the description of a GPU by the id in a measurement file; throws InputError if unknown.
using GpuLookup = std::function<GpuSpec(const std::string& id)>;

}  // namespace tessera

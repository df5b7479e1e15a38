#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "hw/gpu.h"

namespace tessera {

/// A table of GPUs, one a line: memory, bandwidth, dense peaks by number format, power, die, price
/// [USD/h]. A dash stands for what a GPU does not have or nobody published. What is wider than
/// `width` columns goes on in a table below, under the same ids.
std::string gpu_table(std::span<const GpuSpec> gpus, std::size_t width);

/// Every field of a GPU with its value, what it means, and where the figure comes from.
std::string gpu_facts(const GpuSpec& gpu);

}  // namespace tessera

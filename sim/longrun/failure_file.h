#pragma once

#include <filesystem>
#include <vector>

#include "sim/reliability/failure_model.h"

namespace tessera {

/// Reads a file of failures (docs/howto/plan_a_month.md has its keys) for nodes of `gpus_per_node`
/// GPUs: events of what comes with each GPU (gpu, hbm, nic, link) grow with their number. Throws
/// InputError with every problem as file:line:column.
FailureModel read_failures(const std::filesystem::path& file, int gpus_per_node);

/// Reads a record of faults, a CSV with the columns node, start_day and end_day, and description
/// or component as the cause. Nodes from `nodes` on are left out. Throws InputError naming the
/// line.
std::vector<RecordedFault> read_fault_trace(const std::filesystem::path& file, int nodes);

}  // namespace tessera

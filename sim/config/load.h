#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "hw/gpu.h"
#include "hw/node.h"
#include "sim/config/catalog.h"
#include "sim/scenario/scenario.h"
#include "workloads/host_table.h"
#include "workloads/model_spec.h"

namespace tessera {

/// Reads a scenario (its id in the catalog, or a file), applies `overrides`
/// ("parallelism.tensor=4", the later one wins) and checks it. Throws one InputError with every
/// problem as file:line:column.
Scenario load_scenario(const std::filesystem::path& id_or_file,
                       std::span<const std::string> overrides, const Catalog& catalog);

/// A catalog id or a file (what ends in .yaml, .yml or .json, or has a slash). Throws InputError
/// with every problem.
/// Of a GPU also the beginning of its id, where one alone begins so (Catalog::completed).
GpuSpec load_gpu(const std::string& id_or_file, const Catalog& catalog);
NodeSpec load_node(const std::string& id_or_file, const Catalog& catalog);
ClusterSpec load_cluster(const std::string& id_or_file, const Catalog& catalog);
/// Also reads a Hugging Face config.json.
ModelSpec load_model(const std::string& id_or_file, const Catalog& catalog);

/// A framework profile.
FrameworkProfile load_framework(const std::string& id_or_file, const Catalog& catalog);

/// An overlay of `tessera calibrate`.
GpuOverlay load_overlay(const std::string& id_or_file, const Catalog& catalog);

/// `host` as a file that `training.host: file` of a scenario reads, bit by bit.
std::string host_yaml(const HostTable& host);
/// `overlay` as a file that `load_overlay` and `overlays: [file]` of a scenario read, bit by bit.
std::string overlay_yaml(const GpuOverlay& overlay);

/// Measured collectives of `tessera calibrate nccl`, and the file of such.
CollectiveSettings load_collectives(const std::string& id_or_file, const Catalog& catalog);
std::string collectives_yaml(const CollectiveSettings& settings);

/// The scenario as one self-contained file: defaults written out, references inlined. Loads again
/// to an equal scenario.
std::string resolved_yaml(const Scenario& scenario);

}  // namespace tessera

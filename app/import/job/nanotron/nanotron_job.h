#pragma once

#include <string>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/imported_job.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// Whether `tree` is a training file of nanotron.
bool holds_nanotron_job(const YamlNode& tree);

/// nanotron's file as its fields, beside which a script may have set kConnections.
ImportedJob import_nanotron_fields(ForeignFields fields, const std::string& name,
                                   const JobOptions& options);

inline constexpr const char* kConnections = "CUDA_DEVICE_MAX_CONNECTIONS";

}  // namespace tessera

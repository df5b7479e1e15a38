#pragma once

#include <string>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/imported_job.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// Whether `tree` is a training file of llm-foundry (scripts/train/train.py).
bool holds_foundry_job(const YamlNode& tree);

/// The file as its fields, over which a command line may have set others; what refers to another
/// field ("${max_seq_len}") is resolved here.
ImportedJob import_foundry_fields(ForeignFields fields, const std::string& name,
                                  const JobOptions& options);

}  // namespace tessera

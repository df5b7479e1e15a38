#pragma once

#include "app/import/job/foreign_fields.h"
#include "app/import/job/scenario_draft.h"

namespace tessera::torchtitan {

/// Precision of products, weights and gradients. `casts`: FSDP casts to mixed_precision_param, or
/// autocast does where a replica is one GPU. Returns whether products are in fp8.
bool read_precision(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options, bool casts);

}  // namespace tessera::torchtitan

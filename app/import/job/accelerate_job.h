#pragma once

#include <functional>
#include <string>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/imported_job.h"
#include "app/import/job/scenario_draft.h"

namespace tessera {

/// What a training program's arguments add to a job that accelerate distributes as `kind` says
/// ("FSDP"), and to the sizes that its files give.
using ProgramReader = std::function<void(ScenarioDraft& draft, ForeignFields& fields,
                                         const std::string& kind, const BatchSizes& sizes)>;

/// accelerate's configuration as its fields, with a program that decides what the file leaves open.
ImportedJob import_accelerate_fields(ForeignFields fields, const std::string& name,
                                     const JobOptions& options, ProgramReader program = {});

}  // namespace tessera

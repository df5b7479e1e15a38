#pragma once

#include <string>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/imported_job.h"
#include "app/import/job/scenario_draft.h"

namespace tessera {

/// Arguments of the program ("--optim") among `in`, of a job that accelerate distributes as `kind`
/// says. Those that change the step and that no scenario knows are problems of `in`.
void read_trainer_program(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                          const std::string& kind);

}  // namespace tessera

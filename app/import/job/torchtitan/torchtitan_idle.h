#pragma once

#include "app/import/job/foreign_fields.h"
#include "app/import/job/scenario_draft.h"

namespace tessera::torchtitan {

/// What a job does not have.
struct Absent {
  bool tensor = false, stages = false, context = false, compilation = false, float8 = false;
};

/// Says which keys have no part in a job that is without what they speak of.
void say_idle_keys(ScenarioDraft& draft, ForeignFields& in, const Absent& absent);

}  // namespace tessera::torchtitan

#pragma once

#include <vector>

#include "hw/units/input_error.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// The rule book: every rule between fields of a scenario. Rules within one field (ranges, required
/// values) belong to the schema, rules within the hardware to hw/validation.h. `Problem::where` is
/// the path of the field to change, `Problem::other` those that it conflicts with.
///
/// Everything that keeps `scenario` from being simulated: broken rules between its fields, or else,
/// where these hold, what its framework cannot run.
std::vector<Problem> check_scenario(const Scenario& scenario);
/// Throws InputError with all of that.
void require_sound(const Scenario& scenario);

/// Between fields of the model, the step and the cluster. Fields out of their own range make no
/// problem here.
std::vector<Problem> check_fields(const Scenario& scenario);
/// What the framework's modules cannot run of a scenario whose fields agree.
std::vector<Problem> check_framework(const Scenario& scenario);
/// The part of check_fields that concerns a model alone; paths start with "model.".
std::vector<Problem> check_model(const ModelSpec& model);

}  // namespace tessera

#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace tessera {

/// A rule between fields that a scenario breaks.
struct ScenarioProblem {
  std::string path;                ///< the field to change: "parallelism.tensor"
  std::vector<std::string> other;  ///< the fields that it conflicts with
  std::string what;
  std::string hint;
};

/// Every rule between fields of the model, the step and the size of the cluster that `scenario`
/// breaks. Rules within one field (ranges, required values) belong to the schema, rules within the
/// hardware to hw/validation.h; fields that break those make no problem here.
std::vector<ScenarioProblem> check_scenario(const Scenario& scenario);

/// The part of it that concerns a model alone; paths start with "model.".
std::vector<ScenarioProblem> check_model(const ModelSpec& model);

}  // namespace tessera

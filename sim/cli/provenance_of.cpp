#include "sim/cli/provenance_of.h"

#include "hw/link_notes.h"
#include "sim/plan/plan.h"
#include "sim/scenario/names.h"

namespace tessera {

Provenance provenance_of(const Scenario& scenario, const PredictorWeights& weights,
                         const TimedProgram& timed) {
  const PredictionBasis basis = prediction_basis(scenario, weights, timed);
  return {.scenario = scenario.name,
          .model = scenario.model.name,
          .mode = std::string(name_of(scenario.step.mode)),
          .framework = scenario.step.framework.name,
          .recompute = std::string(name_of(scenario.step.recompute)),
          .predictor = std::string(name_of(scenario.predictor_form)),
          .predictor_mode = std::string(name_of(basis.mode)),
          .predictor_effect = basis.effect,
          .predictor_notes = basis.notes,
          .link_notes = notes_on_links(scenario.cluster),
          .tessera_version = TESSERA_VERSION,
          .approximations = scenario.approximations};
}

}  // namespace tessera

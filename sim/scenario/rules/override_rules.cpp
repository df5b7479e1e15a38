// Rules of what replaces a part of a scenario: overlays of GPUs, perturbed GPUs.
#include <string>

#include "predictor/gpu/gpu_support.h"
#include "sim/scenario/perturbation.h"
#include "sim/scenario/rules/rules.h"

namespace tessera {
namespace {

/// An overlay that has no effect would be mistaken for one that has.
void check_overlays(const Scenario& scenario, Problems& problems) {
  const std::string& gpu = scenario.cluster.node.gpu.id;
  for (std::size_t i = 0; i < scenario.overlays.size(); ++i) {
    const std::string path = "overlays[" + std::to_string(i) + "]";
    const std::string& of = scenario.overlays[i].gpu;
    if (of != gpu) {
      problems.push_back(
          {path + ".gpu",
           path + ".gpu = " + of + ", but the GPU of cluster " + scenario.cluster.id + " is " + gpu,
           "remove the overlay, or calibrate " + gpu,
           {"cluster.node.gpu.id"}});
    } else if (i > 0) {
      problems.push_back({path, path + " is a second overlay of " + gpu, "keep one"});
    }
  }
  if (scenario.overlays.empty() || scenario.predictor_form == PredictorForm::tessera) return;
  problems.push_back({"overlays",
                      "overlays correct the predictor form tessera alone",
                      "use predictor.form = tessera, or remove them",
                      {"predictor.form"}});
}

void check_perturbation(const Scenario& scenario, Problems& problems) {
  const Precision precision = scenario.step.precision;
  for (std::size_t i = 0; i < scenario.perturbation.gpus.size(); ++i) {
    const GpuPerturbation& gpus = scenario.perturbation.gpus[i];
    const std::string path = "perturbation.gpus[" + std::to_string(i) + "]";
    try {
      ranks_of(gpus, scenario.step.layout);
    } catch (const InputError& error) {
      const Problem& problem = error.problems().front();
      const std::string field = path + "." + problem.where;
      problems.push_back({field,
                          field + " " + problem.what,
                          problem.hint,
                          {"parallelism.tensor", "parallelism.pipeline", "parallelism.data"}});
    }
    if (!gpus.gpu.id.empty() && !supports_products(gpus.gpu, precision)) {
      problems.push_back({path + ".gpu",
                          path + ".gpu = " + gpus.gpu.id + " has no arithmetic in " +
                              std::string(name_of(precision)),
                          "use another GPU, or another training.precision",
                          {"training.precision"}});
    }
  }
}

}  // namespace

void check_overrides(const Scenario& scenario, Problems& problems) {
  check_overlays(scenario, problems);
  check_perturbation(scenario, problems);
}

}  // namespace tessera

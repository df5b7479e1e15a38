#include "app/cli/provenance_of.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "hw/link_notes.h"
#include "sim/collectives/measured_fabric.h"
#include "sim/plan/plan.h"
#include "sim/scenario/names.h"
#include "workloads/layer_patterns.h"
#include "workloads/vision/architectures.h"

namespace tessera {

namespace {

/// As simulated: a memory plan takes the place of training.recompute (sim/plan/plan.cpp).
Recompute recompute_of(const Scenario& scenario) {
  return scenario.memory.planner == MemoryPlanner::off ? scenario.step.recompute : Recompute::none;
}

using Note = std::optional<std::string>;

/// What the framework has to do where replicas train different numbers of sequences.
Note note_on_batches(const Scenario& scenario) {
  const std::vector<int>& counts = scenario.step.split.micro_batches_per_replica;
  if (counts.empty() || std::ranges::min(counts) == std::ranges::max(counts)) return {};
  return "replicas take " + std::to_string(std::ranges::min(counts)) + " to " +
         std::to_string(std::ranges::max(counts)) + " of " +
         std::to_string(std::accumulate(counts.begin(), counts.end(), 0)) +
         " micro-batches: the mean of their gradients has to be weighted by these";
}

Note note_on_plan(const Scenario& scenario) {
  if (recompute_of(scenario) == scenario.step.recompute) return {};
  return "training.recompute = " + std::string(name_of(scenario.step.recompute)) +
         " does not hold: memory.planner = " + std::string(name_of(scenario.memory.planner)) +
         " chooses what runs again, where the step does not fit without";
}

Note note_on_inference(const Scenario& scenario) {
  const ModelFamily family = scenario.model.family;
  const bool generates = family != ModelFamily::bert && family != ModelFamily::vision;
  if (scenario.step.mode != StepMode::inference || !generates) return {};
  const bool one_token = scenario.step.sequence_length == 1;
  return std::string("no KV cache is kept or read: ") +
         (one_token ? "one token attends to itself alone, which is no decoding step"
                    : "a forward pass over whole sequences");
}

/// docs/decisions/0058-muon.md
Note note_on_muon(const Scenario& scenario) {
  if (!is_muon(scenario.step.optimizer)) return {};
  return "muon: no measured step was at hand to compare with; matrices that are joined in the "
         "model (queries, keys and values; gate and up) are made orthogonal as one";
}

/// docs/decisions/0062-gated-delta-nets.md
Note note_on_states(const Scenario& scenario) {
  const std::string& pattern = scenario.model.layer_pattern;
  const bool mamba = pattern.find_first_of("MH") != std::string::npos;
  const bool delta = pattern.find_first_of("GK") != std::string::npos;
  const bool short_ones = pattern.find(layer_letter::kShortConvolution) != std::string::npos;
  if (short_ones && !mamba && !delta)
    return "short convolutions: the kernels of causal-conv1d were never measured; each counts as a "
           "pass over what it reads and writes";
  if (pattern.find(layer_letter::kScan) != std::string::npos)
    return "Mamba-1 layers: their scan was never measured; it counts as a pass over what it reads "
           "and writes, with 9 operations for each number of a state";
  if (!mamba && !delta) return {};
  const bool of_kimi = pattern.find(layer_letter::kKimiDelta) != std::string::npos;
  const char* layers = mamba     ? "Mamba-2 layers"
                       : of_kimi ? "Kimi delta attention"
                                 : "gated delta nets";
  return std::string(layers) +
         ": their Triton kernels were never measured; products count as batched ones";
}

Note note_on_diffusion(const Scenario& scenario) {
  const VisionArchitecture architecture = scenario.model.architecture;
  const bool diffuses = is_dit(architecture) || architecture == VisionArchitecture::latent_unet;
  if (!diffuses || scenario.step.mode != StepMode::training) return {};
  return "diffusion: the step begins with latents and conditions; no image is encoded, and no "
         "average of the weights is kept";
}

Note note_on_dora(const Scenario& scenario) {
  if (!scenario.step.dora) return {};
  return "dora: no measured step was at hand to compare with";
}

Note note_on_sequences(const Scenario& scenario) {
  const FrameworkProfile& framework = scenario.step.framework;
  const int tensor = scenario.step.layout.tensor;
  if (framework.tensor_plan != TensorPlan::sequence || tensor == 1) return {};
  return "tensor-parallel ranks share sequences (parallelism.sequence_parallel: true), as those "
         "of " +
         framework.name + " always do";
}

/// What a result does not say by itself.
std::vector<std::string> notes_of(const Scenario& scenario) {
  std::vector<std::string> notes;
  for (const auto& note_on : {note_on_batches, note_on_plan, note_on_inference, note_on_muon,
                              note_on_states, note_on_diffusion, note_on_dora, note_on_sequences})
    if (const Note note = note_on(scenario)) notes.push_back(*note);
  return notes;
}

/// Links, and what a measured fabric makes of them.
std::vector<std::string> link_notes_of(const Scenario& scenario) {
  std::vector<std::string> notes = notes_on_links(scenario.cluster);
  const std::string note =
      note_on_measured_fabric(measured_fabric(scenario.cluster, scenario.collectives.tuning()));
  if (!note.empty()) notes.push_back(note);
  return notes;
}

}  // namespace

Provenance provenance_of(const Scenario& scenario, const PredictorWeights& weights,
                         const TimedProgram& timed) {
  const PredictionBasis basis = prediction_basis(scenario, weights, timed);
  return {.scenario = scenario.name,
          .model = scenario.model.name,
          .mode = std::string(name_of(scenario.step.mode)),
          .framework = scenario.step.framework.name,
          .recompute = std::string(name_of(recompute_of(scenario))),
          .predictor = std::string(name_of(scenario.predictor_form)),
          .predictor_mode = std::string(name_of(basis.mode)),
          .predictor_effect = basis.effect,
          .predictor_notes = basis.notes,
          .link_notes = link_notes_of(scenario),
          .notes = notes_of(scenario),
          .parameters = parameter_counts(scenario.model, timed.program.parameters),
          .tessera_version = TESSERA_VERSION,
          .approximations = scenario.approximations};
}

}  // namespace tessera

#include "sim/validate/training_run_scenario.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "hw/box.h"
#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/scenario/attention_choice.h"
#include "sim/scenario/check_scenario.h"

namespace tessera {
namespace {

// Learned positions of the published models.
constexpr std::int64_t kGptPositions = 1024;
constexpr std::int64_t kBertPositions = 512;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool names_any(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

ModelSpec model_of_training_run(const TrainingRun& run) {
  const bool bert = run.family == "bert";
  return {.name = run.model.empty() ? run.family : run.model,
          .family = bert ? ModelFamily::bert : ModelFamily::gpt2,
          .layers = run.layers,
          .hidden = run.hidden,
          .heads = run.heads,
          .kv_heads = run.heads,
          .head_dim = run.hidden / run.heads,
          .ffn = run.ffn,
          .vocab = run.vocab,
          .max_positions = std::max(run.sequence_length, bert ? kBertPositions : kGptPositions),
          .token_types = bert ? 2 : 0,
          .activation = bert ? Activation::gelu : Activation::gelu_new};
}

ClusterSpec cluster_of_training_run(const TrainingRun& run, const Catalog& catalog) {
  const GpuSpec gpu = load_gpu(run.gpu, catalog);
  if (run.n_gpus == 1) return single_gpu_cluster(gpu);
  for (const std::string& id : catalog.ids(CatalogKind::clusters)) {
    ClusterSpec cluster = load_cluster(id, catalog);
    if (cluster.node.gpu.id == gpu.id && cluster.gpu_count() == run.n_gpus) return cluster;
  }
  if (run.gpus_per_node < run.n_gpus) {
    throw InputError({run.where,
                      "n_gpus = " + std::to_string(run.n_gpus) +
                          " on several nodes: the catalog has "
                          "no cluster of that many " +
                          run.gpu,
                      "describe it in configs/hw/clusters, or use rows of one node"});
  }
  return box_of(gpu, run.n_gpus);
}

StepOptions step_of_training_run(const TrainingRun& run, const Catalog& catalog) {
  const std::string framework = lower(run.framework);
  const bool compiled = names_any(framework, {"compile", "fused", "inductor"});
  const bool hugging_face = names_any(framework, {"hf", "hugging", "eager"});
  StepOptions step;
  step.mode = StepMode::training;
  const bool modules_of_hugging_face = compiled || hugging_face || run.family == "bert";
  step.framework = load_framework(modules_of_hugging_face ? "hf-eager" : "megatron-local", catalog);
  step.kernels = compiled ? KernelMode::fused : KernelMode::eager;
  step.sequence_length = run.sequence_length;
  step.micro_batch = run.micro_batch;
  step.global_batch = run.global_batch;
  step.layout = run.layout;
  return step;
}

}  // namespace

Scenario scenario_of_training_run(const TrainingRun& run, const Catalog& catalog) {
  if (run.layout.world_size() != run.n_gpus) {
    throw InputError({run.where,
                      "tp * pp * dp = " + std::to_string(run.layout.world_size()) +
                          ", n_gpus = " + std::to_string(run.n_gpus),
                      "make them agree"});
  }
  Scenario scenario{.name = run.where,
                    .model = model_of_training_run(run),
                    .cluster = cluster_of_training_run(run, catalog),
                    .step = step_of_training_run(run, catalog)};
  choose_attention(scenario.step, scenario.cluster.node.gpu);
  std::vector<Problem> problems;
  for (const ScenarioProblem& problem : check_scenario(scenario))
    problems.push_back({run.where, problem.what, problem.hint});
  if (!problems.empty()) throw InputError(std::move(problems));
  return scenario;
}

}  // namespace tessera

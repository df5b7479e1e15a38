#include "sim/validate/training_run_scenario.h"

#include <algorithm>
#include <string>

#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/scenario/attention_choice.h"
#include "sim/scenario/check_scenario.h"
#include "sim/validate/image_runs.h"
#include "sim/validate/training_run_cluster.h"

namespace tessera {
namespace {

// Learned positions of the published models.
constexpr std::int64_t kGptPositions = 1024;
constexpr std::int64_t kBertPositions = 512;

/// Rows of BLOOM and its prototypes are of family gpt, and name it.
bool is_bloom(const TrainingRun& run) {
  return run.family == "gpt" && run.model.starts_with("BLOOM");
}

ModelFamily family_of(const TrainingRun& run) {
  if (run.family == "bert") return ModelFamily::bert;
  if (run.family == "llama") return ModelFamily::llama;
  return is_bloom(run) ? ModelFamily::bloom : ModelFamily::gpt2;
}

ModelSpec model_of_training_run(const TrainingRun& run) {
  if (run.family == kImageFamily) return image_model_of_run(run.model);
  const bool bert = run.family == "bert";
  const bool llama = run.family == "llama";
  const bool mpt = run.family == "mpt";  // GPT with exact GELU, trained without dropout; positions
                                         // learned, as llm-foundry's files for training say
  const double dropout = llama || mpt ? 0 : 0.1;
  ModelSpec model;
  model.name = run.model.empty() ? run.family : run.model;
  model.family = family_of(run);
  model.layers = run.layers;
  model.hidden = run.hidden;
  model.heads = run.heads;
  model.kv_heads = run.kv_heads;
  model.head_dim = run.hidden / run.heads;
  model.ffn = run.ffn;
  model.vocab = run.vocab;
  const bool placeless = llama || is_bloom(run);
  model.max_positions =
      placeless ? 0 : std::max(run.sequence_length, bert ? kBertPositions : kGptPositions);
  model.token_types = bert ? 2 : 0;
  model.activation = bert || mpt ? Activation::gelu
                     : llama     ? Activation::swiglu
                                 : Activation::gelu_new;
  if (run.gated_mlp && !llama) model.activation = Activation::swiglu;
  model.experts = run.experts;
  model.experts_per_token = run.experts_per_token;
  model.hidden_dropout = model.attention_dropout = dropout;
  model.tied_embeddings = run.tied_embeddings;
  model.qk_norm = run.qk_norm;
  return model;
}

FrameworkProfile profile_of_training_run(const TrainingRun& run, const FrameworkAliases& aliases,
                                         const Catalog& catalog) {
  std::string id =
      run.framework.empty() ? "megatron-local" : aliases.profile_of(run.framework, catalog);
  if (id.empty()) {
    throw InputError({run.where, "framework = '" + run.framework + "' stands for no profile",
                      "add it to configs/frameworks/aliases.csv"});
  }
  const bool local = run.local_modules && id == "megatron";
  if (local) id = "megatron-local";
  if (run.family == "bert") id = "hf-eager";
  FrameworkProfile profile = load_framework(id, catalog);
  profile.deterministic = run.deterministic;
  if (run.compiled) profile.kernels = KernelMode::fused;
  profile.loss_in_place = profile.loss_in_place || local;  // since Megatron-Core r0.6
  if (!run.flash_attention) return profile;
  const bool megatron = profile.modules == ModuleTree::megatron;
  const bool is_fused = profile.attention != AttentionKernels::unfused &&
                        profile.attention != AttentionKernels::fused_softmax;
  if (*run.flash_attention && !is_fused) profile.attention = AttentionKernels::flash2;
  if (!*run.flash_attention)
    profile.attention = megatron ? AttentionKernels::fused_softmax : AttentionKernels::unfused;
  return profile;
}

/// Where stages do not divide the layers the first ones have one more, as DeepSpeed cuts equal
/// items (partition_uniform); no numbers where they do.
std::vector<int> uneven_stages(const TrainingRun& run) {
  const int stages = run.layout.pipeline;
  const auto layers = static_cast<int>(run.layers);
  if (layers % stages == 0 || layers < stages || run.layout.virtual_stages > 1) return {};
  std::vector<int> split(static_cast<std::size_t>(stages), layers / stages);
  for (int stage = 0; stage < layers % stages; ++stage) ++split[static_cast<std::size_t>(stage)];
  return split;
}

StepOptions step_of_training_run(const TrainingRun& run, const FrameworkAliases& aliases,
                                 const Catalog& catalog) {
  StepOptions step;
  step.mode = StepMode::training;
  step.framework = profile_of_training_run(run, aliases, catalog);
  step.kernels = step.framework.kernels;
  step.precision = parse_precision(run.precision);
  step.formats = step.framework.formats(step.precision);
  step.recompute = run.recompute;
  step.sequence_length = run.sequence_length;
  if (run.family == kImageFamily) train_images(step);
  step.micro_batch = run.micro_batch;
  step.global_batch = run.global_batch;
  step.layout = run.layout;
  step.split.layers_per_stage = uneven_stages(run);
  step.data_parallel = step.framework.data_parallel;
  step.data_parallel.sharding = run.sharding;
  step.data_parallel.shard_group = run.shard_group >= run.layout.replicas() ? 0 : run.shard_group;
  if (run.layout.virtual_stages > 1) step.schedule = PipelineSchedule::interleaved_1f1b;
  return step;
}

}  // namespace

Scenario scenario_of_training_run(const TrainingRun& run, const FrameworkAliases& aliases,
                                  const Catalog& catalog) {
  if (run.layout.world_size() != run.n_gpus) {
    throw InputError({run.where,
                      "tp * pp * dp * cp = " + std::to_string(run.layout.world_size()) +
                          ", n_gpus = " + std::to_string(run.n_gpus),
                      "make them agree"});
  }
  Scenario scenario{.name = run.where,
                    .model = model_of_training_run(run),
                    .cluster = cluster_of_training_run(run, catalog),
                    .step = step_of_training_run(run, aliases, catalog)};
  scenario.collectives.tuner = aliases.tuner_of(run.framework);
  choose_attention(scenario.step, scenario.cluster.node.gpu);
  std::vector<Problem> problems;
  for (const ScenarioProblem& problem : check_scenario(scenario))
    problems.push_back({run.where, problem.what, problem.hint});
  if (!problems.empty()) throw InputError(std::move(problems));
  return scenario;
}

}  // namespace tessera

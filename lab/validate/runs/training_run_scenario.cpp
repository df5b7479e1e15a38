#include "lab/validate/runs/training_run_scenario.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hw/units/input_error.h"
#include "lab/validate/models/image_runs.h"
#include "lab/validate/runs/training_run_cluster.h"
#include "sim/config/load.h"
#include "sim/config/with_settings.h"
#include "sim/scenario/attention_choice.h"
#include "sim/scenario/check_scenario.h"

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
  if (is_llama(run)) return ModelFamily::llama;
  return is_bloom(run) ? ModelFamily::bloom : ModelFamily::gpt2;
}

Activation activation_of(const TrainingRun& run) {
  if (run.family == "hybrid") return run.activation.value_or(Activation::relu_squared);
  if (is_llama(run) || run.gated_mlp) return Activation::swiglu;
  const bool exact = run.family == "bert" || run.family == "mpt";
  return run.activation.value_or(exact ? Activation::gelu : Activation::gelu_new);
}

ModelSpec model_of_training_run(const TrainingRun& run) {
  if (run.family == kImageFamily) return image_model_of_run(run.model);
  const bool bert = run.family == "bert";
  const bool llama = is_llama(run);
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
  model.head_dim = run.head_dim > 0 ? run.head_dim : run.hidden / run.heads;
  model.ffn = run.dense_ffn > 0 ? run.dense_ffn : run.ffn;
  model.expert_ffn = run.dense_ffn > 0 ? run.ffn : 0;
  model.q_rank = run.q_rank;
  model.kv_rank = run.kv_rank;
  model.rope_dim = run.rope_dim;
  model.v_head_dim = run.v_head_dim;
  model.shared_ffn = run.shared_ffn;
  model.dense_layers = run.dense_layers;
  model.mtp_layers = run.mtp_layers;
  model.vocab = run.vocab;
  const bool placeless = llama || is_bloom(run);
  model.max_positions =
      placeless ? 0 : std::max(run.sequence_length, bert ? kBertPositions : kGptPositions);
  model.token_types = bert ? 2 : 0;
  // Of SQuAD, where a word begins and where it ends.
  model.outputs = bert && run.model.find("squad") != std::string::npos ? 2 : 0;
  model.activation = activation_of(run);
  model.experts = run.experts;
  model.experts_per_token = run.experts_per_token;
  model.hidden_dropout = model.attention_dropout = dropout;
  model.tied_embeddings = run.tied_embeddings;
  // Megatron's --qk-layernorm: of latent attention the norms of its ranks, which it has anyway.
  model.qk_norm = run.qk_norm && run.kv_rank == 0;
  return model;
}

RunFacts facts_of(const TrainingRun& run, const GpuSpec& gpu) {
  return {.where = run.where,
          .gpu = gpu.id,
          .architecture = gpu.architecture,
          .flash_attention = run.flash_attention.value_or(false),
          .fp8 = run.precision == "fp8" || run.precision == "nvfp4",
          .year = run.year > 0 ? run.year : year_in(run.framework)};
}

/// What columns say of the profile's code.
void set_options(const TrainingRun& run, FrameworkProfile& profile) {
  profile.deterministic = run.deterministic;
  if (run.compiled) profile.kernels = KernelMode::fused;
  if (run.fp8_scaling) profile.fp8_scaling = *run.fp8_scaling;
  profile.cuda_graphs = run.cuda_graphs;
  if (run.overlap_tensor_products) profile.overlap_tensor_products = *run.overlap_tensor_products;
  if (run.overlap_tensor_gradients)
    profile.overlap_tensor_gradients = *run.overlap_tensor_gradients;
  if (!run.flash_attention) return;
  const bool megatron = profile.modules == ModuleTree::megatron;
  const bool is_fused = profile.attention != AttentionKernels::unfused &&
                        profile.attention != AttentionKernels::fused_softmax;
  if (*run.flash_attention && !is_fused) profile.attention = AttentionKernels::flash2;
  if (!*run.flash_attention)
    profile.attention = megatron ? AttentionKernels::fused_softmax : AttentionKernels::unfused;
}

FrameworkProfile profile_of_training_run(const TrainingRun& run, std::string id,
                                         const Catalog& catalog) {
  const bool local = run.local_modules && id == "megatron";
  if (local) id = "megatron-local";
  if (run.family == "bert") id = "hf-eager";
  FrameworkProfile profile = load_framework(id, catalog);
  profile.loss_in_place = profile.loss_in_place || local;  // since Megatron-Core r0.6
  set_options(run, profile);
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

/// Megatron accumulates gradients in the format that it sums them in.
void set_formats(const TrainingRun& run, StepOptions& step) {
  step.formats = step.framework.formats(step.precision);
  if (run.reduce) step.formats.reduce = *run.reduce;
  if (run.reduce && step.framework.modules == ModuleTree::megatron)
    step.formats.gradients = *run.reduce;
  if (run.gradients) step.formats.gradients = *run.gradients;
}

void set_data_parallel(const TrainingRun& run, StepOptions& step) {
  step.data_parallel = step.framework.data_parallel;
  step.data_parallel.sharding = run.sharding;
  step.data_parallel.shard_group = run.shard_group >= run.layout.replicas() ? 0 : run.shard_group;
  if (!run.bucket) return;
  step.data_parallel.bucket = *run.bucket;
  step.data_parallel.first_bucket = std::min(step.data_parallel.first_bucket, *run.bucket);
  step.data_parallel.bucket_per_replica = Bytes();
}

void set_split(const TrainingRun& run, StageSplit& split) {
  split.embedding_as_layer = run.embedding_as_layer;
  split.head_as_layer = run.head_as_layer;
  const bool equal_items = !run.embedding_as_layer && !run.head_as_layer;
  if (equal_items) split.layers_per_stage = uneven_stages(run);
}

StepOptions step_of_training_run(const TrainingRun& run, FrameworkProfile profile) {
  StepOptions step;
  step.mode = StepMode::training;
  step.framework = std::move(profile);
  step.kernels = step.framework.kernels;
  step.precision = run.precision == "nvfp4" ? Precision::fp4 : parse_precision(run.precision);
  set_formats(run, step);
  step.recompute = run.recompute;
  step.sequence_length = run.sequence_length;
  if (run.family == kImageFamily) train_images(step);
  if (run.optimizer) step.optimizer = *run.optimizer;
  step.micro_batch = run.micro_batch;
  step.global_batch = run.global_batch;
  step.layout = run.layout;
  set_split(run, step.split);
  set_data_parallel(run, step);
  if (run.layout.virtual_stages > 1) step.schedule = PipelineSchedule::interleaved_1f1b;
  if (run.schedule) step.schedule = *run.schedule;
  return step;
}

/// Fields that follow from others where the row does not state them, and do so anew where its
/// settings change those.
std::vector<std::string> derived_fields(const TrainingRun& run, const Scenario& scenario) {
  std::vector<std::string> fields{"training.kernels"};
  if (!run.gradients && !run.reduce) fields.emplace_back("training.mixed_precision");
  const DataParallel& own = scenario.step.framework.data_parallel;
  for (const char* field :
       {"gather_units", "overlap_gradients", "align_gradients", "overlap_parameters",
        "align_parameters", "reduce_each_micro_batch", "units_ahead"}) {
    fields.push_back("training.data_parallel." + std::string(field));
  }
  if (!run.bucket) {
    for (const char* field : {"bucket", "first_bucket", "bucket_per_replica"})
      fields.push_back("training.data_parallel." + std::string(field));
  }
  if (scenario.step.data_parallel.shard_group == own.shard_group)
    fields.emplace_back("training.data_parallel.shard_group");
  if (!run.schedule) fields.emplace_back("training.schedule");
  if (!run.micro_batch_stated) fields.emplace_back("training.micro_batch");
  if (run.head_dim == 0) fields.emplace_back("model.head_dim");
  if (run.kv_heads == run.heads) fields.emplace_back("model.kv_heads");
  return fields;
}

/// Settings may say everything but make the row another job than the one that was measured.
Scenario with_settings_of(const TrainingRun& run, const Scenario& scenario,
                          const Catalog& catalog) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw InputError({run.where, "settings: " + what, hint});
  };
  try {
    const Scenario changed =
        with_settings(scenario, run.settings, derived_fields(run, scenario), catalog);
    if (changed.cluster.node.gpu.id != scenario.cluster.node.gpu.id)
      refuse("the cluster has " + changed.cluster.node.gpu.id + ", the row " + run.gpu,
             "make them agree");
    if (changed.step.layout.world_size() != run.n_gpus)
      refuse("parallelism needs " + std::to_string(changed.step.layout.world_size()) +
                 " GPUs, n_gpus = " + std::to_string(run.n_gpus),
             "make them agree");
    return changed;
  } catch (const InputError& error) {
    std::vector<Problem> problems;
    for (const Problem& problem : error.problems()) {
      const bool placed = problem.where == run.where || problem.where.empty();
      problems.push_back(
          {run.where, placed ? problem.what : problem.where + ": " + problem.what, problem.hint});
    }
    throw InputError(std::move(problems));
  }
}

void check_nvlink(const TrainingRun& run, const NodeSpec& node) {
  if (run.node_has_nvlink || run.n_gpus == 1 || node.interconnect == GpuInterconnect::none) return;
  throw InputError({run.where, "nvlink = no: " + node.id + " has NVLink",
                    "say in settings what links the node has (cluster=FILE)"});
}

void require_agreement(const TrainingRun& run) {
  if (run.layout.world_size() == run.n_gpus) return;
  throw InputError({run.where,
                    "tp * pp * dp * cp = " + std::to_string(run.layout.world_size()) +
                        ", n_gpus = " + std::to_string(run.n_gpus),
                    "make them agree"});
}

void require_sound(const TrainingRun& run, const Scenario& scenario) {
  std::vector<Problem> problems;
  for (const ScenarioProblem& problem : check_scenario(scenario))
    problems.push_back({run.where, problem.what, problem.hint});
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

bool is_llama(const TrainingRun& run) {
  return run.family == "llama" || run.family == "hybrid" || (run.family == "moe" && run.gated_mlp);
}

Scenario scenario_of_training_run(const TrainingRun& run, const FrameworkAliases& aliases,
                                  const Catalog& catalog) {
  if (run.settings.empty()) require_agreement(run);
  const ClusterSpec cluster = cluster_of_training_run(run, catalog);
  check_nvlink(run, cluster.node);
  const ProfileChoice choice =
      aliases.choice_of(run.framework, facts_of(run, cluster.node.gpu), catalog);
  Scenario scenario{
      .name = run.where,
      .model = model_of_training_run(run),
      .cluster = cluster,
      .step = step_of_training_run(run, profile_of_training_run(run, choice.profile, catalog))};
  scenario.collectives.tuner = choice.tuner;
  scenario.approximations = run.approximations;
  if (!run.settings.empty()) return with_settings_of(run, scenario, catalog);
  choose_attention(scenario.step, scenario.cluster.node.gpu);
  require_sound(run, scenario);
  return scenario;
}

}  // namespace tessera

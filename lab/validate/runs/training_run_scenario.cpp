#include "lab/validate/runs/training_run_scenario.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "lab/validate/row_scenario.h"
#include "lab/validate/runs/training_run_cluster.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

using Settings = std::vector<std::string>;

RunFacts facts_of(const TrainingRun& run, const GpuSpec& gpu) {
  return {.where = run.where,
          .gpu = gpu.id,
          .architecture = gpu.architecture,
          .flash_attention = run.stated("flash_attention") == "1",
          .fp8 = run.precision == "fp8" || run.precision == "nvfp4",
          .year = run.year > 0 ? run.year : year_in(run.framework)};
}

/// The profile that stands for the row's framework. Rules name another for some families, and
/// Megatron-Core without Transformer Engine overwrites the logits of its loss since r0.6.
std::string profile_of(const TrainingRun& run, const std::string& chosen, Settings& settings) {
  const bool local = run.stated("local_modules") == "1" && chosen == "megatron";
  const std::string own = run.stated("profile");
  const std::string id = !own.empty() ? own : local ? "megatron-local" : chosen;
  settings.push_back("training.framework=" + id);
  if (local) settings.emplace_back("training.framework.loss_in_place=true");
  return id;
}

/// Fused attention is FlashAttention-2 where the profile has none of its own.
void add_attention(const TrainingRun& run, const FrameworkProfile& profile, Settings& settings) {
  const std::string stated = run.stated("flash_attention");
  const bool fused = profile.attention != AttentionKernels::unfused &&
                     profile.attention != AttentionKernels::fused_softmax;
  const bool megatron = profile.modules == ModuleTree::megatron;
  if (stated == "1" && !fused) settings.emplace_back("training.framework.attention=flash2");
  if (stated == "0")
    settings.push_back(std::string("training.framework.attention=") +
                       (megatron ? "fused_softmax" : "unfused"));
}

/// Megatron accumulates gradients in the format that it sums them in.
void add_gradients(const TrainingRun& run, const FrameworkProfile& profile, Settings& settings) {
  const std::string reduce = run.stated("grad_reduce_dtype");
  const bool one_buffer = profile.modules == ModuleTree::megatron && !reduce.empty();
  if (one_buffer && run.stated("grad_accum_dtype").empty())
    settings.push_back("training.mixed_precision.gradients=" + reduce);
}

/// PyTorch's DistributedDataParallel counts gradients of the parameters' format, whatever sums
/// them.
std::int64_t widening_of_sums(const TrainingRun& run, const FrameworkProfile& profile) {
  const bool in_16_bits = run.precision == "bf16" || run.precision == "fp16";
  return profile.bucket_copies && in_16_bits && profile.bf16.reduce == Precision::fp32 ? 2 : 1;
}

/// No bucket is larger than the stated ones.
void add_buckets(const TrainingRun& run, const FrameworkProfile& profile, Settings& settings) {
  if (!run.bucket) return;
  const Bytes bucket = *run.bucket * widening_of_sums(run, profile);
  const Bytes first = std::min(profile.data_parallel.first_bucket, bucket);
  settings.push_back("training.data_parallel.bucket=" + to_text(bucket));
  settings.push_back("training.data_parallel.first_bucket=" + to_text(first));
}

void add_approximations(const TrainingRun& run, Settings& settings) {
  if (run.approximations.empty()) return;
  std::string list;
  for (const std::string& text : run.approximations)
    list += (list.empty() ? "" : ", ") + quoted(text);
  settings.push_back("approximations=[" + list + "]");
}

void check_nvlink(const TrainingRun& run, const NodeSpec& node) {
  if (run.node_has_nvlink || run.n_gpus == 1 || node.interconnect == GpuInterconnect::none) return;
  throw InputError({run.where, "nvlink = no: " + node.id + " has NVLink",
                    "say in settings what links the node has (cluster=FILE)"});
}

/// Of a row without settings, which may say another layout than the columns.
void require_agreement(const TrainingRun& run) {
  if (!run.settings.empty() || run.layout.world_size() == run.n_gpus) return;
  throw InputError({run.where,
                    "tp * pp * dp * cp = " + std::to_string(run.layout.world_size()) +
                        ", n_gpus = " + std::to_string(run.n_gpus),
                    "make them agree"});
}

/// Settings may say everything but make the row another job than the one that was measured.
void require_same_job(const TrainingRun& run, const std::string& gpu, const Scenario& scenario) {
  const std::string own = scenario.cluster.node.gpu.id;
  if (own != gpu)
    throw InputError({run.where, "settings: the cluster has " + own + ", the row " + run.gpu,
                      "make them agree"});
  if (scenario.step.layout.world_size() == run.n_gpus) return;
  throw InputError({run.where,
                    "settings: parallelism needs " +
                        std::to_string(scenario.step.layout.world_size()) +
                        " GPUs, n_gpus = " + std::to_string(run.n_gpus),
                    "make them agree"});
}

}  // namespace

std::vector<std::string> settings_of_training_run(const TrainingRun& run,
                                                  const FrameworkAliases& aliases,
                                                  const Catalog& catalog) {
  if (!run.scenario.empty()) return run.settings;
  require_agreement(run);
  RunCluster cluster = cluster_of_training_run(run, catalog);
  check_nvlink(run, cluster.node);
  const ProfileChoice choice =
      aliases.choice_of(run.framework, facts_of(run, cluster.node.gpu), catalog);
  Settings settings = std::move(cluster.settings);
  const FrameworkProfile profile =
      load_framework(profile_of(run, choice.profile, settings), catalog);
  settings.insert(settings.end(), run.said.begin(), run.said.end());
  add_attention(run, profile, settings);
  add_gradients(run, profile, settings);
  add_buckets(run, profile, settings);
  if (choice.tuner == NcclTuner::v2_8) settings.emplace_back("collectives.tuner=v2_8");
  add_approximations(run, settings);
  settings.insert(settings.end(), run.settings.begin(), run.settings.end());
  return settings;
}

Scenario scenario_of_training_run(const TrainingRun& run, const FrameworkAliases& aliases,
                                  const Catalog& catalog) {
  if (!run.scenario.empty()) return load_scenario(run.scenario, run.settings, catalog);
  const Settings settings = settings_of_training_run(run, aliases, catalog);
  Scenario scenario = scenario_of_row(settings, run.settings, run.where, catalog);
  if (!run.settings.empty()) require_same_job(run, load_gpu(run.gpu, catalog).id, scenario);
  return scenario;
}

}  // namespace tessera

#include "lab/validate/models/model_run_scenario.h"

#include <map>
#include <string_view>

#include "hw/box.h"
#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/scenario/attention_choice.h"

namespace tessera {
namespace {

/// Catalog ids of the models that NeuSight's artifact and the measurement files call otherwise.
const std::map<std::string, std::string> kModelNames{
    {"bert_large", "bert-large"}, {"gpt2_large", "gpt2-large"}, {"gpt3_27", "gpt3-2.7b"},
    {"gpt3_xl", "gpt3-xl"},       {"opt_13", "opt-1.3b"},       {"switchxl4", "switch-xl4"}};

ModelSpec model_of(const ModelRun& run, const Catalog& catalog) {
  const auto renamed = kModelNames.find(run.model);
  return load_model(renamed == kModelNames.end() ? run.model : renamed->second, catalog);
}

ClusterSpec cluster_of(const ModelRun& run, const Catalog& catalog) {
  const GpuSpec gpu = load_gpu(run.gpu, catalog);
  if (run.n_gpus == 1) return single_gpu_cluster(gpu);
  for (const std::string& id : catalog.ids(CatalogKind::clusters)) {
    const ClusterSpec cluster = load_cluster(id, catalog);
    if (cluster.node_count == 1 && cluster.node.gpu.id == gpu.id &&
        cluster.gpu_count() == run.n_gpus) {
      return cluster;
    }
  }
  return box_of(gpu, run.n_gpus);
}

constexpr std::string_view kFusedSuffix = "_fused";

/// Part of the step that was timed, and the kernels that ran: "training", "inference_fused", ...
void set_mode(const ModelRun& run, const Catalog& catalog, StepOptions& step) {
  const bool one_gpu = run.n_gpus == 1;
  const bool fused = run.mode.ends_with(kFusedSuffix);
  const std::string mode = run.mode.substr(0, run.mode.size() - (fused ? kFusedSuffix.size() : 0));
  step.framework = load_framework(one_gpu ? "hf-eager" : "megatron-local", catalog);
  step.kernels = fused ? KernelMode::fused : KernelMode::eager;
  if (mode == "training") {
    step.mode = one_gpu ? StepMode::forward_backward : StepMode::training;
  } else if (mode == "inference") {
    step.mode = StepMode::inference;
  } else {
    throw InputError({run.where, "mode = '" + run.mode + "'",
                      "use training or inference, with _fused behind it for torch.compile"});
  }
}

StepOptions step_of(const ModelRun& run, const Catalog& catalog) {
  StepOptions step;
  set_mode(run, catalog, step);
  step.layout = run.layout;
  step.sequence_length = run.seq_len;
  step.global_batch = run.batch;
  const std::int64_t parts = std::int64_t{run.layout.data} * run.micro_batches;
  if (run.batch % parts != 0) {
    throw InputError(
        {run.where, "batch = " + std::to_string(run.batch),
         "make it a multiple of data-parallel size x micro_batches = " + std::to_string(parts)});
  }
  step.micro_batch = run.batch / parts;
  return step;
}

}  // namespace

Scenario scenario_of_run(const ModelRun& run, PredictorForm form, const Catalog& catalog) {
  if (run.layout.world_size() != run.n_gpus) {
    throw InputError({run.where,
                      "parallelism = '" + run.parallelism + "' needs " +
                          std::to_string(run.layout.world_size()) +
                          " GPUs, n_gpus = " + std::to_string(run.n_gpus),
                      "make them agree"});
  }
  Scenario scenario{.name = run.model + " " + run.parallelism + " on " + run.gpu,
                    .model = model_of(run, catalog),
                    .cluster = cluster_of(run, catalog),
                    .step = step_of(run, catalog),
                    .predictor_form = form};
  choose_attention(scenario.step, scenario.cluster.node.gpu);
  return scenario;
}

}  // namespace tessera

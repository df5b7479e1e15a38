#include "lab/validate/models/model_run_scenario.h"

#include <map>
#include <string_view>

#include "hw/box.h"
#include "hw/units/input_error.h"
#include "lab/validate/row_scenario.h"
#include "sim/config/load.h"
#include "sim/scenario/names.h"

namespace tessera {
namespace {

/// Catalog ids of the models that NeuSight's artifact and the measurement files call otherwise.
const std::map<std::string, std::string> kModelNames{
    {"bert_large", "bert-large"}, {"gpt2_large", "gpt2-large"}, {"gpt3_27", "gpt3-2.7b"},
    {"gpt3_xl", "gpt3-xl"},       {"opt_13", "opt-1.3b"},       {"switchxl4", "switch-xl4"}};

using Settings = std::vector<std::string>;

std::string model_id(const std::string& name) {
  const auto renamed = kModelNames.find(name);
  return renamed == kModelNames.end() ? name : renamed->second;
}

/// The catalog's single node with that GPU and count, else one built from the GPU's own links.
Settings cluster_of(const ModelRun& run, const Catalog& catalog) {
  const GpuSpec gpu = load_gpu(run.gpu, catalog);
  const std::string name = catalog.completed(CatalogKind::gpus, run.gpu);
  if (run.n_gpus == 1) return settings_of_node(single_gpu_cluster(gpu).node, name);
  for (const std::string& id : catalog.ids(CatalogKind::clusters)) {
    const ClusterSpec cluster = load_cluster(id, catalog);
    if (cluster.node_count == 1 && cluster.node.gpu.id == gpu.id &&
        cluster.gpu_count() == run.n_gpus)
      return {"cluster=" + id};
  }
  return settings_of_node(box_of(gpu, run.n_gpus).node, name);
}

constexpr std::string_view kFusedSuffix = "_fused";

/// Part of the step that was timed, and the kernels that ran: "training", "inference_fused", ...
void add_mode(const ModelRun& run, Settings& settings) {
  const bool one_gpu = run.n_gpus == 1;
  const bool fused = run.mode.ends_with(kFusedSuffix);
  const std::string mode = run.mode.substr(0, run.mode.size() - (fused ? kFusedSuffix.size() : 0));
  if (mode != "training" && mode != "inference")
    throw InputError({run.where, "mode = '" + run.mode + "'",
                      "use training or inference, with _fused behind it for torch.compile"});
  const bool whole = mode == "inference" || !one_gpu;
  settings.push_back(std::string("training.framework=") +
                     (one_gpu ? "hf-eager" : "megatron-local"));
  settings.push_back(std::string("training.kernels=") + (fused ? "fused" : "eager"));
  settings.push_back("training.mode=" + (whole ? mode : "forward_backward"));
}

void add_batch(const ModelRun& run, Settings& settings) {
  const std::int64_t parts = std::int64_t{run.layout.data} * run.micro_batches;
  if (run.batch % parts != 0)
    throw InputError(
        {run.where, "batch = " + std::to_string(run.batch),
         "make it a multiple of data-parallel size x micro_batches = " + std::to_string(parts)});
  const auto set = [&](const char* path, std::int64_t value) {
    settings.push_back(path + ("=" + std::to_string(value)));
  };
  set("training.global_batch", run.batch);
  set("training.micro_batch", run.batch / parts);
  set("training.sequence_length", run.seq_len);
  set("parallelism.tensor", run.layout.tensor);
  set("parallelism.pipeline", run.layout.pipeline);
  set("parallelism.data", run.layout.data);
}

}  // namespace

std::vector<std::string> settings_of_run(const ModelRun& run, PredictorForm form,
                                         const Catalog& catalog) {
  if (run.layout.world_size() != run.n_gpus) {
    throw InputError({run.where,
                      "parallelism = '" + run.parallelism + "' needs " +
                          std::to_string(run.layout.world_size()) +
                          " GPUs, n_gpus = " + std::to_string(run.n_gpus),
                      "make them agree"});
  }
  Settings settings = cluster_of(run, catalog);
  settings.push_back("model=" + quoted(model_id(run.model)));
  add_mode(run, settings);
  add_batch(run, settings);
  settings.push_back("predictor.form=" + std::string(name_of(form)));
  settings.push_back("name=" + quoted(run.model + " " + run.parallelism + " on " + run.gpu));
  return settings;
}

Scenario scenario_of_run(const ModelRun& run, PredictorForm form, const Catalog& catalog) {
  return scenario_of_row(settings_of_run(run, form, catalog), {}, run.where, catalog);
}

}  // namespace tessera

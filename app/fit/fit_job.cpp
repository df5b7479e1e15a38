#include "app/fit/fit_job.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "app/fit/job_kind.h"
#include "app/import/job/fused_attention.h"
#include "app/import/job/scenario_draft.h"
#include "hw/units/input_error.h"
#include "predictor/gpu/gpu_support.h"
#include "sim/config/files/text_file.h"
#include "sim/config/files/yaml_text.h"
#include "sim/config/load.h"
#include "workloads/model_features.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Images have none.
void forget_sequences(ImportedJob& job) {
  std::erase_if(job.assumed,
                [](const std::string& line) { return line.starts_with("sequence length"); });
  for (YamlEntry& section : job.scenario.entries)
    if (section.key == "training")
      std::erase_if(section.value.entries,
                    [](const YamlEntry& field) { return field.key == "sequence_length"; });
}

/// A model alone: one copy on each GPU, as Hugging Face's importer has it.
ImportedJob job_of_model(const std::string& id_or_file, JobOptions options,
                         const Catalog& catalog) {
  const ModelSpec model = load_model(id_or_file, catalog);
  const bool sees = model.family == ModelFamily::vision;
  const bool plain = fields_of_megatron_alone(model).empty();
  ScenarioDraft draft;
  options.model = id_or_file;
  options.longest_sequence = model.max_positions;
  set_model_and_framework(draft, options, model.name, plain ? "hf-eager" : "megatron");
  assume_precision(draft, options, plain && !sees && options.framework.empty());
  if (plain) assume_fused_attention(draft, options, model.family);
  ForeignFields nothing;
  set_data_parallel_job(draft, nothing, options, {.width = options.replica_gpus});
  ImportedJob job = draft.finish({});
  if (sees) forget_sequences(job);
  return job;
}

/// Files of one text.
struct TextKind {
  JobKind kind;
  ImportedJob (*importer)(const std::string&, const std::string&, const JobOptions&);
  const char* name;
};
constexpr std::array<TextKind, 6> kTextKinds{
    {{JobKind::torchtitan, import_torchtitan, "torchtitan job"},
     {JobKind::deepspeed, import_deepspeed, "DeepSpeed job"},
     {JobKind::trainer, import_trainer_file, "job of Hugging Face's Trainer"},
     {JobKind::accelerate, import_accelerate, "accelerate job"},
     {JobKind::nanotron, import_nanotron, "nanotron job"},
     {JobKind::foundry, import_foundry, "llm-foundry job"}}};

/// What importers are told of the model that their file does not describe.
JobOptions with_model(JobOptions options, const std::string& what, const Catalog& catalog) {
  const fs::path folder = fs::path(what).parent_path();
  options.folder = folder.empty() ? "." : folder;
  if (options.model.empty()) return options;
  options.model = model_or_config(options.model);
  return with_spec(std::move(options), load_model(options.model, catalog));
}

/// How the user lays out a model alone: what shares a copy, and how many there are. Where that is
/// left open, all GPUs of the cluster; one copy, which the scenario refuses, where none fits.
/// Settings that no scenario takes are told by the scenario.
JobOptions laid_out(JobOptions options, std::span<const std::string> overrides) {
  const auto size_of = [&](const char* field) {
    constexpr std::int64_t kMost = 30'000;  // four of them stay within 64 bits
    return std::clamp<std::int64_t>(number_in(overrides, "parallelism", field).value_or(1), 1,
                                    kMost);
  };
  options.replica_gpus = size_of("tensor") * size_of("pipeline") * size_of("context");
  if (options.gpus > 0) return options;
  if (number_in(overrides, "parallelism", "data"))
    options.gpus = size_of("data") * options.replica_gpus;
  else if (options.replica_gpus > options.cluster_gpus)
    options.gpus = options.replica_gpus;
  return options;
}

std::string need_cluster(const JobOptions& options, const std::string& what) {
  if (!options.cluster.empty()) return options.cluster;
  throw InputError({what, "does not name a cluster",
                    "name one behind it: tessera list clusters has the ids, rtx-4090-pcie-1 is a "
                    "single card"});
}

/// A scenario says all that these options say of a model or of another program's file.
void refuse_options_of_jobs(const JobOptions& options) {
  std::vector<Problem> problems;
  const auto refuse = [&](const std::string& option, bool given, const std::string& hint) {
    if (given) problems.push_back({option, "is not for a scenario, which says it itself", hint});
  };
  const auto field = [&](const std::string& option, std::int64_t value, const std::string& path) {
    refuse(option, value > 0, "use --set " + path + "=" + std::to_string(value));
  };
  refuse("--model", !options.model.empty(), "use --set model=" + options.model);
  refuse("--framework", !options.framework.empty(),
         "use --set training.framework=" + options.framework);
  refuse("--gpus", options.gpus > 0, "use --set parallelism.data=N and the like");
  field("--sequence-length", options.sequence_length, "training.sequence_length");
  field("--global-batch", options.global_batch, "training.global_batch");
  field("--micro-batch", options.micro_batch, "training.micro_batch");
  field("--vocab", options.vocabulary, "model.vocab");
  refuse("--define", !options.variables.empty(), "leave it out");
  refuse("--args", !options.arguments.empty(), "leave it out");
  if (!problems.empty()) throw InputError(std::move(problems));
}

/// `overrides` behind what the options say of the cluster: a scenario names another.
std::vector<std::string> with_cluster(const std::string& what, const JobOptions& options,
                                      std::vector<std::string> overrides, const Catalog& catalog) {
  std::vector<std::string> all;
  if (!options.cluster.empty() && job_kind(what, catalog) == JobKind::scenario)
    all.push_back("cluster=" + options.cluster);
  if (options.nodes > 0) all.push_back("cluster.node_count=" + std::to_string(options.nodes));
  std::ranges::move(overrides, std::back_inserter(all));
  return all;
}

/// Hints that name fields of scenarios for which there are options.
std::vector<Problem> by_options(std::vector<Problem> problems) {
  constexpr std::string_view kField = "cluster.node_count = ";
  for (Problem& problem : problems) {
    if (const std::size_t at = problem.hint.find(kField); at != std::string::npos)
      problem.hint.replace(at, kField.size(), "--nodes ");
    if (problem.what.find("nodes without a NIC") != std::string::npos)
      problem.hint =
          "the job has more GPUs than a node: name a cluster of larger nodes or with a "
          "network, or give fewer by --gpus";
  }
  return problems;
}

}  // namespace

FitJob::Read FitJob::scenario_file(const std::string& what, const Catalog& catalog) {
  const bool is_id =
      what.find('/') == std::string::npos && catalog.has(CatalogKind::scenarios, what);
  const fs::path file = is_id ? catalog.file(CatalogKind::scenarios, what) : fs::path(what);
  return {.source = open_scenario(file, catalog), .kind = "scenario", .assumed = {}, .ignored = {}};
}

FitJob::Read FitJob::of_import(const ImportedJob& job, const std::string& name,
                               const std::string& kind, const Catalog& catalog) {
  const auto origin = std::make_shared<Origin>(Origin{name + ", as a scenario", "", false});
  return {.source = ScenarioSource(parse_yaml(to_yaml(job.scenario), origin), name, catalog),
          .kind = kind,
          .assumed = job.assumed,
          .ignored = job.ignored};
}

FitJob::Read FitJob::read(const std::string& what, const JobOptions& given,
                          std::span<const std::string> overrides, const Catalog& catalog) {
  const JobKind kind = job_kind(what, catalog);
  if (kind == JobKind::scenario) {
    refuse_options_of_jobs(given);
    return scenario_file(what, catalog);
  }
  JobOptions options = with_model(given, what, catalog);
  const ClusterSpec cluster = cluster_with(need_cluster(options, what), overrides, catalog);
  const std::string name = shown_path(what);
  options.cluster_gpus = cluster.gpu_count();
  options.node_gpus = cluster.node.gpu_count;
  options.precision = name_of(usual_precision(cluster.node.gpu));
  if (kind == JobKind::megatron) {
    const ImportedJob job = import_script(read_text_file(what), name, options);
    return of_import(job, name, job.kind, catalog);
  }
  const auto known = std::ranges::find(kTextKinds, kind, &TextKind::kind);
  if (known != kTextKinds.end())
    return of_import(known->importer(read_text_file(what), name, options), name, known->name,
                     catalog);
  if (kind == JobKind::model)
    return of_import(job_of_model(what, laid_out(options, overrides), catalog), name, "model",
                     catalog);
  const fs::path file = fs::is_directory(what) ? fs::path(what) / "config.json" : fs::path(what);
  return of_import(import_hugging_face(file, laid_out(options, overrides)), name, "model", catalog);
}

FitJob::FitJob(const std::string& what, const JobOptions& options,
               std::vector<std::string> overrides, const Catalog& catalog)
    : overrides_(with_cluster(what, options, std::move(overrides), catalog)),
      read_(read(what, options, overrides_, catalog)) {
  try {
    scenario_ = read_.source.with_overrides(overrides_);
  } catch (const InputError& error) {
    throw InputError(by_options(error.problems()));
  }
}

Scenario FitJob::with(std::span<const std::string> settings) const {
  std::vector<std::string> all = overrides_;
  all.insert(all.end(), settings.begin(), settings.end());
  return read_.source.with_overrides(all);
}

}  // namespace tessera

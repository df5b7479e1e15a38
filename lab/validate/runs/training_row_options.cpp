#include "lab/validate/runs/training_row_options.h"

#include <map>

#include "hw/units/precision.h"
#include "lab/validate/runs/framework_aliases.h"
#include "lab/validate/runs/recipe_settings.h"

namespace tessera {
namespace {

std::optional<PipelineSchedule> schedule_of(const std::string& word) {
  using enum PipelineSchedule;
  static const std::map<std::string, PipelineSchedule> kSchedules{
      {"1f1b", one_f_one_b}, {"gpipe", gpipe},
      {"afab", gpipe},       {"interleaved", interleaved_1f1b},
      {"zb_h1", zb_h1},      {"zb_h2", zb_h2},
      {"dualpipe", dualpipe}};
  const auto found = kSchedules.find(word);
  if (found == kSchedules.end()) return std::nullopt;
  return found->second;
}

std::optional<Activation> activation_of(const std::string& word) {
  using enum Activation;
  static const std::map<std::string, Activation> kActivations{
      {"gelu", gelu},
      {"gelu_new", gelu_new},
      {"relu", relu},
      {"swiglu", swiglu},
      {"squared relu", relu_squared},
      {"clamped quick-gelu glu, biases", swiglu}};
  const auto found = kActivations.find(word);
  if (found == kActivations.end()) return std::nullopt;
  return found->second;
}

std::optional<OptimizerKind> optimizer_of(const std::string& word) {
  using enum OptimizerKind;
  static const std::map<std::string, OptimizerKind> kOptimizers{
      {"adam", adam}, {"adamw", adam}, {"Adam", adam}, {"AdamW", adam}, {"sgd", sgd},
      {"lamb", lamb}, {"LAMB", lamb},  {"lars", lars}, {"LARS", lars}};
  const auto found = kOptimizers.find(word);
  if (found == kOptimizers.end()) return std::nullopt;
  return found->second;
}

std::optional<Precision> format_of(const TrainingRowReader& row, const char* column) {
  if (!row.states(column)) return std::nullopt;
  return parse_precision(row.text(column));
}

void read_formats(const TrainingRowReader& row, TrainingRun& run) {
  const std::string recipe = row.text("fp8_recipe");
  if (recipe.starts_with("current")) run.fp8_scaling = Fp8Scaling::current;
  if (recipe.starts_with("delayed")) run.fp8_scaling = Fp8Scaling::delayed;
  if (recipe.starts_with("mxfp8")) run.fp8_scaling = Fp8Scaling::mxfp8;
  run.gradients = format_of(row, "grad_accum_dtype");
  run.reduce = format_of(row, "grad_reduce_dtype");
}

/// Graphs of whole layers; those of a part of a layer (the router's) are left out.
CudaGraphs graphs_of(const TrainingRowReader& row) {
  const std::string kind = row.text("cuda_graph");
  const std::string scope = row.text("cuda_graph_scope");
  if (kind == "full_iteration" || scope == "full_iteration") return CudaGraphs::full_iteration;
  const bool whole_layers = scope.empty() || scope == "none";
  const bool of_layers = kind == "local" || kind == "transformer_engine";
  return of_layers && whole_layers ? CudaGraphs::layers : CudaGraphs::off;
}

/// What the row states and the simulation leaves out, in words.
void read_approximations(const TrainingRowReader& row, TrainingRun& run) {
  const auto approximate = [&](const char* column, const char* what) {
    run.approximations.push_back(std::string(column) + " = " + row.text(column) + ": " + what);
  };
  if (row.flag("fp8_attention").value_or(false))
    approximate("fp8_attention", "attention multiplies in bf16");
  const bool tokens = row.states("dispatcher") && row.text("dispatcher") != "alltoall";
  if (tokens && row.text("model").find("tokendrop") != std::string::npos)
    approximate("dispatcher", "no token is dropped");
  if (run.family == "hybrid")
    approximate("family", "the kernels of Mamba-2 layers were never measured");
}

/// GPUs of a rack that share NVLink are one node.
void read_domain(const TrainingRowReader& row, TrainingRun& run) {
  run.node_has_nvlink = row.text("nvlink") != "no";
  if (!row.states("nvlink_domain")) return;
  const auto domain = static_cast<int>(row.count("nvlink_domain"));
  if (domain >= run.n_gpus) run.gpus_per_node = run.n_gpus;
  if (domain < run.gpus_per_node && domain < run.n_gpus)
    row.complain("nvlink_domain", "a node of gpus_per_node GPUs is in one domain");
  if (domain < run.n_gpus && domain >= 2 * run.gpus_per_node)
    row.complain("nvlink_domain", "several nodes share NVLink: give gpus_per_node of the domain");
}

}  // namespace

void read_options(const TrainingRowReader& row, TrainingRun& run) {
  read_formats(row, run);
  read_domain(row, run);
  run.activation = activation_of(row.text("activation"));
  run.optimizer = optimizer_of(row.text("optimizer"));
  run.schedule = schedule_of(row.text("pp_schedule"));
  run.overlap_tensor_products = row.flag("tp_overlap");
  run.overlap_tensor_gradients = row.flag("tp_async");
  run.embedding_as_layer = row.flag("embedding_as_layer").value_or(false);
  run.head_as_layer = row.flag("head_as_layer").value_or(false);
  if (row.states("ddp_bucket_MB")) {
    constexpr double kMiB = 1 << 20;
    run.bucket = Bytes(static_cast<std::int64_t>(kMiB * row.positive("ddp_bucket_MB")));
  }
  if (row.text("outcome") == "ok") run.outcome = RunOutcome::ran;
  if (row.text("outcome") == "oom") run.outcome = RunOutcome::out_of_memory;
  run.cuda_graphs = graphs_of(row);
  read_approximations(row, run);
  run.year = year_in(row.text("date"));
  run.settings = recipe_settings(row);
  for (std::string& setting : row.words("settings")) run.settings.push_back(std::move(setting));
}

PeakRank peak_rank_of(const TrainingRowReader& row) {
  const std::string rank = row.text("memory_rank");
  if (rank == "0") return PeakRank::first;
  const bool last = row.text("notes").find("LAST rank") != std::string::npos;
  return rank == "last" || last ? PeakRank::last : PeakRank::fullest;
}

}  // namespace tessera

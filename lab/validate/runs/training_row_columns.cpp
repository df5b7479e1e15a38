#include "lab/validate/runs/training_row_columns.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string_view>

#include "lab/validate/models/image_runs.h"

namespace tessera {
namespace {

/// Columns that are read into a TrainingRun.
const std::set<std::string_view> kRead{"activation",
                                       "all_reduce_GBps",
                                       "attention",
                                       "cp",
                                       "cuda_graph",
                                       "cuda_graph_scope",
                                       "date",
                                       "dense_ffn",
                                       "ddp_bucket_MB",
                                       "dispatcher",
                                       "dp",
                                       "embedding_as_layer",
                                       "ep",
                                       "ep_overlap",
                                       "etp",
                                       "expert_capacity_factor",
                                       "fp8_attention",
                                       "experts",
                                       "experts_per_token",
                                       "family",
                                       "ffn",
                                       "first_dense_layers",
                                       "flash_attention",
                                       "fp8_recipe",
                                       "framework",
                                       "fsdp",
                                       "gated_mlp",
                                       "global_batch",
                                       "gpu",
                                       "gpus_per_node",
                                       "grad_accum_dtype",
                                       "grad_reduce_dtype",
                                       "head_as_layer",
                                       "head_dim",
                                       "heads",
                                       "hidden",
                                       "id",
                                       "inter_node_GBps_per_gpu",
                                       "kind",
                                       "kv_heads",
                                       "kv_lora_rank",
                                       "layer_pattern",
                                       "layers",
                                       "lora_rank",
                                       "memory_metric",
                                       "memory_rank",
                                       "micro_batch",
                                       "micro_batches",
                                       "model",
                                       "mtp_layers",
                                       "n_gpus",
                                       "notes",
                                       "nvlink",
                                       "nvlink_domain",
                                       "offload_layers",
                                       "optimizer",
                                       "outcome",
                                       "peak_memory_GiB",
                                       "pp",
                                       "pp_layout",
                                       "pp_schedule",
                                       "precision",
                                       "q_lora_rank",
                                       "qk_nope_head_dim",
                                       "qk_norm",
                                       "qk_rope_head_dim",
                                       "recompute",
                                       "recompute_layers",
                                       "recompute_modules",
                                       "reshard_after_forward",
                                       "seq_len",
                                       "sequence_parallel",
                                       "settings",
                                       "shared_expert_ffn",
                                       "source",
                                       "step_time_s",
                                       "tied_embeddings",
                                       "tp",
                                       "tp_async",
                                       "tp_mode",
                                       "tp_overlap",
                                       "v_head_dim",
                                       "virtual_stages",
                                       "vocab",
                                       "window",
                                       "zero_group_size",
                                       "zero_stage"};

/// Columns that say where a figure comes from, or figures that follow from others.
const std::set<std::string_view> kHarmless{"all_gather_GBps",
                                           "all_gather_intra_GBps",
                                           "all_reduce_intra_GBps",
                                           "assumed",
                                           "comment",
                                           "derived",
                                           "images_per_s",
                                           "licence",
                                           "license",
                                           "model_tflops_per_gpu",
                                           "name",
                                           "older",
                                           "page",
                                           "pp_fix",
                                           "quality",
                                           "recipe",
                                           "recipe_match",
                                           "reduce_scatter_GBps",
                                           "reduce_scatter_intra_GBps",
                                           "release",
                                           "repeats",
                                           "samples_per_s",
                                           "split",
                                           "system",
                                           "tokens_per_s",
                                           "tokens_per_s_per_gpu",
                                           "url"};

/// A column with the values that the simulation can express; an empty field always can be.
struct Expressible {
  const char* column;
  std::set<std::string_view> values;
  const char* hint;  ///< behind "is not simulated"; may be empty
};
const std::array<Expressible, 20> kExpressible{{
    {"precision", {"fp32", "tf32", "bf16", "fp16", "fp8", "nvfp4"}, ""},
    {"family", {"gpt", "moe", "mpt", "bert", "llama", "hybrid", "cnn"}, ""},
    {"kind", {"pretraining", "lora"}, ": pretraining and lora are"},
    {"outcome", {"ok", "oom"}, ": ok and oom are understood"},
    {"zero_stage", {"0", "1", "2", "3"}, ""},
    {"recompute", {"none", "selective", "full"}, ""},
    {"optimizer", {"adam", "adamw", "Adam", "AdamW", "sgd", "lamb", "LAMB", "lars", "LARS"}, ""},
    {"nvlink", {"yes", "no", "nvswitch"}, ": yes, no and nvswitch are understood"},
    {"memory_rank", {"0", "last"}, ": 0 and last are understood"},
    {"tp_mode", {"reduce_scatter", "all_reduce"}, ""},
    {"pp_schedule", {"1f1b", "gpipe", "afab", "interleaved", "zb_h1", "zb_h2", "dualpipe"}, ""},
    {"attention", {"mha", "gqa", "mqa", "mla", "gqa+sink", "gqa+mamba2"}, ""},
    {"activation",
     {"gelu", "gelu_new", "swiglu", "relu", "clamped quick-gelu glu, biases", "squared relu"},
     ""},
    {"grad_accum_dtype", {"fp32", "bf16", "fp16"}, ""},
    {"grad_reduce_dtype", {"fp32", "bf16", "fp16"}, ""},
    {"dispatcher", {"alltoall", "deepep", "hybridep"}, ""},
    {"ep_overlap", {"0", "1"}, ""},
    {"fp8_attention", {"0", "1"}, ""},
    {"force_balance", {"1"}, ": experts are balanced"},
    {"pipeline_flushes", {"0", "1"}, ""},
}};

/// Options of Megatron-Core that its test cases carry in their names alone.
struct NamedOption {
  const char* part;
  const char* option;
};
constexpr std::array kOptionsBesides{
    NamedOption{"cross_entropy_loss_fusion", "a loss fused by torch.compile"},
    NamedOption{"defer_embedding_wgrad", "a deferred gradient of the embedding"},
    NamedOption{"tunable_overlap", "overlapped warm-up of the pipeline"},
    NamedOption{"uneven_pipeline", "a pipeline of uneven stages that no column describes"},
    NamedOption{"uninstall_te", "attention in fp16 without fused softmax"}};

std::string shown(const TrainingRowReader& row, const std::string& column) {
  return column + " = " + row.text(column);
}

std::string unknown_column(const TrainingRowReader& row, const std::vector<std::string>& columns,
                           const std::vector<std::string>& ignored) {
  for (const std::string& column : columns) {
    const bool listed =
        std::ranges::find(kExpressible, column, &Expressible::column) != std::end(kExpressible);
    const bool known = listed || kRead.contains(column) || kHarmless.contains(column) ||
                       std::ranges::find(ignored, column) != ignored.end();
    if (!known && row.states(column))
      return "column " + column +
             " is not known; say in settings what it means, or leave it out of the judgement "
             "(--ignore " +
             column + ")";
  }
  return {};
}

std::string inexpressible(const TrainingRowReader& row) {
  for (const auto& [column, values, hint] : kExpressible) {
    const std::string value = row.text(column);
    if (value.empty() || values.contains(value)) continue;
    return shown(row, column) + " is not simulated" + hint;
  }
  return {};
}

/// Columns that contradict each other, or mean what the simulation lacks together.
std::string contradiction(const TrainingRowReader& row) {
  const std::string recompute = row.text("recompute");
  const std::string stage = row.text("zero_stage");
  const bool split = row.states("tp") && row.text("tp") != "1";
  const bool in_parts = row.text("sequence_parallel") == "1";
  if (row.states("recompute_modules") && recompute != "selective")
    return shown(row, "recompute_modules") + " with recompute = " + recompute;
  if (split && row.text("tp_mode") == "reduce_scatter" && !in_parts)
    return "tp_mode = reduce_scatter without sequence_parallel = 1";
  if (split && row.text("tp_mode") == "all_reduce" && in_parts)
    return "tp_mode = all_reduce with sequence_parallel = 1";
  const bool shards = row.states("fsdp") && row.text("fsdp") != "0" && row.text("dp") != "1";
  if (shards && stage != "3") return shown(row, "fsdp") + " with zero_stage = " + stage;
  const std::string reshard = row.text("reshard_after_forward");
  if (!reshard.empty() && stage != (reshard == "1" ? "3" : "2"))
    return "reshard_after_forward = " + reshard + " with zero_stage = " + stage;
  const std::string virtual_stages = row.text("virtual_stages");
  const bool chunks = !virtual_stages.empty() && virtual_stages != "1";
  const std::string schedule = row.text("pp_schedule");
  if (!schedule.empty() && chunks != (schedule == "interleaved"))
    return "pp_schedule = " + schedule + " with virtual_stages = " + virtual_stages;
  if (row.text("outcome") == "oom" && (row.states("step_time_s") || row.states("peak_memory_GiB")))
    return "outcome = oom with a step time or a peak";
  return {};
}

std::string obstacle_of_fp8(const TrainingRowReader& row) {
  const std::string recipe = row.text("fp8_recipe");
  if (recipe.empty()) return {};
  if (row.text("precision") == "nvfp4" && recipe.starts_with("nvfp4")) return {};
  if (row.text("precision") != "fp8")
    return "fp8_recipe = " + recipe + " with precision = " + row.text("precision");
  const std::string scaling = recipe.substr(0, recipe.find(' '));
  if (scaling == "current" || scaling == "delayed" || recipe == "mxfp8 e4m3, blocks of 32")
    return {};
  return "fp8_recipe = " + recipe + " is not simulated: delayed, current and mxfp8 scaling are";
}

/// Latent attention needs all of its sizes but the query's rank, and nothing else has them.
std::string obstacle_of_latent(const TrainingRowReader& row) {
  const bool latent = row.text("attention") == "mla";
  for (const char* column :
       {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "q_lora_rank"}) {
    const bool optional = std::string_view(column) == "q_lora_rank";
    const bool given = row.states(column) && row.text(column) != "0";
    if (latent && !given && !optional) return "attention = mla without " + std::string(column);
    if (!latent && given) return shown(row, column) + " with attention = " + row.text("attention");
  }
  // Some write the part without positions, some all of a head.
  const auto number = [&](const char* column) { return std::atoll(row.text(column).c_str()); };
  const auto head = number("head_dim"), without_positions = number("qk_nope_head_dim");
  const auto all = without_positions + number("qk_rope_head_dim");
  if (latent && head != 0 && head != without_positions && head != all)
    return shown(row, "head_dim") + " is neither qk_nope_head_dim nor that and qk_rope_head_dim";
  return {};
}

/// What graphs hold, of those that the columns name.
std::string obstacle_of_graphs(const TrainingRowReader& row) {
  const std::string kind = row.text("cuda_graph");
  for (const char* known : {"", "none", "local", "transformer_engine", "full_iteration",
                            "moe_router moe_preprocess", "attention and mamba"}) {
    if (kind == known) return {};
  }
  return "cuda_graph = " + kind +
         " is not simulated: full_iteration, transformer_engine and local are";
}

/// What the gate of the MLP, its activation and the family say together.
std::string obstacle_of_mlp(const TrainingRowReader& row) {
  const std::string family = row.text("family");
  const std::string activation = row.text("activation");
  const bool gates = activation == "swiglu" || activation.starts_with("clamped");
  const bool gated = row.text("gated_mlp") == "1" || gates || family == "llama";
  const bool ungated = row.text("gated_mlp") == "0" || (!activation.empty() && !gates);
  if (gated && ungated)
    return "activation = " + activation + " and gated_mlp = " + row.text("gated_mlp") +
           " contradict each other in family " + family;
  const bool has_gates = family == "llama" || family == "gpt" || family == "moe";
  if (gated && !has_gates) return "gated_mlp = 1 is not simulated for family " + family;
  return {};
}

/// What names, notes and the framework's age say.
std::string obstacle_of_words(const TrainingRowReader& row) {
  for (const auto& [part, option] : kOptionsBesides) {
    if (row.text("source").find(part) != std::string::npos)
      return std::string(option) + " is not simulated";
  }
  const bool old_image = row.text("framework") == "Megatron-Core CI lts";
  if (old_image && !row.states("flash_attention") && row.text("recompute") != "full")
    return "the attention kernels are not stated, and the older image chose either";
  return {};
}

std::string obstacle_of_transformer(const TrainingRowReader& row) {
  for (const char* column : {"layers", "hidden", "heads", "vocab", "seq_len"}) {
    if (!row.states(column)) return std::string(column) + " is not stated";
  }
  const bool one_stage = !row.states("pp") || row.text("pp") == "1";
  if (!row.states("micro_batch") && !row.states("micro_batches") && !one_stage)
    return "micro_batch is not stated";
  if (row.text("optimizer") == "sgd")
    return "optimizer = sgd is not simulated: with or without momentum is not stated; say it in "
           "settings (training.optimizer=sgd has momentum)";
  const std::string mlp = obstacle_of_mlp(row);
  return mlp.empty() ? obstacle_of_words(row) : mlp;
}

}  // namespace

std::string obstacle_of(const TrainingRowReader& row, const std::vector<std::string>& columns,
                        const std::vector<std::string>& ignored) {
  if (!row.states("precision")) return "precision is not stated";
  for (const auto& found :
       {inexpressible(row), unknown_column(row, columns, ignored), contradiction(row),
        obstacle_of_fp8(row), obstacle_of_latent(row), obstacle_of_graphs(row)}) {
    if (!found.empty()) return found;
  }
  if (row.text("family") == kImageFamily) return image_obstacle(row.text("model"));
  return obstacle_of_transformer(row);
}

}  // namespace tessera

#include "lab/validate/runs/training_row_columns.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "lab/validate/runs/training_runs.h"

namespace tessera {
namespace {

std::string shown(const TrainingRowReader& row, const std::string& column) {
  return column + " = " + row.text(column);
}

std::string unknown_column(const TrainingRowReader& row, const RowRules& rules,
                           const std::vector<std::string>& ignored) {
  for (const auto& [column, text] : row.fields()) {
    if (rules.knows(column) || std::ranges::find(ignored, column) != ignored.end()) continue;
    return "column " + column +
           " is not known; say in settings what it means, or leave it out of the judgement "
           "(--ignore " +
           column + ")";
  }
  return {};
}

std::string inexpressible(const TrainingRowReader& row, const RowRules& rules) {
  for (const RowColumn& column : rules.columns()) {
    const bool free = column.kind != RowColumn::Kind::word || !row.states(column.name);
    if (free || column.word_of(row.text(column.name)) != nullptr) continue;
    return shown(row, column.name) + " is not simulated" + column.hint;
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

std::string obstacle_of_fp8(const TrainingRowReader& row, const RowMeaning& meaning) {
  if (!row.states("fp8_recipe")) return {};
  const bool four_bits = row.text("precision") == "nvfp4";
  if (four_bits && row.text("fp8_recipe").starts_with("nvfp4")) return {};
  if (row.text("precision") != "fp8")
    return shown(row, "fp8_recipe") + " with precision = " + row.text("precision");
  if (meaning.fields.contains("fp8_scaling")) return {};
  return shown(row, "fp8_recipe") +
         " is not simulated: delayed, current, blockwise and mxfp8 scaling are";
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
  return {};
}

}  // namespace

std::string obstacle_of(const TrainingRowReader& row, const RowMeaning& meaning,
                        const RowRules& rules, const std::vector<std::string>& ignored) {
  if (!row.states("precision")) return "precision is not stated";
  for (const auto& found :
       {inexpressible(row, rules), unknown_column(row, rules, ignored), contradiction(row),
        obstacle_of_fp8(row, meaning), obstacle_of_latent(row)}) {
    if (!found.empty()) return found;
  }
  if (row.text("family") == kImageFamily) return meaning.obstacle;
  for (const auto& found : {obstacle_of_transformer(row), obstacle_of_mlp(row)}) {
    if (!found.empty()) return found;
  }
  return meaning.obstacle;
}

}  // namespace tessera

#include "lab/validate/runs/training_runs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "hw/units/input_error.h"
#include "hw/units/read_file.h"
#include "lab/validate/models/image_runs.h"
#include "lab/validate/runs/training_row.h"
#include "lab/validate/runs/training_row_columns.h"
#include "lab/validate/runs/training_row_options.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

constexpr std::array kTrainingColumns{"gpu",     "n_gpus",       "precision",  "family",
                                      "layers",  "hidden",       "heads",      "vocab",
                                      "seq_len", "global_batch", "step_time_s"};

void require_training_columns(const CsvTable& table) {
  std::vector<Problem> problems;
  for (const char* name : kTrainingColumns) {
    if (table.column(name)) continue;
    problems.push_back({table.file.string() + ":1", std::string("has no column ") + name,
                        "the format is that of measurements/training_runs.csv"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

/// Megatron-Core's --num-distributed-optimizer-instances, whose test cases have it in their names
/// without a number: no column states it, so it counts as the fewest that are several.
constexpr std::string_view kInstancesOfOptimizer = "multi_dist_optimizer_instances";
constexpr int kFewestInstances = 2;

/// Likewise --qk-layernorm.
constexpr std::string_view kNormOfHeads = "qk_layernorm";

/// Tensor-parallel ranks that share each expert, of a row with experts: as the column says, else as
/// the model's name does ("..._8experts_etp1_ep4"), else 0 (all of them).
int expert_tensor_ranks(const TrainingRowReader& row) {
  if (!row.text("etp").empty()) return static_cast<int>(row.count("etp"));
  constexpr std::string_view kMark = "_etp";
  const std::string model = row.text("model");
  const std::size_t found = model.find(kMark);
  if (found == std::string::npos) return 0;
  int ranks = 0;
  std::from_chars(model.data() + found + kMark.size(), model.data() + model.size(), ranks);
  return ranks;
}

Recompute recompute_of(const std::string& word) {
  if (word == "full") return Recompute::full;
  return word == "selective" ? Recompute::selective : Recompute::none;
}

void keep_rows(const RowFilter& filter, CsvTable& table) {
  const auto index = table.column(filter.column);
  if (!index)
    throw InputError({table.file.string() + ":1", "has no column " + filter.column,
                      "filter by one of its columns"});
  std::erase_if(table.rows, [&](const CsvTable::Row& row) {
    const std::string& field = row.fields[*index];
    return std::ranges::none_of(filter.values, [&](const std::string& value) {
      return filter.part ? field.find(value) != std::string::npos : field == value;
    });
  });
}

/// "org/project" of "org/project path/to/file#L12": who measured.
std::string source_of(const TrainingRowReader& row) {
  const std::string source = row.text("source");
  return source.substr(0, source.find(' '));
}

SkippedRun skipped_run(std::string where, const TrainingRowReader& row, std::string reason) {
  SkippedRun skipped{std::move(where), row.text("id"), row.text("gpu"), std::move(reason)};
  skipped.source = source_of(row);
  skipped.framework = row.text("framework");
  skipped.precision = row.text("precision");
  skipped.model = row.text("model");
  skipped.measured = !row.text("step_time_s").empty();
  return skipped;
}

/// 0 where nothing or 0 is stated.
std::int64_t stated_count(const TrainingRowReader& row, const std::string& column) {
  return row.states(column) && row.text(column) != "0" ? row.count(column) : 0;
}

/// Of a transformer.
void read_dimensions(const TrainingRowReader& row, TrainingRun& run) {
  run.layers = row.count("layers");
  run.hidden = row.count("hidden");
  run.heads = row.count("heads");
  run.kv_heads = row.count("kv_heads", run.heads);
  run.head_dim = stated_count(row, "head_dim");
  run.ffn = row.count("ffn", 4 * run.hidden);
  run.vocab = row.count("vocab");
  run.sequence_length = row.count("seq_len");
}

/// Latent attention, shared experts, dense layers ahead: family moe.
void read_sparse_dimensions(const TrainingRowReader& row, TrainingRun& run) {
  run.q_rank = stated_count(row, "q_lora_rank");
  run.kv_rank = stated_count(row, "kv_lora_rank");
  run.rope_dim = stated_count(row, "qk_rope_head_dim");
  run.v_head_dim = stated_count(row, "v_head_dim");
  if (run.kv_rank > 0) run.head_dim = row.count("qk_nope_head_dim") + run.rope_dim;
  run.shared_ffn = stated_count(row, "shared_expert_ffn");
  run.dense_layers = stated_count(row, "first_dense_layers");
  run.dense_ffn = stated_count(row, "dense_ffn");
  run.mtp_layers = stated_count(row, "mtp_layers");
}

void read_layout(const TrainingRowReader& row, TrainingRun& run) {
  run.layout = {.tensor = static_cast<int>(row.count("tp", 1)),
                .pipeline = static_cast<int>(row.count("pp", 1)),
                .data = 1};
  run.layout.virtual_stages = static_cast<int>(row.count("virtual_stages", 1));
  run.layout.context = static_cast<int>(row.count("cp", 1));
  run.layout.expert = static_cast<int>(row.count("ep", 1));
  const int replicas = std::max(1, run.n_gpus / run.layout.world_size());
  run.layout.data = static_cast<int>(row.count("dp", replicas));
  run.layout.sequence_parallel = row.flag("sequence_parallel").value_or(false);
  if (const std::string stage = row.text("zero_stage"); !stage.empty())
    run.sharding = static_cast<Sharding>(stage.front() - '0');
  if (!row.text("zero_group_size").empty())
    run.shard_group = static_cast<int>(row.count("zero_group_size"));
  else if (row.text("model").find(kInstancesOfOptimizer) != std::string::npos)
    run.shard_group = std::max(1, run.layout.replicas() / kFewestInstances);
}

/// Per data-parallel rank; as stated, or as the number of micro-batches says, or all at once.
void read_micro_batch(const TrainingRowReader& row, TrainingRun& run) {
  const std::int64_t per_rank = std::max<std::int64_t>(1, run.global_batch / run.layout.data);
  const std::int64_t parts = row.count("micro_batches", 1);
  run.micro_batch_stated = row.states("micro_batch") || row.states("micro_batches");
  run.micro_batch = row.count("micro_batch", std::max<std::int64_t>(1, per_rank / parts));
  const std::int64_t batch = run.micro_batch * parts * run.layout.data;
  if (row.states("micro_batches") && batch != run.global_batch)
    row.complain("micro_batches",
                 "micro_batch * micro_batches * dp is not the global batch: correct one of them");
}

TrainingRun read_training_run(const CsvTable& table, const CsvTable::Row& fields,
                              std::vector<Problem>& problems) {
  const TrainingRowReader row(table, fields, problems);
  TrainingRun run{.where = table.where(fields), .id = row.text("id"), .gpu = row.text("gpu")};
  run.n_gpus = static_cast<int>(row.count("n_gpus"));
  run.gpus_per_node = static_cast<int>(row.count("gpus_per_node", run.n_gpus));
  if (!row.text("inter_node_GBps_per_gpu").empty())
    run.inter_node = BytesPerSecond(1e9 * row.positive("inter_node_GBps_per_gpu"));
  if (row.states("all_reduce_GBps"))
    run.all_reduce = BytesPerSecond(1e9 * row.positive("all_reduce_GBps"));
  run.source = source_of(row);
  run.framework = row.text("framework");
  run.precision = row.text("precision");
  run.model = row.text("model");
  run.family = row.text("family");
  if (run.family != kImageFamily) {
    read_dimensions(row, run);
    read_sparse_dimensions(row, run);
  }
  read_layout(row, run);
  run.global_batch = row.count("global_batch");
  read_micro_batch(row, run);
  const bool sparse = !row.text("experts").empty() && row.text("experts") != "0";
  run.experts = sparse ? row.count("experts") : 0;
  run.layout.expert_tensor = sparse ? expert_tensor_ranks(row) : 0;
  run.experts_per_token = sparse ? row.count("experts_per_token", 1) : 0;
  run.gated_mlp = row.flag("gated_mlp").value_or(row.text("activation") == "swiglu");
  const bool named_norm = run.model.find(kNormOfHeads) != std::string::npos;
  run.qk_norm = row.flag("qk_norm").value_or(named_norm);
  run.tied_embeddings = row.flag("tied_embeddings").value_or(!is_llama(run));
  run.recompute = recompute_of(row.text("recompute"));
  run.flash_attention = row.flag("flash_attention");
  if (!row.text("step_time_s").empty()) run.step_time = Seconds(row.positive("step_time_s"));
  if (!row.text("peak_memory_GiB").empty()) {
    run.peak_memory_gib = row.positive("peak_memory_GiB");
    run.memory_metric = row.text("memory_metric");
  }
  const std::string notes = row.text("notes");
  run.peak_rank = peak_rank_of(row);
  run.deterministic = notes.find("deterministic mode") != std::string::npos &&
                      row.text("source").find("nondeterministic") == std::string::npos;
  run.compiled = notes.find("torch.compile") != std::string::npos;
  run.local_modules = notes.find("transformer-impl=local") != std::string::npos;
  read_options(row, run);
  return run;
}

AppliedCorrections correct(const TrainingRunReading& reading, CsvTable& table) {
  if (!reading.correct) return {};
  const std::filesystem::path beside = corrections_beside(table.file);
  if (!reading.corrections && !std::filesystem::exists(beside)) return {};
  return apply_corrections(reading.corrections.value_or(beside), table);
}

[[noreturn]] void refuse_empty(const TrainingRuns& steps, const TrainingRuns& all,
                               const std::string& gpu) {
  if (steps.skipped.empty()) {
    std::set<std::string> ids;
    for (const TrainingRun& run : all.runs) ids.insert(run.gpu);
    for (const SkippedRun& run : all.skipped) ids.insert(run.gpu);
    std::string others;
    for (const std::string& id : ids) others += (others.empty() ? "" : ", ") + id;
    throw InputError({steps.file.string(), "holds no row of " + gpu, "it holds " + others});
  }
  std::vector<Problem> problems;
  for (const SkippedRun& run : steps.skipped)
    problems.push_back({run.where, "cannot be used: " + run.reason, ""});
  throw InputError(std::move(problems));
}

}  // namespace

RowFilter parse_row_filter(const std::string& text) {
  const std::size_t sign = text.find_first_of("=~");
  RowFilter filter{.column = text.substr(0, sign)};
  filter.part = sign != std::string::npos && text[sign] == '~';
  for (std::size_t begin = sign; begin != std::string::npos;) {
    const std::size_t end = text.find(',', begin + 1);
    filter.values.push_back(text.substr(begin + 1, end - begin - 1));
    begin = end;
  }
  if (filter.column.empty() || filter.values.empty())
    throw InputError(
        {"--only " + text, "is no filter", "write column=value, column=a,b or column~part"});
  return filter;
}

TrainingRuns read_training_runs(const std::filesystem::path& file,
                                const std::vector<RowFilter>& filters) {
  return read_training_runs(file, TrainingRunReading{.filters = filters});
}

TrainingRuns read_training_runs(const std::filesystem::path& file,
                                const TrainingRunReading& reading) {
  CsvTable table = read_csv(file);
  require_training_columns(table);
  TrainingRuns read{.file = file, .text = read_whole_file(file, "give the path of a CSV file")};
  read.corrections = correct(reading, table);
  for (const RowFilter& filter : reading.filters) keep_rows(filter, table);
  if (table.rows.empty())
    throw InputError({file.string(), reading.filters.empty() ? "holds no row" : "holds no such row",
                      reading.filters.empty() ? "measure one with tools/collect" : "relax --only"});
  std::vector<Problem> problems;
  for (const CsvTable::Row& row : table.rows) {
    std::vector<Problem> of_row;
    const TrainingRowReader reader(table, row, of_row);
    std::string reason = obstacle_of(reader, table.columns, reading.ignored);
    std::optional<TrainingRun> run;
    if (reason.empty()) run = read_training_run(table, row, of_row);
    if (!of_row.empty() && reading.bad_rows == BadRows::skip) reason = reason_of(of_row);
    problems.insert(problems.end(), of_row.begin(), of_row.end());
    if (reason.empty()) {
      read.runs.push_back(std::move(*run));
    } else {
      read.skipped.push_back(skipped_run(table.where(row), reader, std::move(reason)));
    }
  }
  if (!problems.empty() && reading.bad_rows == BadRows::refuse)
    throw InputError(std::move(problems));
  return read;
}

TrainingRuns read_timed_steps(const std::filesystem::path& file, const std::string& gpu) {
  const TrainingRuns all = read_training_runs(file);
  TrainingRuns steps{.file = all.file, .text = all.text};
  steps.corrections = all.corrections;
  for (const SkippedRun& run : all.skipped) {
    if (run.gpu == gpu) steps.skipped.push_back(run);
  }
  for (const TrainingRun& run : all.runs) {
    if (run.gpu != gpu) continue;
    if (!run.step_time) {
      steps.skipped.push_back({run.where, run.id, run.gpu, "it has no step_time_s"});
    } else {
      steps.runs.push_back(run);
    }
  }
  if (steps.runs.empty()) refuse_empty(steps, all, gpu);
  steps.left_out = static_cast<std::int64_t>(all.runs.size() + all.skipped.size() -
                                             steps.runs.size() - steps.skipped.size());
  return steps;
}

}  // namespace tessera

#include "lab/validate/runs/row_settings.h"

#include <algorithm>
#include <string_view>

#include "lab/validate/row_scenario.h"
#include "lab/validate/runs/recipe_settings.h"
#include "lab/validate/runs/training_runs.h"

namespace tessera {
namespace {

/// Settings of one row, as --set takes them.
class RowSettings {
 public:
  explicit RowSettings(const TrainingRowReader& row) : row_(row) {}

  void set(const std::string& path, const std::string& value) {
    list_.push_back(path + "=" + value);
  }
  void set(const std::string& path, std::int64_t value) { set(path, std::to_string(value)); }
  /// Where the column states one.
  void set_size(const std::string& path, const std::string& column) {
    if (const std::int64_t size = row_.size(column); size > 0) set(path, size);
  }
  void set_column(const RowColumn& column);

  std::vector<std::string> take() { return std::move(list_); }

 private:
  const TrainingRowReader& row_;
  std::vector<std::string> list_;
};

void RowSettings::set_column(const RowColumn& column) {
  using enum RowColumn::Kind;
  switch (column.kind) {
    case flag:
      return set(column.path, row_.flag(column.name).value_or(false) ? "true" : "false");
    case count:
      return set(column.path, row_.count(column.name));
    case size:
      return set_size(column.path, column.name);
    case word:
      return set(column.path, *column.word_of(row_.text(column.name)));
    case text:
    case number:
      return set(column.path, row_.text(column.name));
  }
}

bool is_of_images(const TrainingRowReader& row) {
  return row.text("family") == kImageFamily;
}

/// Images have neither layers nor a sequence, whatever their rows state.
bool concerns(const RowColumn& column, bool images) {
  if (column.path.empty()) return false;
  return !images ||
         (!column.path.starts_with("model.") && column.path != "training.sequence_length");
}

/// Layers without experts that stand ahead of those with them have the MLP of a dense model; `ffn`
/// is then an expert's.
void add_feed_forward(const TrainingRowReader& row, RowSettings& settings) {
  const std::int64_t ffn = row.count("ffn", 4 * row.count("hidden"));
  const std::int64_t dense = row.size("dense_ffn");
  settings.set("model.ffn", dense > 0 ? dense : ffn);
  if (dense > 0) settings.set("model.expert_ffn", ffn);
}

void add_heads(const TrainingRowReader& row, RowSettings& settings) {
  const std::int64_t heads = row.count("heads");
  const std::int64_t kv_heads = row.count("kv_heads", heads);
  if (kv_heads != heads) settings.set("model.kv_heads", kv_heads);
  if (row.size("kv_lora_rank") > 0)  // with and without positions
    settings.set("model.head_dim", row.count("qk_nope_head_dim") + row.size("qk_rope_head_dim"));
  else
    settings.set_size("model.head_dim", "head_dim");
}

void add_experts(const TrainingRowReader& row, RowSettings& settings) {
  if (row.size("experts") == 0) return;
  settings.set("model.experts_per_token", row.count("experts_per_token", 1));
  if (row.states("etp")) settings.set("parallelism.expert_tensor", row.count("etp"));
}

/// Where stages do not divide the layers the first ones have one more, as DeepSpeed cuts equal
/// items (partition_uniform); nothing where they do, or where the framework fills stages by cost.
void add_uneven_stages(const TrainingRowReader& row, const ParallelLayout& layout,
                       RowSettings& settings) {
  const bool equal_items = !row.flag("embedding_as_layer").value_or(false) &&
                           !row.flag("head_as_layer").value_or(false) &&
                           !row.flag("stages_by_cost").value_or(false);
  const std::int64_t layers = row.count("layers");
  const int stages = layout.pipeline;
  if (!equal_items || layout.virtual_stages > 1 || layers % stages == 0 || layers < stages) return;
  std::string split;
  for (int stage = 0; stage < stages; ++stage)
    split += (stage > 0 ? "," : "") + std::to_string(layers / stages + (stage < layers % stages));
  settings.set("parallelism.layers_per_stage", "[" + split + "]");
}

void add_model(const TrainingRowReader& row, RowSettings& settings) {
  add_feed_forward(row, settings);
  add_heads(row, settings);
  add_experts(row, settings);
  if (row.states("positions"))
    settings.set("model.max_positions", std::max(row.count("seq_len"), row.count("positions")));
}

/// Neighbours that divide the states; 0 where all replicas do.
void add_shard_group(const TrainingRowReader& row, int replicas, RowSettings& settings) {
  std::int64_t group = 0;
  if (row.states("zero_group_size"))
    group = row.count("zero_group_size");
  else if (row.states("optimizer_instances"))
    group = std::max<std::int64_t>(1, replicas / row.count("optimizer_instances"));
  if (group > 0) settings.set("training.data_parallel.shard_group", group >= replicas ? 0 : group);
}

}  // namespace

ParallelLayout layout_of_row(const TrainingRowReader& row) {
  const auto size = [&](const char* column) { return static_cast<int>(row.count(column, 1)); };
  ParallelLayout layout{.tensor = size("tp"), .pipeline = size("pp")};
  layout.virtual_stages = size("virtual_stages");
  layout.context = size("cp");
  const int replicas = std::max(1, static_cast<int>(row.count("n_gpus")) / layout.world_size());
  layout.data = static_cast<int>(row.count("dp", replicas));
  return layout;
}

std::vector<std::string> settings_of_row(const TrainingRowReader& row, const RowMeaning& meaning,
                                         const RowRules& rules) {
  RowSettings settings(row);
  const std::string name = row.text(row.states("model") ? "model" : "family");
  settings.set("model.name", quoted(name));
  const bool images = is_of_images(row);
  for (const RowColumn& column : rules.columns()) {
    if (column.kind == RowColumn::Kind::flag) row.flag(column.name);  // 0, 1 or nothing
    if (row.states(column.name) && concerns(column, images)) settings.set_column(column);
  }
  const ParallelLayout layout = layout_of_row(row);
  settings.set("parallelism.data", layout.data);
  add_shard_group(row, layout.replicas(), settings);
  if (!images) {
    add_model(row, settings);
    add_uneven_stages(row, layout, settings);
  }
  std::vector<std::string> list = settings.take();
  for (std::string& setting : recipe_settings(row)) list.push_back(std::move(setting));
  list.insert(list.end(), meaning.settings.begin(), meaning.settings.end());
  return list;
}

}  // namespace tessera

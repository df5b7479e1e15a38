#include "sim/config/load.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "configs/schema/scenario.pb.h"
#include "hw/gpu_sheet.h"
#include "hw/validation.h"
#include "sim/config/fields/bind.h"
#include "sim/config/fields/convert.h"
#include "sim/config/fields/field_path.h"
#include "sim/config/files/cluster_text.h"
#include "sim/config/files/yaml_file_cache.h"
#include "sim/config/files/yaml_text.h"
#include "sim/config/micro_batches.h"
#include "sim/config/resolve.h"
#include "sim/config/scenario_source.h"
#include "sim/config/shipped_file.h"
#include "sim/scenario/attention_choice.h"
#include "sim/scenario/cast_choice.h"
#include "sim/scenario/rules/check_scenario.h"
#include "workloads/parallel/cost_split.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
namespace pb = google::protobuf;

/// Where the field at `path` was given, else the nearest section around it, else the file.
Mark mark_of(std::string path, const FieldMarks& marks, const Mark& file) {
  while (!path.empty()) {
    if (const auto found = marks.find(path); found != marks.end()) return found->second;
    const std::size_t end = path.find_last_of(".[");
    path.resize(end == std::string::npos ? 0 : end);
  }
  return file;
}

/// A bound message with the places of its fields.
template <class Message>
struct Loaded {
  Message message;
  FieldMarks marks;
  Mark mark;
};

/// Adds broken rules between fields, leaving out those about fields that already have a problem.
/// Paths lose `prefix`, the section of a scenario that was loaded on its own.
void add_rule_problems(const std::vector<Problem>& found, const std::string& prefix,
                       const FieldMarks& marks, const Mark& file, ProblemList& problems) {
  const ProblemList of_fields = problems;
  const auto local = [&](const std::string& path) {
    return path.starts_with(prefix) ? path.substr(prefix.size()) : path;
  };
  const auto is_reported = [&](const std::string& path) { return of_fields.touches(local(path)); };
  for (const Problem& problem : found) {
    if (is_reported(problem.where) || std::ranges::any_of(problem.other, is_reported)) continue;
    const bool names_field = problem.what.starts_with(problem.where);
    problems.add(mark_of(local(problem.where), marks, file), local(problem.where),
                 names_field ? problem.what : problem.where + ": " + problem.what, problem.hint);
  }
}

/// Adds what hw/validation.h found in the description at `section`, unless its fields have
/// problems.
void add_hardware_problems(const std::vector<Problem>& found, const std::string& section,
                           const FieldMarks& marks, const Mark& file, ProblemList& problems) {
  if (problems.touches(section)) return;
  for (const Problem& problem : found) {
    const std::string path = joined_path(section, problem.where);
    const bool names_field = problem.what.starts_with(problem.where);
    const std::string what =
        names_field ? joined_path(section, problem.what) : path + ": " + problem.what;
    problems.add(mark_of(path, marks, file), path, what, problem.hint);
  }
}

template <class Message>
Loaded<Message> bind_tree(const YamlNode& tree, ProblemList& problems) {
  Loaded<Message> loaded;
  loaded.mark = tree.mark;
  loaded.marks = bind(tree, loaded.message, problems);
  return loaded;
}

template <class Message>
Loaded<Message> load_reference(const std::string& id_or_file, const Catalog& catalog,
                               ProblemList& problems) {
  const YamlNode tree = resolve_reference(id_or_file, *Message::descriptor(), catalog, problems);
  return bind_tree<Message>(tree, problems);
}

template <class Message, class Convert>
auto load_hardware(const std::string& id_or_file, const Catalog& catalog, Convert convert) {
  ProblemList problems;
  const auto [message, marks, mark] = load_reference<Message>(id_or_file, catalog, problems);
  const auto description = convert(message);
  add_hardware_problems(problems_of(description), "", marks, mark, problems);
  add_hardware_problems(sheet_problems_of(description), "", marks, mark, problems);
  problems.throw_if_any();
  return description;
}

/// What peft and bitsandbytes do otherwise by default.
std::vector<std::string> adapter_approximations(const StepOptions& step) {
  std::vector<std::string> lines;
  if (step.lora_rank == 0 || step.framework.modules != ModuleTree::hugging_face) return lines;
  const bool in_16_bits =
      step.precision != Precision::fp32 && step.formats.parameters != Precision::fp32;
  if (in_16_bits && !has_four_bits(step.base_weights))
    lines.emplace_back(
        "adapters in the precision of the step, as with autocast_adapter_dtype=False; peft's "
        "default keeps them in fp32 (mixed_precision.parameters, with base_weights: in_precision)");
  if (gathers_units(step))
    lines.emplace_back(
        "frozen weights and adapters of a layer are gathered together, as by fully_shard; FSDP 1 "
        "under peft's policy wraps each adapter apart. No measured step was at hand");
  if (!has_four_bits(step.base_weights)) return lines;
  lines.emplace_back(
      "4-bit weights become 16-bit ones at the rate of a pass over memory: bitsandbytes' kernels "
      "were never measured");
  if (in_16_bits)
    lines.emplace_back(
        "adapters, norms, embedding and head in 16 bits, as TRL casts them; peft's "
        "prepare_model_for_kbit_training makes them fp32");
  return lines;
}

/// What is asked of data-parallel ranks and not simulated.
std::vector<std::string> overlap_approximations(const StepOptions& step) {
  const DataParallel& data = step.data_parallel;
  std::vector<std::string> lines;
  if (step.mode != StepMode::training || !step.layout.has_replicas()) return lines;
  const bool dualpipe = step.schedule == PipelineSchedule::dualpipe;
  if (dualpipe && data.overlap_gradients && !scatters_gradients(step))
    lines.emplace_back(
        "overlap_gradients: under dualpipe gradients are summed in one piece behind the passes, "
        "not beside backward");
  return lines;
}

/// Where stages differ from what the framework's published code makes of them.
std::vector<std::string> split_approximations(const Scenario& scenario) {
  const StepOptions& step = scenario.step;
  if (!uses_cost_split(step)) return {};
  const auto split =
      split_by_cost(scenario.model, step.layout.pipeline, step.framework.fills_past_share);
  if (!split || !split->head_moved) return {};
  return {
      "the head is on the last pipeline stage, with the loss: so measured steps behave; nanotron's "
      "published build_model leaves the loss alone there (framework.fills_past_share)"};
}

/// Kernels that nobody measured.
std::vector<std::string> kernel_approximations(const Scenario& scenario) {
  const StepOptions& step = scenario.step;
  std::vector<std::string> lines;
  if (step.precision == Precision::fp8 && step.framework.fp8_scaling == Fp8Scaling::blockwise)
    lines.emplace_back(
        "fp8_scaling blockwise: products with a scale per tile are predicted as those with one "
        "scale per matrix; none was measured in training");
  if (scenario.model.index_heads == 0) return lines;
  lines.emplace_back(
      "sparse attention: kernels of an indexer and of attention to the tokens that it chose were "
      "never measured; they count as batched products");
  if (step.mode == StepMode::training && scenario.model.index_loss)
    lines.emplace_back(
        "the sparse stage of an indexer's training: all is trained, the indexer against attention "
        "over what it chose; its dense warm-up is not simulated");
  return lines;
}

/// A file that was written out has the lines already.
void add_step_approximations(Scenario& scenario, bool keeps_scores) {
  auto& known = scenario.approximations;
  std::vector<std::string> of_attention;
  if (keeps_scores && scenario.model.family != ModelFamily::vision)
    of_attention.emplace_back(
        "attention counts with all of its scores: FlashAttention-2 is for 16 bits from Ampere on, "
        "and sdpa's memory-efficient kernels, which PyTorch has for the rest, are not simulated");
  for (const auto& lines :
       {adapter_approximations(scenario.step), overlap_approximations(scenario.step),
        split_approximations(scenario), kernel_approximations(scenario), of_attention})
    for (const std::string& line : lines)
      if (std::ranges::find(known, line) == known.end()) known.push_back(line);
}

/// The scenario of a resolved tree. Throws InputError with `problems` and its own.
Scenario bind_scenario(const YamlNode& tree, const std::string& name, ProblemList& problems) {
  auto [message, marks, mark] = bind_tree<schema::Scenario>(tree, problems);
  if (!message.has_name()) message.set_name(name);
  Scenario scenario = to_scenario(message);
  const bool keeps_scores = choose_attention(scenario.step, scenario.cluster.node.gpu);
  choose_casts(scenario.step, scenario.cluster.node.gpu);
  add_rule_problems(check_micro_batches(message), "", marks, mark, problems);
  add_rule_problems(check_rank_order(message), "", marks, mark, problems);
  add_hardware_problems(problems_of(scenario.cluster), "cluster", marks, mark, problems);
  add_hardware_problems(sheet_problems_of(scenario.cluster), "cluster", marks, mark, problems);
  add_rule_problems(check_fields(scenario), "", marks, mark, problems);
  if (problems.empty()) add_rule_problems(check_framework(scenario), "", marks, mark, problems);
  problems.throw_if_any();
  add_step_approximations(scenario, keeps_scores);
  return scenario;
}

}  // namespace

Scenario load_scenario(const fs::path& id_or_file, std::span<const std::string> overrides,
                       const Catalog& catalog) {
  const fs::path file = shipped_or_own_file(CatalogKind::scenarios, id_or_file.string(), catalog);
  const pb::Descriptor& type = *schema::Scenario::descriptor();
  ProblemList problems;
  YamlNode tree = read_yaml_file(file);
  apply_overrides(tree, overrides, type, problems);
  tree = resolve(std::move(tree), type, catalog, problems);
  return bind_scenario(tree, file.stem().string(), problems);
}

/// What a scenario is a variant of.
struct ScenarioSource::Content {
  YamlNode base;
  std::string name;
  Catalog catalog;
  YamlFileCache files;
};

ScenarioSource::ScenarioSource(YamlNode base, std::string name, Catalog catalog)
    : content_(std::make_unique<Content>(
          Content{std::move(base), std::move(name), std::move(catalog), {}})) {}
ScenarioSource::~ScenarioSource() = default;
ScenarioSource::ScenarioSource(ScenarioSource&&) noexcept = default;

Scenario ScenarioSource::with(std::span<const FieldSetting> settings) const {
  const pb::Descriptor& type = *schema::Scenario::descriptor();
  ProblemList problems;
  YamlNode tree = content_->base;
  apply_settings(tree, settings, type, problems);
  tree = resolve(std::move(tree), type, content_->catalog, content_->files, problems);
  return bind_scenario(tree, content_->name, problems);
}

Scenario ScenarioSource::with_overrides(std::span<const std::string> overrides) const {
  const pb::Descriptor& type = *schema::Scenario::descriptor();
  ProblemList problems;
  YamlNode tree = content_->base;
  apply_overrides(tree, overrides, type, problems);
  tree = resolve(std::move(tree), type, content_->catalog, content_->files, problems);
  return bind_scenario(tree, content_->name, problems);
}

ScenarioSource open_scenario(const fs::path& id_or_file, const Catalog& catalog) {
  const fs::path file = shipped_or_own_file(CatalogKind::scenarios, id_or_file.string(), catalog);
  return {read_yaml_file(file), file.stem().string(), catalog};
}

Scenario scenario_of(std::span<const std::string> settings, const std::string& name,
                     const Catalog& catalog) {
  const pb::Descriptor& type = *schema::Scenario::descriptor();
  ProblemList problems;
  YamlNode tree;
  tree.kind = YamlNode::Kind::mapping;
  tree.mark.origin = std::make_shared<Origin>(Origin{name, "", false});
  apply_overrides(tree, settings, type, problems);
  tree = resolve(std::move(tree), type, catalog, problems);
  return bind_scenario(tree, name, problems);
}

std::optional<std::int64_t> number_in(std::span<const std::string> overrides,
                                      const std::string& section, const std::string& field) {
  ProblemList unread;  // a scenario with these settings tells them
  YamlNode tree;
  tree.kind = YamlNode::Kind::mapping;
  apply_overrides(tree, overrides, *schema::Scenario::descriptor(), unread);
  const YamlEntry* of = tree.find(section);
  const YamlEntry* entry = of != nullptr ? of->value.find(field) : nullptr;
  if (entry == nullptr) return std::nullopt;
  const std::string& text = entry->value.text;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// By way of a small scenario on it, where something is changed.
ClusterSpec cluster_with(const std::string& id_or_file, std::span<const std::string> overrides,
                         const Catalog& catalog) {
  const ClusterSpec as_described = load_cluster(id_or_file, catalog);
  std::vector<std::string> settings = {"model=gpt2", "cluster=" + id_or_file,
                                       "training.global_batch=1", "training.sequence_length=1"};
  const std::size_t own = settings.size();
  for (const std::string& override : overrides)
    if (override.starts_with("cluster")) settings.push_back(override);
  return settings.size() == own ? as_described : scenario_of(settings, id_or_file, catalog).cluster;
}

std::string identifying_bytes(const Scenario& scenario) {
  schema::Scenario message = to_message(scenario);
  message.clear_name();
  message.clear_approximations();
  message.clear_reliability();
  return message.SerializeAsString();
}

GpuSpec load_gpu(const std::string& id_or_file, const Catalog& catalog) {
  const std::string id = catalog.completed(CatalogKind::gpus, id_or_file);
  return load_hardware<schema::Gpu>(id, catalog, to_gpu);
}
NodeSpec load_node(const std::string& id_or_file, const Catalog& catalog) {
  return load_hardware<schema::Node>(id_or_file, catalog, to_node);
}
ClusterSpec load_cluster(const std::string& id_or_file, const Catalog& catalog) {
  return load_hardware<schema::Cluster>(id_or_file, catalog, to_cluster);
}

ClusterSpec cluster_in(const std::string& yaml, const std::string& name, const Catalog& catalog) {
  if (yaml.size() > static_cast<std::size_t>(kMaxFileBytes))
    throw InputError({name, "is larger than 4 MiB as a cluster",
                      "describe the cluster by the kind of its fabric"});
  const pb::Descriptor& type = *schema::Cluster::descriptor();
  ProblemList problems;
  YamlNode tree = parse_yaml(yaml, std::make_shared<Origin>(Origin{name, "", false}));
  tree = resolve(std::move(tree), type, catalog, problems);
  const auto [message, marks, mark] = bind_tree<schema::Cluster>(tree, problems);
  const ClusterSpec cluster = to_cluster(message);
  add_hardware_problems(problems_of(cluster), "", marks, mark, problems);
  add_hardware_problems(sheet_problems_of(cluster), "", marks, mark, problems);
  problems.throw_if_any();
  return cluster;
}

ModelSpec load_model(const std::string& id_or_file, const Catalog& catalog) {
  ProblemList problems;
  const auto loaded = load_reference<schema::Model>(id_or_file, catalog, problems);
  const ModelSpec model = to_model(loaded.message);
  add_rule_problems(check_model(model), "model.", loaded.marks, loaded.mark, problems);
  problems.throw_if_any();
  return model;
}

FrameworkProfile load_framework(const std::string& id_or_file, const Catalog& catalog) {
  ProblemList problems;
  const auto loaded = load_reference<schema::Framework>(id_or_file, catalog, problems);
  problems.throw_if_any();
  return to_framework(loaded.message);
}

GpuOverlay load_overlay(const std::string& id_or_file, const Catalog& catalog) {
  ProblemList problems;
  const auto loaded = load_reference<schema::Overlay>(id_or_file, catalog, problems);
  problems.throw_if_any();
  return to_overlay(loaded.message);
}

CollectiveSettings load_collectives(const std::string& id_or_file, const Catalog& catalog) {
  ProblemList problems;
  const auto loaded = load_reference<schema::Collectives>(id_or_file, catalog, problems);
  problems.throw_if_any();
  return to_collectives(loaded.message);
}

std::string collectives_yaml(const CollectiveSettings& settings) {
  return "# Made by tessera calibrate nccl. Use: collectives: this file in a scenario, or --set "
         "collectives=FILE.\n" +
         to_yaml(to_message(settings));
}

std::string host_yaml(const HostTable& host) {
  return "# Made by tessera calibrate host. Use: training: {host: this file} in a scenario, or "
         "--set "
         "training.host=FILE.\n" +
         to_yaml(to_message(host));
}

std::string overlay_yaml(const GpuOverlay& overlay) {
  return "# Made by tessera calibrate. Use: overlays: [this file] in a scenario, or --set "
         "overlays=[FILE].\n" +
         to_yaml(to_message(overlay));
}

std::string resolved_yaml(const Scenario& scenario) {
  return to_yaml(to_message(scenario));
}

}  // namespace tessera

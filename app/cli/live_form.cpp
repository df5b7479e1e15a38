#include "app/cli/live_form.h"

#include <algorithm>
#include <cmath>

#include "hw/units/input_error.h"
#include "sim/config/fields/scenario_fields.h"
#include "sim/config/load.h"
#include "sim/scenario/names.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

/// A field of the form: a catalog's ids, words, or powers of two between two numbers.
struct FieldPlan {
  const char* path;
  const char* label;
  const char* help;
  std::optional<CatalogKind> ids = {};
  std::vector<std::string> words = {};
  int low = 0;
  int high = 0;
};

std::vector<FieldPlan> planned_fields() {
  using enum CatalogKind;
  const auto number = [](const char* path, const char* label, const char* help, int low, int high) {
    return FieldPlan{.path = path, .label = label, .help = help, .low = low, .high = high};
  };
  return {
      {.path = "model", .label = "model", .help = "tessera list models", .ids = models},
      {.path = "cluster", .label = "cluster", .help = "tessera list clusters", .ids = clusters},
      {.path = "training.framework",
       .label = "framework",
       .help = "whose kernels run",
       .ids = frameworks},
      {.path = "training.precision",
       .label = "precision",
       .help = "of matrix products",
       .words = {"fp32", "tf32", "bf16", "fp16", "fp8"}},
      number("training.sequence_length", "sequence", "tokens per sequence", 128, 131072),
      number("training.global_batch", "global batch", "sequences per step", 1, 8192),
      number("training.micro_batch", "micro-batch", "sequences at a time", 1, 64),
      number("parallelism.tensor", "tensor", "GPUs that share each layer", 1, 16),
      number("parallelism.pipeline", "pipeline", "stages of layers", 1, 64),
      number("parallelism.context", "context", "GPUs that share each sequence", 1, 32),
      number("parallelism.expert", "expert", "GPUs that share the experts", 1, 64),
      number("parallelism.data", "data", "replicas of the model", 1, 4096),
      {.path = "training.data_parallel.sharding",
       .label = "sharding",
       .help = "what replicas divide among themselves: ZeRO 0 to 3",
       .words = sharding_names()},
      {.path = "training.recompute",
       .label = "recompute",
       .help = "activations that backward computes again",
       .words = recompute_names()},
      {.path = "training.schedule",
       .label = "schedule",
       .help = "order of micro-batches",
       .words = schedule_names()},
      number("parallelism.virtual_stages", "chunks", "per stage of interleaved_1f1b", 1, 16),
  };
}

/// What stands in the scenario, as a form has it.
PageJson value_in(const ScenarioFields& fields, const std::string& path) {
  const std::optional<FieldValue> value = fields.at(path);
  if (!value) return nullptr;
  if (const auto* word = std::get_if<std::string>(&*value)) return *word;
  return static_cast<std::int64_t>(std::llround(std::get<double>(*value)));
}

LiveField field_of(const FieldPlan& plan, const ScenarioFields& fields, const Catalog& catalog) {
  LiveField field{.path = plan.path, .label = plan.label, .help = plan.help};
  field.value = value_in(fields, plan.path);
  field.is_number = plan.high > 0;
  for (int value = plan.low; value <= plan.high && value > 0; value *= 2)
    field.values.emplace_back(value);
  for (const std::string& word : plan.words) field.values.emplace_back(word);
  if (plan.ids)
    for (const std::string& id : catalog.ids(*plan.ids)) field.values.emplace_back(id);
  return field;
}

bool is_whole_number(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

void check_override(const LiveForm& form, const std::string& given) {
  const std::size_t equal = std::min(given.find('='), given.size());
  const std::string path = given.substr(0, equal);
  const std::string value = given.substr(std::min(equal + 1, given.size()));
  const auto field = std::ranges::find(form.fields, path, &LiveField::path);
  if (field == form.fields.end())
    throw InputError({.where = path,
                      .what = "is no field of this page",
                      .hint = "tessera simulate --set takes every field"});
  const bool known = field->is_number ? is_whole_number(value)
                                      : std::ranges::count(field->values, PageJson(value)) > 0;
  if (!known)
    throw InputError({.where = path,
                      .what = "'" + value + "' is none of the values that this page offers",
                      .hint = "tessera simulate --set takes every value"});
}

}  // namespace

LiveForm live_form(const std::string& described, const Scenario& scenario, const Catalog& catalog) {
  LiveForm form{.scenario = described};
  const ScenarioFields fields(scenario);
  for (const FieldPlan& plan : planned_fields())
    form.fields.push_back(field_of(plan, fields, catalog));
  form.gpus = PageJson::object();
  const auto gpus_of = [](const ClusterSpec& cluster) {
    return cluster.node_count * cluster.node.gpu_count;
  };
  for (const std::string& id : catalog.ids(CatalogKind::clusters))
    form.gpus[id] = gpus_of(load_cluster(id, catalog));
  form.gpus[scenario.cluster.id] = gpus_of(scenario.cluster);
  return form;
}

std::vector<std::string> live_overrides(const LiveForm& form, const RequestParameters& parameters) {
  std::vector<std::string> overrides;
  for (const auto& [name, value] : parameters) {
    if (name != "set") continue;
    check_override(form, value);
    overrides.push_back(value);
  }
  return overrides;
}

}  // namespace tessera

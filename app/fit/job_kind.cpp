#include "app/fit/job_kind.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/foreign_programs.h"
#include "app/import/job/foundry/foundry_job.h"
#include "app/import/job/nanotron/nanotron_job.h"
#include "app/import/job/trainer/trainer_file.h"
#include "hw/units/input_error.h"
#include "sim/config/files/text_file.h"
#include "sim/config/files/yaml_tree.h"
#include "sim/config/suggest.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

template <std::size_t count>
bool has_any(const YamlNode& tree, const std::array<std::string_view, count>& keys) {
  return std::ranges::any_of(keys, [&](std::string_view key) { return tree.find(key); });
}

constexpr std::array<std::string_view, 2> kHuggingFaceKeys{"model_type", "architectures"};
constexpr std::array<std::string_view, 5> kDeepSpeedKeys{
    "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
    "zero_optimization", "zero_allow_untested_optimizer"};
constexpr std::array<std::string_view, 2> kAccelerateKeys{"compute_environment",
                                                          "distributed_type"};
constexpr std::array<std::string_view, 2> kScenarioKeys{"training", "model"};
constexpr std::array<std::string_view, 1> kOwnKeys{"training"};
constexpr std::array<std::string_view, 2> kModelKeys{"family", "layers"};

constexpr const char* kWayOut =
    "give the model's config.json, or the DeepSpeed or accelerate file that the job uses with "
    "--model, and what else it says by --framework hf-eager, --micro-batch, --sequence-length and "
    "--set (training.lora_rank, training.base_weights, training.recompute)";

YamlNode tree_of(const std::string& file) {
  return foreign_tree(read_text_file(file), shown_path(file));
}

JobKind kind_of_json(const std::string& file) {
  const YamlNode tree = tree_of(file);
  if (has_any(tree, kHuggingFaceKeys)) return JobKind::hugging_face;
  if (holds_trainer_arguments(tree)) return JobKind::trainer;
  if (has_any(tree, kDeepSpeedKeys)) return JobKind::deepspeed;
  throw InputError({shown_path(file), "is neither a model's config.json nor a DeepSpeed config",
                    "the first has model_type, the second zero_optimization or a batch size"});
}

/// Where it is none of the others the reader of scenarios says what is wrong.
JobKind kind_of_yaml(const std::string& file) {
  const YamlNode tree = tree_of(file);
  if (has_any(tree, kAccelerateKeys)) return JobKind::accelerate;
  const bool is_scenario = has_any(tree, kOwnKeys);
  if (!is_scenario && holds_trainer_arguments(tree)) return JobKind::trainer;
  if (holds_nanotron_job(tree)) return JobKind::nanotron;
  if (holds_foundry_job(tree)) return JobKind::foundry;
  if (auto problem = problem_of_foreign_file(tree); problem && !is_scenario)
    throw InputError({*problem});
  const bool is_model = has_any(tree, kModelKeys) && !has_any(tree, kScenarioKeys);
  return is_model ? JobKind::model : JobKind::scenario;
}

[[noreturn]] void refuse_unknown(const std::string& what, const Catalog& catalog) {
  const bool is_repository = std::ranges::count(what, '/') == 1 && what.find('.') != 0;
  std::vector<std::string> known = catalog.ids(CatalogKind::models);
  for (const std::string& id : catalog.ids(CatalogKind::scenarios)) known.push_back(id);
  const std::string best = nearest(what, known);
  throw InputError(
      {what, "is neither a file nor an id of the catalog",
       is_repository  ? "nothing is fetched: of a model on Hugging Face's hub name its config.json"
       : best.empty() ? "tessera list models and tessera list scenarios have the ids"
                      : did_you_mean(best)});
}

}  // namespace

JobKind job_kind(const std::string& what, const Catalog& catalog) {
  const bool is_id = what.find('/') == std::string::npos;
  if (is_id && catalog.has(CatalogKind::models, what)) return JobKind::model;
  if (is_id && catalog.has(CatalogKind::scenarios, what)) return JobKind::scenario;
  if (fs::is_directory(what) && fs::exists(fs::path(what) / "config.json"))
    return JobKind::hugging_face;
  if (!fs::exists(what)) refuse_unknown(what, catalog);
  const std::string extension = fs::path(what).extension().string();
  if (extension == ".json") return kind_of_json(what);
  if (extension == ".yaml" || extension == ".yml") return kind_of_yaml(what);
  if (extension == ".py")
    throw InputError({shown_path(what), "is a Python program, which is not run", kWayOut});
  if (extension == ".toml") return JobKind::torchtitan;
  return JobKind::megatron;
}

}  // namespace tessera

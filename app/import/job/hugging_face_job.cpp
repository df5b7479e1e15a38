#include <algorithm>
#include <memory>
#include <string>

#include "app/import/job/fused_attention.h"
#include "app/import/job/imported_job.h"
#include "app/import/job/peft_adapter.h"
#include "app/import/job/scenario_draft.h"
#include "sim/config/files/hugging_face_tree.h"
#include "workloads/model_features.h"

namespace tessera {
namespace {

/// The longest sequence of models with learned positions stands in for one that
/// is not given.
JobOptions with_length(const JobOptions& given, const HuggingFaceModel& said,
                       ScenarioDraft& draft) {
  JobOptions options = given;
  options.longest_sequence = said.longest;
  if (const std::int64_t positions = said.longest > 0
                                         ? std::min(said.longest, said.model.max_positions)
                                         : said.model.max_positions;
      given.sequence_length == 0 && positions > 0) {
    options.sequence_length = positions;
    draft.assume("sequence length " + std::to_string(positions) +
                 ", the most that the model takes");
  }
  return options;
}

/// Tokens of the sequences that the job will have.
std::int64_t tokens_of(const JobOptions& options) {
  constexpr std::int64_t kUsual = 2048;  // set_model_and_framework
  if (options.sequence_length > 0) return options.sequence_length;
  return options.longest_sequence > 0 ? std::min(kUsual, options.longest_sequence) : kUsual;
}

}  // namespace

std::string model_or_config(const std::string& model) {
  const std::filesystem::path config = std::filesystem::path(model) / "config.json";
  return std::filesystem::is_regular_file(config) ? config.string() : model;
}

JobOptions with_spec(JobOptions options, const ModelSpec& model) {
  options.longest_sequence = model.max_positions;
  options.hidden = model.hidden;
  options.layers = model.layers;
  options.spec = std::make_shared<const ModelSpec>(model);
  return options;
}

ImportedJob import_hugging_face(const std::filesystem::path& file, const JobOptions& given) {
  HuggingFaceTree read = read_hugging_face_tree(file, given.lenient);
  ScenarioDraft draft;
  JobOptions options = with_length(given, read.said, draft);
  options.model = "config";
  const std::vector<std::string> beyond =
      fields_of_megatron_alone(read.said.model, tokens_of(options));
  const bool adapts = !given.adapter.empty();
  const bool by_peft = !adapts || stands_beside_layers_of_transformers(read.said.model);
  const bool by_transformers = beyond.empty() && by_peft;
  set_framework(draft, options, file.string(), by_transformers ? "hf-eager" : "megatron");
  if (!by_peft && given.framework.empty())
    draft.assume("framework megatron, which alone has adapters of models with experts");
  const bool images = read.said.model.family == ModelFamily::vision;
  if (!images || given.sequence_length > 0) set_sequence_length(draft, options);
  if (!beyond.empty())
    draft.assume("framework megatron, which alone has the model's " + beyond.front());
  draft.set("model", std::move(read.tree));
  assume_precision(draft, options, by_transformers && !adapts && options.framework.empty());
  if (by_transformers) assume_fused_attention(draft, options, read.said.model.family);
  if (read.said.checkpoints) draft.set("training.recompute", "full");
  ForeignFields nothing;
  set_data_parallel_job(draft, nothing, options, {.width = options.replica_gpus});
  if (options.framework.empty()) options.framework = by_transformers ? "hf-eager" : "megatron";
  if (adapts) set_peft_adapter(draft, read.said.model, options);
  if (adapts && options.framework.starts_with("hf-") && options.precision != "fp32")
    hold_factors_in_fp32(draft);
  for (const std::string& line : read.said.approximations) draft.approximate(line);
  for (const std::string& key : read.said.harmless) draft.ignore(key);
  return draft.finish({});
}

}  // namespace tessera

#include <algorithm>
#include <string>

#include "app/import/job/imported_job.h"
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
  if (said.window > 0)
    options.longest_sequence = said.longest > 0 ? std::min(said.longest, said.window) : said.window;
  if (const std::int64_t positions = said.model.max_positions;
      given.sequence_length == 0 && positions > 0) {
    options.sequence_length = positions;
    draft.assume("sequence length " + std::to_string(positions) +
                 ", the most that the model takes");
  }
  return options;
}

/// Attention in windows is simulated where a window holds the whole sequence.
void judge_window(ScenarioDraft& draft, const JobOptions& options, const HuggingFaceModel& said,
                  const std::string& file) {
  if (said.window == 0 || options.sequence_length <= said.window) return;
  const std::string window = std::to_string(said.window);
  const std::string what = "sliding_window = " + window + " and a sequence of " +
                           std::to_string(options.sequence_length) +
                           " tokens: attention in windows is not simulated";
  if (!options.lenient)
    throw InputError({file, what,
                      "use --sequence-length " + window +
                          ", or --lenient: all tokens attend to all before them"});
  draft.approximate(what + ", all tokens attend to all before them");
}

}  // namespace

ImportedJob import_hugging_face(const std::filesystem::path& file, const JobOptions& given) {
  HuggingFaceTree read = read_hugging_face_tree(file, given.lenient);
  ScenarioDraft draft;
  JobOptions options = with_length(given, read.said, draft);
  options.model = "config";
  judge_window(draft, options, read.said, file.string());
  const std::vector<std::string> beyond = fields_of_megatron_alone(read.said.model);
  set_model_and_framework(draft, options, file.string(), beyond.empty() ? "hf-eager" : "megatron");
  if (!beyond.empty())
    draft.assume("framework megatron, which alone has the model's " + beyond.front());
  draft.set("model", std::move(read.tree));
  draft.set("training.precision", "bf16");
  draft.assume("precision bf16");
  if (read.said.checkpoints) draft.set("training.recompute", "full");
  ForeignFields nothing;
  set_data_parallel_job(draft, nothing, options, {});
  for (const std::string& line : read.said.approximations) draft.approximate(line);
  for (const std::string& key : read.said.harmless) draft.ignore(key);
  return draft.finish({});
}

}  // namespace tessera

#include <algorithm>
#include <string>

#include "sim/config/hugging_face_tree.h"
#include "sim/import/job/imported_job.h"
#include "sim/import/job/scenario_draft.h"

namespace tessera {
namespace {

std::int64_t positions_of(const YamlNode& model) {
  const YamlEntry* entry = model.find("max_positions");
  return entry && entry->value.text.size() < 10 ? std::atoll(entry->value.text.c_str()) : 0;
}

}  // namespace

ImportedJob import_hugging_face(const std::filesystem::path& file, const JobOptions& options) {
  std::vector<std::string> unread;
  YamlNode model = read_hugging_face_tree(file, &unread);
  JobOptions with_length = options;
  ScenarioDraft draft;
  if (const std::int64_t positions = positions_of(model);
      options.sequence_length == 0 && positions > 0) {
    with_length.sequence_length = positions;
    draft.assume("sequence length " + std::to_string(positions) +
                 ", the most that the model takes");
  }
  with_length.model = "config";
  set_model_and_framework(draft, with_length, file.string(), "hf-eager");
  draft.set("model", std::move(model));
  draft.set("training.precision", "bf16");
  draft.assume("precision bf16");
  set_data_parallel_job(draft, with_length, {});
  for (const std::string& key : unread) draft.ignore(key);
  return draft.finish({});
}

}  // namespace tessera

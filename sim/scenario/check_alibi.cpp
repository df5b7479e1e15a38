#include "sim/scenario/check_alibi.h"

#include <string>

namespace tessera {

void check_alibi(const ModelSpec& model, std::vector<ScenarioProblem>& problems) {
  if (!has_alibi(model.family)) return;
  const std::string family = model.family == ModelFamily::bloom ? "bloom" : "mpt";
  const auto refuse = [&](const std::string& field, std::int64_t value, const std::string& what,
                          const std::string& hint) {
    problems.push_back({field,
                        {"model.family"},
                        field + " = " + std::to_string(value) + ": family " + family + what,
                        hint});
  };
  if (model.max_positions > 0)
    refuse("model.max_positions", model.max_positions, " has ALiBi and no position embeddings",
           "leave it out, or use model.family: gpt2");
  if (model.kv_heads != model.heads)
    refuse("model.kv_heads", model.kv_heads, " has as many key-value heads as heads",
           "leave it out, or use model.family: llama");
  if (model.experts > 0)
    refuse("model.experts", model.experts, " has no experts", "use model.family: gpt2 or llama");
}

}  // namespace tessera

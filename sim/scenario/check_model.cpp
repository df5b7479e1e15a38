// Rules between the dimensions of a model.
#include "sim/scenario/check_scenario.h"
#include "sim/scenario/counts.h"

namespace tessera {
namespace {

/// An image model is its architecture; dimensions of a transformer would have no effect.
void check_vision(const ModelSpec& model, std::vector<ScenarioProblem>& problems) {
  if (model.architecture == VisionArchitecture::none)
    problems.push_back({"model.architecture",
                        {"model.family"},
                        "model.architecture is missing",
                        "family: vision needs one, such as architecture: resnet50"});
  const Count dimensions[] = {{"model.layers", model.layers},
                              {"model.hidden", model.hidden},
                              {"model.heads", model.heads},
                              {"model.ffn", model.ffn},
                              {"model.vocab", model.vocab},
                              {"model.qk_norm", model.qk_norm ? 1 : 0},
                              {"model.qkv_bias", model.qkv_bias ? 1 : 0}};
  for (const Count& dimension : dimensions) {
    if (dimension.value == 0) continue;
    problems.push_back({dimension.path,
                        {"model.family"},
                        dimension.text() + " in an image model, whose architecture says it",
                        "remove it"});
  }
}

void check_no_images(const ModelSpec& model, std::vector<ScenarioProblem>& problems) {
  const Count counts[] = {{"model.architecture", static_cast<int>(model.architecture)},
                          {"model.image_size", model.image_size},
                          {"model.classes", model.classes}};
  for (const Count& count : counts) {
    if (count.value == 0) continue;
    problems.push_back({count.path,
                        {"model.family"},
                        count.path + " is given in a model that reads no images",
                        "remove it, or use family: vision"});
  }
}

/// Families with ALiBi have no position embeddings, grouped queries or experts.
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

}  // namespace

std::vector<ScenarioProblem> check_model(const ModelSpec& model) {
  std::vector<ScenarioProblem> problems;
  if (model.family == ModelFamily::vision) {
    check_vision(model, problems);
    return problems;
  }
  check_no_images(model, problems);
  const Count heads{"model.heads", model.heads};
  const Count kv_heads{"model.kv_heads", model.kv_heads};
  check_divides(kv_heads, heads, divisors(heads.value, heads.value), problems);
  if (model.head_dim <= 0) {
    problems.push_back({"model.head_dim",
                        {"model.heads", "model.hidden"},
                        "model.heads = " + std::to_string(model.heads) +
                            " exceeds hidden = " + std::to_string(model.hidden),
                        "give model.head_dim"});
  }
  const bool routed = model.experts > 0 &&
                      (model.family == ModelFamily::llama || model.family == ModelFamily::gpt2);
  if (routed && (model.experts_per_token < 1 || model.experts_per_token > model.experts)) {
    problems.push_back({"model.experts_per_token",
                        {"model.experts"},
                        "model.experts_per_token = " + std::to_string(model.experts_per_token) +
                            " with model.experts = " + std::to_string(model.experts),
                        "give 1 to " + std::to_string(model.experts)});
  }
  check_alibi(model, problems);
  const bool counted = model.experts > 0 && !routed && !has_alibi(model.family);
  if (counted && (model.expert_capacity == 0 || model.moe_every == 0)) {
    problems.push_back({"model.experts",
                        {"model.expert_capacity", "model.moe_every"},
                        "model.experts = " + std::to_string(model.experts) +
                            " needs expert_capacity and moe_every",
                        "give both, 1 or more"});
  }
  return problems;
}

}  // namespace tessera

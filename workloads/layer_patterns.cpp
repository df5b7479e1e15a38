#include "workloads/layer_patterns.h"

namespace tessera {

std::string shortest_period(const std::string& letters) {
  for (std::size_t length = 1; length < letters.size(); ++length) {
    bool repeats = true;
    for (std::size_t i = length; i < letters.size() && repeats; ++i)
      repeats = letters[i] == letters[i - length];
    if (repeats) return letters.substr(0, length);
  }
  return letters;
}

void set_attention_pattern(ModelSpec& model, std::int64_t window, const std::string& letters) {
  using namespace attention_letter;
  const bool windows = letters.find(kWindow) != std::string::npos;
  const bool turned = letters.find(kWithoutPositions) == std::string::npos;
  model.window = windows ? window : 0;
  model.full_every = model.full_first = 0;
  model.attention_pattern.clear();
  const std::string period = shortest_period(letters);
  const bool alike = period.size() == 1 && turned;
  if (letters.empty() || alike) return;
  const bool every_nth = period == std::string(period.size() - 1, kWindow) + kFull;
  if (every_nth)
    model.full_every = static_cast<std::int64_t>(period.size());
  else
    model.attention_pattern = period;
}

void set_layer_pairs(ModelSpec& model, const std::string& mixers, const std::string& seconds) {
  model.layer_pattern.clear();
  for (std::size_t i = 0; i < mixers.size(); ++i) (model.layer_pattern += mixers[i]) += seconds[i];
  model.layers = static_cast<std::int64_t>(model.layer_pattern.size());
}

bool set_expert_pattern(ModelSpec& model, const std::string& letters) {
  const auto first = letters.find(layer_letter::kExperts);
  if (first == std::string::npos) return false;
  const bool dense_behind = letters.find(layer_letter::kFeedForward, first) != std::string::npos;
  model.dense_layers = dense_behind ? 0 : static_cast<std::int64_t>(first);
  model.expert_pattern = dense_behind ? shortest_period(letters) : "";
  return true;
}

}  // namespace tessera

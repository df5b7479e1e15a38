#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "app/search/layout_answers.h"
#include "app/search/search_layouts.h"
#include "predictor/weights/weights.h"
#include "sim/config/scenario_source.h"

namespace tessera {

inline const std::filesystem::path kSourceDir = TESSERA_SOURCE_DIR;

inline const PredictorWeights& test_weights() {
  static const PredictorWeights weights = load_weights(kSourceDir / "predictor/weights/tessera.pb");
  return weights;
}

inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// A small scenario: settings separated by blanks, over GPT-2 with four layers on a DGX H100.
inline Scenario small_scenario(const std::string& settings) {
  return scenario_of(
      words_of("model=gpt2 model.layers=4 cluster=dgx-h100 training.framework=megatron "
               "training.precision=bf16 training.sequence_length=256 training.global_batch=8 "
               "training.micro_batch=1 " +
               settings),
      "small", Catalog(kSourceDir / "configs"));
}

/// Every legal layout simulated, in order.
inline std::vector<LayoutResult> simulated_each(const Scenario& base,
                                                const std::vector<Layout>& layouts) {
  std::vector<std::function<LayoutResult()>> calls;
  for (const Layout& layout : layouts)
    calls.emplace_back([&] { return simulate_layout(base, layout, test_weights()); });
  std::vector<LayoutResult> results;
  for (const auto& answer : forked_each(calls, 2)) {
    results.push_back(answer.value());
    results.back().layout = layouts[results.size() - 1];
  }
  return results;
}

}  // namespace tessera

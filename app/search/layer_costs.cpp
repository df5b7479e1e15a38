#include "app/search/layer_costs.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace tessera {

std::string packed(const std::vector<LayerCosts>& all) {
  std::string text;
  for (const LayerCosts& costs : all) {
    char line[320];
    std::snprintf(line, sizeof(line),
                  "%a %a %a %a %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
                  costs.forward.value(), costs.backward.value(), costs.embedding.value(),
                  costs.head.value(), costs.saved.value(), costs.parameters,
                  costs.embedding_parameters, costs.head_parameters, costs.experts);
    text += line;
  }
  return text;
}

std::vector<LayerCosts> unpacked_layer_costs(const std::string& text) {
  std::istringstream words(text);
  const auto time = [&] {
    std::string word;  // streams do not read hexadecimal fractions
    words >> word;
    return Seconds(std::strtod(word.c_str(), nullptr));
  };
  const auto count = [&] {
    std::int64_t number = 0;
    words >> number;
    return number;
  };
  std::vector<LayerCosts> all;
  while (words >> std::ws && !words.eof()) {
    LayerCosts costs;
    costs.forward = time();
    costs.backward = time();
    costs.embedding = time();
    costs.head = time();
    costs.saved = Bytes(count());
    costs.parameters = count();
    costs.embedding_parameters = count();
    costs.head_parameters = count();
    costs.experts = count();
    all.push_back(costs);
  }
  return all;
}

}  // namespace tessera

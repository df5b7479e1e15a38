#include "app/cli/price_list.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "hw/units/input_error.h"

namespace tessera {

PriceList parsed_prices(const std::vector<std::string>& words) {
  constexpr const char* kHint = "write GPU=USD per GPU and hour, as H100-SXM5-80GB=2.5";
  PriceList prices;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string amount = equals == std::string::npos ? "" : word.substr(equals + 1);
    char* end = nullptr;
    const double dollars = std::strtod(amount.c_str(), &end);
    const bool is_number = !amount.empty() && *end == '\0' && std::isfinite(dollars);
    if (equals == 0 || !is_number || dollars <= 0)
      throw InputError({"--price", "is " + word, kHint});
    if (!prices.emplace(word.substr(0, equals), dollars).second)
      throw InputError({"--price", "names " + word.substr(0, equals) + " twice", "keep one"});
  }
  return prices;
}

void check_used(const PriceList& prices, const std::vector<std::string>& gpus) {
  for (const auto& [gpu, dollars] : prices) {
    if (std::ranges::find(gpus, gpu) != gpus.end()) continue;
    std::string names;
    for (const std::string& other : gpus)
      if (names.find(other) == std::string::npos) names += (names.empty() ? "" : ", ") + other;
    throw InputError(
        {"--price", "names " + gpu + ", and no cluster here has that GPU", "they have " + names});
  }
}

}  // namespace tessera

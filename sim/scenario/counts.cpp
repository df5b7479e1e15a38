#include "sim/scenario/counts.h"

#include <algorithm>

namespace tessera {

std::string listed_values(std::vector<std::int64_t> values) {
  constexpr std::size_t kMostValues = 12;
  if (values.size() > kMostValues) values.resize(kMostValues);
  std::string list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) list += i + 1 == values.size() ? " or " : ", ";
    list += std::to_string(values[i]);
  }
  return list;
}

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t largest) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 1; i <= std::min(number, largest); ++i) {
    if (number % i == 0) found.push_back(i);
  }
  return found;
}

bool divides(const Count& part, const Count& whole) {
  return part.value <= 0 || whole.value % part.value == 0;
}

void check_divides(const Count& part, const Count& whole, const std::vector<std::int64_t>& allowed,
                   std::vector<ScenarioProblem>& problems) {
  if (divides(part, whole)) return;
  const std::string what = part.text() + " does not divide " + std::string(whole.name()) + " = " +
                           std::to_string(whole.value);
  problems.push_back({part.path, {whole.path}, what, "use " + listed_values(allowed)});
}

}  // namespace tessera

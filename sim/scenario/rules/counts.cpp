#include "sim/scenario/rules/counts.h"

#include <algorithm>

namespace tessera {

std::string listed_values(const std::vector<std::int64_t>& values) {
  constexpr std::size_t kMostValues = 12;
  const std::size_t shown = std::min(values.size(), kMostValues);
  const bool whole = shown == values.size();
  std::string list;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) list += whole && i + 1 == shown ? " or " : ", ";
    list += std::to_string(values[i]);
  }
  return whole ? list : list + " and " + std::to_string(values.size() - shown) + " more";
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
                   std::vector<Problem>& problems) {
  if (divides(part, whole)) return;
  const std::string what = part.text() + " does not divide " + std::string(whole.name()) + " = " +
                           std::to_string(whole.value);
  problems.push_back({part.path, what, "use " + listed_values(allowed), {whole.path}});
}

}  // namespace tessera

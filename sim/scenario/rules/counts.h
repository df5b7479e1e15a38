#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/rules/check_scenario.h"

namespace tessera {

/// A count with the path of its field.
struct Count {
  std::string path;
  std::int64_t value = 0;

  std::string text() const { return path + " = " + std::to_string(value); }
  std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
};

/// "1, 2 or 4"; of more than 12 values the first ones "and 24 more".
std::string listed_values(const std::vector<std::int64_t>& values);
/// Of `number`, up to `largest`.
std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t largest);

/// The rule that `part` divides `whole`; `allowed` lists what to use instead.
bool divides(const Count& part, const Count& whole);
void check_divides(const Count& part, const Count& whole, const std::vector<std::int64_t>& allowed,
                   std::vector<Problem>& problems);

}  // namespace tessera

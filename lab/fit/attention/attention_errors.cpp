#include "lab/fit/attention/attention_errors.h"

#include <algorithm>
#include <cmath>

#include "hw/units/formatted.h"

namespace tessera {
namespace {

double mean_of_absolute(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += std::abs(error);
  return 100 * sum / static_cast<double>(errors.size());
}

}  // namespace

std::string ErrorGroups::table() const {
  std::string text = formatted("%-44s %6s %6s %7s %6s\n", "", "n", "mean", "median", "bias");
  for (const auto& [group, errors] : errors_) {
    std::vector<double> sizes;
    double sum = 0;
    for (const double error : errors) {
      sizes.push_back(std::abs(error));
      sum += error;
    }
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::nth_element(sizes.begin(), middle, sizes.end());
    text += formatted("%-44s %6zu %6.1f %7.1f %6.1f\n", group.c_str(), errors.size(),
                      mean_of_absolute(errors), 100 * *middle,
                      100 * sum / static_cast<double>(errors.size()));
  }
  return text;
}

double ErrorGroups::mean(const std::string& group) const {
  const auto found = errors_.find(group);
  return found == errors_.end() ? 0 : mean_of_absolute(found->second);
}

}  // namespace tessera

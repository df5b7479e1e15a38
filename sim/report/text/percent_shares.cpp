#include "sim/report/text/percent_shares.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace tessera {

std::vector<int> tenths_of_percent(const std::vector<double>& parts) {
  const double whole = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<int> tenths(parts.size(), 0);
  if (whole <= 0) return tenths;
  std::vector<std::pair<double, std::size_t>> remainders;
  int missing = 1000;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double exact = parts[i] / whole * 1000;
    tenths[i] = static_cast<int>(exact);
    missing -= tenths[i];
    remainders.emplace_back(tenths[i] - exact, i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (int i = 0; i < missing; ++i) ++tenths[remainders[static_cast<std::size_t>(i)].second];
  return tenths;
}

}  // namespace tessera

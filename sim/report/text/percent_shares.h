#pragma once

#include <vector>

namespace tessera {

/// Shares in tenths of a percent that add up to 1000: largest remainders are rounded up.
std::vector<int> tenths_of_percent(const std::vector<double>& parts);

}  // namespace tessera

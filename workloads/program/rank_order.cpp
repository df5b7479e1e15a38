#include "workloads/program/rank_order.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

/// In the order of RankDimension.
constexpr std::array<std::string_view, kRankDimensionCount> kDimensionNames = {"tp", "cp", "ep",
                                                                               "dp", "pp"};

}  // namespace

std::optional<RankOrder> parse_rank_order(std::string_view text) {
  RankOrder order{};
  std::array<bool, kRankDimensionCount> seen{};
  for (std::size_t place = 0; place < order.size(); ++place) {
    const bool last = place + 1 == order.size();
    const std::size_t end = std::min(text.find('-'), text.size());
    const auto name =
        std::find(kDimensionNames.begin(), kDimensionNames.end(), text.substr(0, end));
    if (name == kDimensionNames.end() || last != (end == text.size())) return std::nullopt;
    const auto dimension = static_cast<std::size_t>(name - kDimensionNames.begin());
    if (seen[dimension]) return std::nullopt;
    seen[dimension] = true;
    order[place] = static_cast<RankDimension>(dimension);
    text.remove_prefix(last ? end : end + 1);
  }
  return order;
}

std::string text_of(const RankOrder& order) {
  std::string text;
  for (const RankDimension dimension : order) {
    if (!text.empty()) text += '-';
    text += kDimensionNames[static_cast<std::size_t>(dimension)];
  }
  return text;
}

}  // namespace tessera

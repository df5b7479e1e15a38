#include "sim/report/analysis/rank_list.h"

#include <map>

namespace tessera {
namespace {

/// How many of `ranks` from `at` on lie at one distance from each other.
std::size_t run_length(const std::vector<int>& ranks, std::size_t at) {
  if (at + 1 >= ranks.size()) return ranks.size() - at;
  const int distance = ranks[at + 1] - ranks[at];
  std::size_t end = at + 1;
  while (end < ranks.size() && ranks[end] - ranks[end - 1] == distance) ++end;
  return end - at;
}

}  // namespace

std::string rank_list(const std::vector<int>& ranks) {
  std::string text;
  std::size_t at = 0;
  while (at < ranks.size()) {
    if (at > 0) text += ", ";
    const std::size_t length = run_length(ranks, at);
    const auto number = [&](std::size_t i) { return std::to_string(ranks[i]); };
    if (length < 3) {
      text += number(at);
      ++at;
      continue;
    }
    const bool neighbours = ranks[at + 1] == ranks[at] + 1;
    text += neighbours ? number(at) + "-" + number(at + length - 1)
                       : number(at) + ", " + number(at + 1) + " .. " + number(at + length - 1);
    at += length;
  }
  return text;
}

std::vector<RankClass> rank_classes(const RankFolding& folding) {
  std::map<int, std::vector<int>> members;
  for (std::size_t rank = 0; rank < folding.representative.size(); ++rank) {
    members[folding.representative[rank]].push_back(static_cast<int>(rank));
  }
  std::vector<RankClass> classes;
  for (auto& [rank, ranks] : members) classes.push_back({rank, std::move(ranks)});
  return classes;
}

}  // namespace tessera

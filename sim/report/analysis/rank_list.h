#pragma once

#include <string>
#include <vector>

#include "sim/trace/rank_folding.h"

namespace tessera {

/// Ascending ranks as text, runs of equal distance shortened: "0-7, 16-23", "0, 8, 16 .. 120".
std::string rank_list(const std::vector<int>& ranks);

/// A rank that was simulated, and those that do the same, itself included.
struct RankClass {
  int rank = 0;
  std::vector<int> ranks;  ///< ascending
};
/// Ascending by rank; nothing where every rank was simulated.
std::vector<RankClass> rank_classes(const RankFolding& folding);

}  // namespace tessera

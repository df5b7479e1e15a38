#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tessera {

/// A fold that was asked for and not done, or not for all ranks.
struct FoldRefusal {
  std::string fold;    ///< "tensor", "data"
  std::string reason;  ///< what tells ranks apart, with two of them as an example
};

/// Which ranks of a job were simulated, and for which others they stand: those that do the same at
/// the same times.
struct RankFolding {
  std::vector<int> representative;  ///< by rank: who was simulated for it; empty: every rank was
  std::vector<FoldRefusal> refused;

  bool any() const { return !representative.empty(); }
  int of(int rank) const { return any() ? representative[static_cast<std::size_t>(rank)] : rank; }
};

}  // namespace tessera

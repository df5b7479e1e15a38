#pragma once

#include <array>
#include <span>
#include <vector>

#include "workloads/process_groups.h"

namespace tessera {

/// Ranks that run collectives together, in ascending order.
struct Communicator {
  GroupKind kind = GroupKind::world;
  std::vector<int> ranks;
};

/// All communicators of a layout: the groups of every kind (workloads/process_groups.h).
class Communicators {
 public:
  explicit Communicators(const ParallelLayout& layout);

  std::span<const Communicator> all() const { return all_; }
  const Communicator& operator[](int index) const { return all_[static_cast<std::size_t>(index)]; }
  /// Index of the communicator of `kind` that `rank` belongs to; -1 if none (embedding, on the
  /// stages between).
  int index_of(int rank, GroupKind kind) const;
  /// Of every kind; -1 where the rank has none.
  std::span<const int> of(int rank) const { return of_rank_[static_cast<std::size_t>(rank)]; }

 private:
  void add_groups(const GroupDefinition& definition, const ParallelLayout& layout);

  std::vector<Communicator> all_;
  std::vector<std::array<int, kGroupKindCount>> of_rank_;
};

}  // namespace tessera

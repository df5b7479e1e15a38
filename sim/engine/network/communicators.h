#pragma once

#include <array>
#include <span>
#include <vector>

#include "workloads/program/process_groups.h"

namespace tessera {

/// Ranks that run collectives together, in ascending order.
struct Communicator {
  GroupKind kind = GroupKind::world;
  std::vector<int> ranks;
};

/// All communicators of a layout: the groups of every kind (workloads/program/process_groups.h),
/// and those that a program lists.
class Communicators {
 public:
  explicit Communicators(const ParallelLayout& layout);
  /// Only those that a collective of the program runs in.
  explicit Communicators(const Program& program);

  std::span<const Communicator> all() const { return all_; }
  const Communicator& operator[](int index) const { return all_[static_cast<std::size_t>(index)]; }
  /// Index of the communicator of `kind` that `rank` belongs to; -1 if none (embedding, on the
  /// stages between).
  int index_of(int rank, GroupKind kind) const;
  /// The communicator that a collective of `rank` runs in.
  int index_of(int rank, const ProgramOp& collective) const {
    if (collective.group == GroupKind::listed) return first_listed_ + collective.listed_group;
    return index_of(rank, collective.group);
  }
  /// Of every kind but `listed`; -1 where the rank has none.
  std::span<const int> of(int rank) const { return of_rank_[static_cast<std::size_t>(rank)]; }

 private:
  void add_groups(const GroupDefinition& definition, const ParallelLayout& layout);

  std::vector<Communicator> all_;
  int first_listed_ = 0;
  std::vector<std::array<int, kGroupKindCount>> of_rank_;
};

}  // namespace tessera

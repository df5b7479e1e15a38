#include "sim/engine/communicators.h"

#include <map>

#include "workloads/process_groups.h"

namespace tessera {

Communicators::Communicators(const ParallelLayout& layout) {
  std::array<int, kGroupKindCount> none{};
  none.fill(-1);
  of_rank_.assign(static_cast<std::size_t>(layout.world_size()), none);
  for (const GroupDefinition& definition : kGroupDefinitions) {
    std::map<GroupCoordinates, int> index_of_key;
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      if (!is_group_member(rank, definition.kind, layout)) continue;
      const auto [entry, is_new] = index_of_key.try_emplace(
          group_key(rank, definition.kind, layout), static_cast<int>(all_.size()));
      if (is_new) all_.push_back({definition.kind, {}});
      all_[static_cast<std::size_t>(entry->second)].ranks.push_back(rank);
      of_rank_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(definition.kind)] =
          entry->second;
    }
  }
}

int Communicators::index_of(int rank, GroupKind kind) const {
  return of_rank_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(kind)];
}

}  // namespace tessera

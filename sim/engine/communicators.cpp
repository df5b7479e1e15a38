#include "sim/engine/communicators.h"

namespace tessera {
namespace {

static_assert(sizeof(GroupCoordinates) == 3 * sizeof(int), "number_of() takes all coordinates");

/// Numbers coordinates from 0 to the number of ranks.
std::size_t number_of(const GroupCoordinates& at, const ParallelLayout& layout) {
  const int number = (at.pipeline * layout.replicas() + at.replica) * layout.tensor + at.tensor;
  return static_cast<std::size_t>(number);
}

}  // namespace

Communicators::Communicators(const ParallelLayout& layout) {
  std::array<int, kGroupKindCount> none{};
  none.fill(-1);
  of_rank_.assign(static_cast<std::size_t>(layout.world_size()), none);
  for (const GroupDefinition& definition : kGroupDefinitions) add_groups(definition, layout);
}

void Communicators::add_groups(const GroupDefinition& definition, const ParallelLayout& layout) {
  std::vector<int> index_of_key(of_rank_.size(), -1);
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    if (!is_group_member(rank, definition.kind, layout)) continue;
    int& index = index_of_key[number_of(group_key(rank, definition.kind, layout), layout)];
    if (index < 0) {
      index = static_cast<int>(all_.size());
      all_.push_back({definition.kind, {}});
    }
    all_[static_cast<std::size_t>(index)].ranks.push_back(rank);
    of_rank_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(definition.kind)] = index;
  }
}

int Communicators::index_of(int rank, GroupKind kind) const {
  return of_rank_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(kind)];
}

}  // namespace tessera

#include "sim/engine/communicators.h"

#include <map>

namespace tessera {
namespace {

// Ranks with equal keys form one communicator.
int group_key(int rank, GroupKind kind, const ParallelLayout& layout) {
  RankPosition position = position_of(rank, layout);
  switch (kind) {
    case GroupKind::tensor:
      position.tensor = 0;
      break;
    case GroupKind::data:
      position.data = 0;
      break;
    case GroupKind::pipeline:
    case GroupKind::embedding:
      position.pipeline = 0;
      break;
    case GroupKind::world:
      position = {};
      break;
  }
  return rank_of(position, layout);
}

bool is_member(int rank, GroupKind kind, const ParallelLayout& layout) {
  const int stage = position_of(rank, layout).pipeline;
  return kind != GroupKind::embedding || stage == 0 || stage == layout.pipeline - 1;
}

}  // namespace

Communicators::Communicators(const ParallelLayout& layout)
    : of_rank_(static_cast<std::size_t>(layout.world_size()), {-1, -1, -1, -1, -1}) {
  for (int kind = 0; kind < kKinds; ++kind) {
    const auto group = static_cast<GroupKind>(kind);
    std::map<int, int> index_of_key;
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      if (!is_member(rank, group, layout)) continue;
      const auto [entry, is_new] =
          index_of_key.try_emplace(group_key(rank, group, layout), static_cast<int>(all_.size()));
      if (is_new) all_.push_back({group, {}});
      all_[static_cast<std::size_t>(entry->second)].ranks.push_back(rank);
      of_rank_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(kind)] = entry->second;
    }
  }
}

int Communicators::index_of(int rank, GroupKind kind) const {
  return of_rank_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(kind)];
}

}  // namespace tessera

#pragma once

#include <array>

#include "workloads/program.h"

namespace tessera {

/// Coordinates of a rank by which process groups are formed. The data-parallel position counts as
/// two: within its shard group, and which shard group.
struct GroupCoordinates {
  int tensor = 0;
  int shard = 0;
  int replica = 0;
  int pipeline = 0;

  bool operator==(const GroupCoordinates&) const = default;
  auto operator<=>(const GroupCoordinates&) const = default;
};

constexpr GroupCoordinates group_coordinates(int rank, const ParallelLayout& layout) {
  const RankPosition position = position_of(rank, layout);
  return {.tensor = position.tensor,
          .shard = position.data % layout.shard,
          .replica = position.data / layout.shard,
          .pipeline = position.pipeline};
}

/// Which coordinates vary within a group; ranks that agree in all others form one.
struct GroupDefinition {
  GroupKind kind = GroupKind::world;
  bool tensor = false;
  bool shard = false;
  bool replica = false;
  bool pipeline = false;
  bool end_stages_only = false;  ///< the stages between the first and the last do not take part
};

/// Every kind of group, in the order of GroupKind.
inline constexpr std::array<GroupDefinition, kGroupKindCount> kGroupDefinitions = {{
    {.kind = GroupKind::tensor, .tensor = true},
    {.kind = GroupKind::data, .shard = true, .replica = true},
    {.kind = GroupKind::pipeline, .pipeline = true},
    {.kind = GroupKind::embedding, .pipeline = true, .end_stages_only = true},
    {.kind = GroupKind::world, .tensor = true, .shard = true, .replica = true, .pipeline = true},
    {.kind = GroupKind::shard, .shard = true},
    {.kind = GroupKind::replica, .replica = true},
}};

constexpr const GroupDefinition& group_definition(GroupKind kind) {
  return kGroupDefinitions[static_cast<std::size_t>(kind)];
}

/// Equal for the ranks of one group.
constexpr GroupCoordinates group_key(int rank, GroupKind kind, const ParallelLayout& layout) {
  const GroupDefinition& varies = group_definition(kind);
  GroupCoordinates key = group_coordinates(rank, layout);
  if (varies.tensor) key.tensor = 0;
  if (varies.shard) key.shard = 0;
  if (varies.replica) key.replica = 0;
  if (varies.pipeline) key.pipeline = 0;
  return key;
}

constexpr bool is_group_member(int rank, GroupKind kind, const ParallelLayout& layout) {
  const int stage = position_of(rank, layout).pipeline;
  return !group_definition(kind).end_stages_only || stage == 0 || stage == layout.pipeline - 1;
}

/// Groups whose members run programs of different stages.
constexpr bool spans_stages(GroupKind kind) {
  return group_definition(kind).pipeline;
}

}  // namespace tessera

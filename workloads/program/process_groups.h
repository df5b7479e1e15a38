#pragma once

#include <array>

#include "workloads/program/program.h"

namespace tessera {

/// Coordinates of a rank by which process groups are formed. `replica` numbers the ranks that hold
/// the same dense parameters, context-parallel neighbours first.
struct GroupCoordinates {
  int tensor = 0;
  int replica = 0;
  int pipeline = 0;

  bool operator==(const GroupCoordinates&) const = default;
  auto operator<=>(const GroupCoordinates&) const = default;
};

constexpr GroupCoordinates group_coordinates(int rank, const ParallelLayout& layout) {
  const RankPosition position = position_of(rank, layout);
  return {.tensor = position.tensor,
          .replica = position.context + layout.context * position.data,
          .pipeline = position.pipeline};
}

/// Which replicas a group holds, of blocks of so many neighbours.
enum class Replicas : std::uint8_t {
  one,
  all,
  within_shard,    ///< a block of `shard`
  across_shards,   ///< the same place of every such block
  within_context,  ///< a block of `context`
  within_experts,  ///< those that share the experts: a block of `expert` places
  across_experts,  ///< the same place of every such block
};

/// Groups that share, copy or cut experts, whose ranks are numbered by places of their own.
constexpr bool is_of_experts(GroupKind kind) {
  return kind == GroupKind::expert || kind == GroupKind::expert_data ||
         kind == GroupKind::expert_tensor;
}

/// Which coordinates vary within a group; ranks that agree in all others form one.
struct GroupDefinition {
  GroupKind kind = GroupKind::world;
  bool tensor = false;
  Replicas replicas = Replicas::one;
  bool pipeline = false;
  bool end_stages_only = false;  ///< the stages between the first and the last do not take part
};

/// Every kind of group, in the order of GroupKind.
inline constexpr std::array<GroupDefinition, kGroupKindCount> kGroupDefinitions = {{
    {.kind = GroupKind::tensor, .tensor = true},
    {.kind = GroupKind::data, .replicas = Replicas::all},
    {.kind = GroupKind::pipeline, .pipeline = true},
    {.kind = GroupKind::embedding, .pipeline = true, .end_stages_only = true},
    {.kind = GroupKind::world, .tensor = true, .replicas = Replicas::all, .pipeline = true},
    {.kind = GroupKind::shard, .replicas = Replicas::within_shard},
    {.kind = GroupKind::replica, .replicas = Replicas::across_shards},
    {.kind = GroupKind::context, .replicas = Replicas::within_context},
    {.kind = GroupKind::expert, .replicas = Replicas::within_experts},
    {.kind = GroupKind::expert_data, .replicas = Replicas::across_experts},
    {.kind = GroupKind::expert_tensor, .replicas = Replicas::one},
    // The program says who; ranks of other stages may be among them.
    {.kind = GroupKind::listed, .tensor = true, .replicas = Replicas::all, .pipeline = true},
}};

constexpr const GroupDefinition& group_definition(GroupKind kind) {
  return kGroupDefinitions[static_cast<std::size_t>(kind)];
}

/// The part of `replica` that is equal within a group; of groups of experts that of the place among
/// `expert_places()`.
constexpr int replica_key(int replica, Replicas varying, const ParallelLayout& layout) {
  const auto first = [&](RankDimension wanted) {
    for (const RankDimension dimension : layout.order) {
      if (dimension == wanted) return true;
      if (dimension == RankDimension::expert || dimension == RankDimension::data) return false;
    }
    return false;
  };
  const int stride = first(RankDimension::expert) ? 1 : layout.expert_places() / layout.expert;
  const int block = stride * layout.expert;
  switch (varying) {
    case Replicas::one:
      return replica;
    case Replicas::all:
      return 0;
    case Replicas::within_shard:
      return replica / layout.shard;
    case Replicas::across_shards:
      return replica % layout.shard;
    case Replicas::within_context:
      return replica / layout.context;
    case Replicas::within_experts:
      return replica / block * stride + replica % stride;
    case Replicas::across_experts:
      return replica % block / stride;
  }
  return replica;
}

/// Of a group of experts. The ranks of a stage, tensor-parallel neighbours first, are blocks of
/// `expert_parts()` that each hold one place's experts. Source: Megatron-Core parallel_state.py,
/// expert_decoder_rank_generator.
constexpr GroupCoordinates expert_group_key(GroupCoordinates rank, GroupKind kind,
                                            const ParallelLayout& layout) {
  const int parts = layout.expert_parts();
  const int number = rank.tensor + layout.tensor * rank.replica;
  int key = number / parts;
  if (kind != GroupKind::expert_tensor)
    key = number % parts + parts * replica_key(key, group_definition(kind).replicas, layout);
  return {.tensor = key % layout.tensor, .replica = key / layout.tensor, .pipeline = rank.pipeline};
}

/// Equal for the ranks of one group.
constexpr GroupCoordinates group_key(int rank, GroupKind kind, const ParallelLayout& layout) {
  const GroupDefinition& varies = group_definition(kind);
  GroupCoordinates key = group_coordinates(rank, layout);
  if (is_of_experts(kind)) return expert_group_key(key, kind, layout);
  if (varies.tensor) key.tensor = 0;
  key.replica = replica_key(key.replica, varies.replicas, layout);
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

#include "sim/engine/network/communicators.h"

namespace tessera {
namespace {

static_assert(sizeof(GroupCoordinates) == 3 * sizeof(int), "number_of() takes all coordinates");

/// Numbers coordinates from 0 to the number of ranks.
std::size_t number_of(const GroupCoordinates& at, const ParallelLayout& layout) {
  const int number = (at.pipeline * layout.replicas() + at.replica) * layout.tensor + at.tensor;
  return static_cast<std::size_t>(number);
}

std::array<int, kGroupKindCount> no_group() {
  std::array<int, kGroupKindCount> none{};
  none.fill(-1);
  return none;
}

}  // namespace

Communicators::Communicators(const ParallelLayout& layout)
    : of_rank_(static_cast<std::size_t>(layout.world_size()), no_group()) {
  for (const GroupDefinition& definition : kGroupDefinitions) {
    if (definition.kind != GroupKind::listed) add_groups(definition, layout);
  }
}

Communicators::Communicators(const Program& program)
    : of_rank_(static_cast<std::size_t>(program.layout.world_size()), no_group()) {
  std::array<bool, kGroupKindCount> used{};
  for (const RankProgram& stage : program.stages) {
    for (const ProgramOp& op : stage.ops) {
      if (is_collective(op.kind)) used[static_cast<std::size_t>(op.group)] = true;
    }
  }
  used[static_cast<std::size_t>(GroupKind::listed)] = false;
  for (const GroupDefinition& definition : kGroupDefinitions) {
    if (used[static_cast<std::size_t>(definition.kind)]) add_groups(definition, program.layout);
  }
  first_listed_ = static_cast<int>(all_.size());
  for (const std::vector<int>& ranks : program.listed_groups)
    all_.push_back({GroupKind::listed, ranks});
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

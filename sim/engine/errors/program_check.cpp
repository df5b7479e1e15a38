#include "sim/engine/errors/program_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hw/units/input_error.h"
#include "workloads/program/labels.h"
#include "workloads/program/process_groups.h"

namespace tessera {
namespace {

bool is_duration(Seconds time) {
  return std::isfinite(time.value()) && time >= Seconds(0);
}

/// An op of a stage. Its text is made only for problems: programs have 100,000 ops.
struct OpPlace {
  int stage = 0;
  std::size_t op = 0;
  operator std::string() const {  // NOLINT(google-explicit-constructor): where a problem lies
    return "stage " + std::to_string(stage) + " op " + std::to_string(op);
  }
};

/// Collects what is wrong with a program; the order of the checks is the order of the report.
class ProgramCheck {
 public:
  explicit ProgramCheck(const TimedProgram& timed) : timed_(timed), program_(timed.program) {}

  std::vector<Problem> run() {
    check_sizes();
    if (!problems_.empty()) return problems_;  // the rest would index out of them
    check_segments();
    for (int stage = 0; stage < std::ssize(program_.stages); ++stage) check_stage(stage);
    check_collectives_across_stages();
    check_collectives_across_replicas();
    check_listed_groups();
    return problems_;
  }

 private:
  const RankProgram& stage_program(int stage) const {
    return program_.stages[static_cast<std::size_t>(stage)];
  }
  void add(std::string where, std::string what, std::string hint = "") {
    problems_.push_back({std::move(where), std::move(what), std::move(hint)});
  }

  void check_sizes();
  void check_kinds_of_replicas();
  void check_segments();
  void check_stage(int stage);
  void check_references(const ProgramOp& op, std::size_t op_count, const OpPlace& where);
  void check_message(const ProgramOp& op, const OpPlace& where);
  void check_collectives_across_stages();
  void check_collectives_across_replicas();
  struct Collective {
    OpKind kind = OpKind::all_reduce;
    Bytes bytes;
    bool operator==(const Collective&) const = default;
    std::string text() const {
      return std::string(label_of(kind)) + " of " + std::to_string(bytes.value()) + " bytes";
    }
  };
  std::vector<Collective> collectives_of(int stage, GroupOfRank group) const;
  void check_listed_groups();
  void check_listed_group(std::int32_t group);
  void check_membership(const ProgramOp& op, const OpPlace& where);

  const TimedProgram& timed_;
  const Program& program_;
  std::vector<Problem> problems_;
  std::set<std::tuple<OpKind, int, int, int>> messages_;  // kind, stage, peer stage, tag
};

void ProgramCheck::check_sizes() {
  const ParallelLayout& layout = program_.layout;
  if (layout.tensor < 1 || layout.pipeline < 1 || layout.data < 1 || layout.context < 1) {
    add("layout", "a parallel dimension is smaller than 1");
    return;
  }
  if (layout.shard < 1 || layout.replicas() % layout.shard != 0) {
    add("layout", "shard groups of " + std::to_string(layout.shard) + " do not divide " +
                      std::to_string(layout.replicas()) + " replicas");
    return;
  }
  if (layout.world_size() > timed_.topology.gpu_count()) {
    add("layout",
        std::to_string(layout.world_size()) + " ranks do not fit on " +
            std::to_string(timed_.topology.gpu_count()) + " GPUs",
        "use a larger cluster or less parallelism");
  }
  if (!program_.kind_of_replica.empty()) return check_kinds_of_replicas();
  if (program_.stages.size() != static_cast<std::size_t>(layout.pipeline)) {
    add("program", std::to_string(program_.stages.size()) + " stage programs for " +
                       std::to_string(layout.pipeline) + " pipeline stages");
  }
  if (timed_.segments.size() != program_.segments.size()) {
    add("program", std::to_string(timed_.segments.size()) + " timed segments for " +
                       std::to_string(program_.segments.size()) + " segments");
  }
}

void ProgramCheck::check_kinds_of_replicas() {
  const ParallelLayout& layout = program_.layout;
  const auto& kinds = program_.kind_of_replica;
  const auto count = static_cast<int>(program_.stages.size()) / layout.pipeline;
  const bool known =
      std::ranges::all_of(kinds, [&](std::int32_t kind) { return kind >= 0 && kind < count; });
  if (kinds.size() != static_cast<std::size_t>(layout.data) || !known)
    add("program", "kinds of " + std::to_string(kinds.size()) + " replicas for " +
                       std::to_string(layout.data) + ", among " + std::to_string(count));
}

void ProgramCheck::check_segments() {
  for (std::size_t i = 0; i < program_.segments.size(); ++i) {
    const std::string where =
        "segment " + std::to_string(i) + " (" + program_.segments[i].name + ")";
    if (!is_duration(timed_.segments[i].duration)) {
      add(where, "duration " + std::to_string(timed_.segments[i].duration.value()) + " s");
    }
    if (!is_duration(timed_.segments[i].host_time)) {
      add(where, "host time " + std::to_string(timed_.segments[i].host_time.value()) + " s");
    }
  }
  if (!is_duration(timed_.communication_host_time)) {
    add("program", "host time per communication " +
                       std::to_string(timed_.communication_host_time.value()) + " s");
  }
  if (timed_.message_host_time && !is_duration(*timed_.message_host_time)) {
    add("program",
        "host time per message " + std::to_string(timed_.message_host_time->value()) + " s");
  }
}

void ProgramCheck::check_stage(int stage) {
  const std::vector<ProgramOp>& ops = stage_program(stage).ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpPlace where{stage, i};
    check_references(ops[i], ops.size(), where);
    if (is_collective(ops[i].kind) && ops[i].group == GroupKind::listed)
      check_membership(ops[i], where);
    if (ops[i].kind == OpKind::send || ops[i].kind == OpKind::recv) check_message(ops[i], where);
  }
}

void ProgramCheck::check_references(const ProgramOp& op, std::size_t op_count,
                                    const OpPlace& where) {
  for (const std::int32_t awaited : op.waits) {
    if (awaited >= 0 && static_cast<std::size_t>(awaited) >= op_count) {
      add(where, "waits for op " + std::to_string(awaited) + " of " + std::to_string(op_count));
    }
  }
  if (op.kind == OpKind::kernels) {
    const int segment = op.segment.index();
    if (segment < 0 || static_cast<std::size_t>(segment) >= program_.segments.size()) {
      add(where, "runs segment " + std::to_string(segment) + ", which does not exist");
    }
    return;
  }
  if (op.bytes < Bytes(0)) add(where, std::to_string(op.bytes.value()) + " bytes");
  const int stage = where.stage % program_.layout.pipeline;
  const bool between = stage > 0 && stage < program_.layout.pipeline - 1;
  if (is_collective(op.kind) && group_definition(op.group).end_stages_only && between) {
    add(where, std::string(label_of(op.kind)) + " of the " + std::string(label_of(op.group)) +
                   " group, which has only the first and the last stage");
  }
}

void ProgramCheck::check_message(const ProgramOp& op, const OpPlace& where) {
  const int stage = where.stage % program_.layout.pipeline;
  if (op.peer_stage < 0 || op.peer_stage >= program_.layout.pipeline || op.peer_stage == stage) {
    add(where, "exchanges a message with stage " + std::to_string(op.peer_stage));
  }
  if (!messages_.insert({op.kind, where.stage, op.peer_stage, op.tag}).second) {
    add(where,
        "a second " + std::string(label_of(op.kind)) + " with tag " + std::to_string(op.tag) +
            " and stage " + std::to_string(op.peer_stage),
        "number the messages between two stages");
  }
}

// Ranks of one stage share a program, so only the groups that span stages can disagree. A stage
// that issues fewer collectives than another shows as a deadlock, with the streams that wait.
void ProgramCheck::check_collectives_across_stages() {
  for (const GroupDefinition& definition : kGroupDefinitions) {
    const GroupKind group = definition.kind;
    if (!spans_stages(group) || group == GroupKind::listed) continue;
    const std::vector<Collective> expected = collectives_of(0, {group, -1});
    for (int stage = 1; stage < program_.layout.pipeline; ++stage) {
      const std::vector<Collective> actual = collectives_of(stage, {group, -1});
      for (std::size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
        if (actual[i] == expected[i]) continue;
        add("stage " + std::to_string(stage),
            "collective " + std::to_string(i) + " of the " + std::string(label_of(group)) +
                " group is " + actual[i].text() + ", on stage 0 " + expected[i].text());
      }
    }
  }
}

// Replicas that do not do the same meet in the same collectives.
void ProgramCheck::check_collectives_across_replicas() {
  if (program_.kind_of_replica.empty()) return;
  for (const GroupDefinition& definition : kGroupDefinitions) {
    const bool one =
        definition.replicas == Replicas::one || definition.replicas == Replicas::within_context;
    if (one || definition.kind == GroupKind::listed) continue;
    const GroupOfRank group{definition.kind, -1};
    for (int other = program_.layout.pipeline; other < std::ssize(program_.stages); ++other) {
      const int stage = other % program_.layout.pipeline;
      if (collectives_of(other, group) == collectives_of(stage, group)) continue;
      add("stage " + std::to_string(stage),
          "replicas with other numbers of micro-batches differ in collectives of the " +
              std::string(label_of(definition.kind)) + " group",
          "reduce gradients once a step, or leave out parallelism.micro_batches_per_replica");
    }
  }
}

std::vector<ProgramCheck::Collective> ProgramCheck::collectives_of(int stage,
                                                                   GroupOfRank group) const {
  std::vector<Collective> collectives;
  for (const ProgramOp& op : stage_program(stage).ops) {
    if (is_collective(op.kind) && op.group_of_rank() == group)
      collectives.push_back({op.kind, op.bytes});
  }
  return collectives;
}

void ProgramCheck::check_membership(const ProgramOp& op, const OpPlace& where) {
  const auto& groups = program_.listed_groups;
  const auto group = static_cast<std::size_t>(op.listed_group);
  if (op.listed_group < 0 || group >= groups.size()) {
    add(where, "runs in listed group " + std::to_string(op.listed_group) + " of " +
                   std::to_string(groups.size()));
  } else if (!std::ranges::binary_search(groups[group], where.stage)) {
    add(where, "runs in listed group " + std::to_string(op.listed_group) +
                   ", which does not hold its rank");
  }
}

void ProgramCheck::check_listed_groups() {
  if (program_.listed_groups.empty()) return;
  if (program_.layout.world_size() != program_.layout.pipeline) {
    add("program", "lists groups although stages have several ranks");
    return;
  }
  for (std::size_t i = 0; i < program_.listed_groups.size(); ++i)
    check_listed_group(static_cast<std::int32_t>(i));
}

// Here a member that issues fewer is bad input, not a deadlock to be found: traces are cut off.
void ProgramCheck::check_listed_group(std::int32_t group) {
  const GroupOfRank key{GroupKind::listed, group};
  const std::vector<int>& ranks = program_.listed_groups[static_cast<std::size_t>(group)];
  const bool in_order =
      std::ranges::adjacent_find(ranks, std::ranges::greater_equal()) == ranks.end();
  if (ranks.empty() || !in_order || ranks.front() < 0 ||
      ranks.back() >= program_.layout.world_size()) {
    add("listed group " + std::to_string(group), "is not an ascending list of ranks");
    return;
  }
  const std::vector<Collective> expected = collectives_of(ranks.front(), key);
  for (const int rank : ranks) {
    const std::vector<Collective> actual = collectives_of(rank, key);
    const std::string where = "rank " + std::to_string(rank);
    const auto [here, there] = std::ranges::mismatch(actual, expected);
    if (here == actual.end() && there == expected.end()) continue;
    const auto text = [](auto at, const std::vector<Collective>& all) {
      return at == all.end() ? "missing" : at->text();
    };
    add(where, "collective " + std::to_string(here - actual.begin()) + " of listed group " +
                   std::to_string(group) + " is " + text(here, actual) + ", on rank " +
                   std::to_string(ranks.front()) + " " + text(there, expected));
  }
}

}  // namespace

void check_program(const TimedProgram& timed) {
  std::vector<Problem> problems = ProgramCheck(timed).run();
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace tessera

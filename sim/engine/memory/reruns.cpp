#include "sim/engine/memory/reruns.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace tessera {
namespace {

bool is_backward_kernel(const ProgramOp& op) {
  return op.kind == OpKind::kernels && op.stream == StreamKind::compute &&
         op.phase == Phase::backward;
}

/// What each forward op of a stage needs to run again, and what it then makes.
class RerunSearch {
 public:
  RerunSearch(const RankProgram& rank, const TensorLives& lives) : rank_(rank), lives_(lives) {}

  /// Nothing where a tensor that `op` needs is written later, or where it makes nothing that can
  /// be given up.
  std::optional<Rerun> of(std::int32_t op) const {
    Rerun rerun{.op = op, .makes = {}, .needs = {}};
    std::int32_t needs_until = std::numeric_limits<std::int32_t>::max();
    for (const std::int32_t tensor : lives_.of_op(op)) {
      if (life(tensor).users.front() == op) continue;
      if (life(tensor).last_writer >= op) return std::nullopt;
      rerun.needs.push_back(tensor);
      needs_until = std::min(needs_until, life(tensor).users.back());
    }
    for (const std::int32_t tensor : lives_.of_op(op)) {
      const TensorLife& made = life(tensor);
      if (made.users.front() == op && is_kept_for_backward(made) && made.users[1] <= needs_until)
        rerun.makes.push_back(tensor);
    }
    if (rerun.makes.empty()) return std::nullopt;
    return rerun;
  }

 private:
  const TensorLife& life(std::int32_t tensor) const {
    return lives_.all()[static_cast<std::size_t>(tensor)];
  }

  /// Used, behind the op that makes it, by kernels of backward passes alone.
  bool is_kept_for_backward(const TensorLife& made) const {
    return made.users.size() > 1 &&
           std::all_of(made.users.begin() + 1, made.users.end(), [&](std::int32_t user) {
             return is_backward_kernel(rank_.ops[static_cast<std::size_t>(user)]);
           });
  }

  const RankProgram& rank_;
  const TensorLives& lives_;
};

}  // namespace

bool gathers_for_backward(const RankProgram& stage) {
  return std::ranges::any_of(stage.ops, [](const ProgramOp& op) {
    const bool of_parameters = op.group == GroupKind::shard || op.group == GroupKind::expert_data;
    return op.kind == OpKind::all_gather && of_parameters && op.phase == Phase::backward;
  });
}

bool stands_alone(const ProgramOp& op, const Program& program) {
  if (op.kind != OpKind::kernels || op.stream != StreamKind::compute) return false;
  if (op.allocated.value() != 0 || op.freed.value() != 0) return false;
  const Segment& segment = program.segment(op.segment);
  return segment.repeatable && std::ranges::all_of(segment.memory, [](const MemoryEvent& event) {
           return event.kind == MemoryEventKind::allocate || event.kind == MemoryEventKind::free;
         });
}

Reruns::Reruns(const Program& program, int stage, const TensorLives& lives)
    : of_tensor_(lives.all().size(), kNone) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  if (gathers_for_backward(rank)) return;
  const RerunSearch search(rank, lives);
  for (std::int32_t op = 0; op < static_cast<std::int32_t>(rank.ops.size()); ++op) {
    if (!stands_alone(rank.ops[static_cast<std::size_t>(op)], program)) continue;
    std::optional<Rerun> rerun = search.of(op);
    if (!rerun) continue;
    for (const std::int32_t tensor : rerun->makes)
      of_tensor_[static_cast<std::size_t>(tensor)] = static_cast<std::int32_t>(all_.size());
    all_.push_back(std::move(*rerun));
  }
}

}  // namespace tessera

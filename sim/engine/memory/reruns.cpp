#include "sim/engine/memory/reruns.h"

#include <algorithm>
#include <limits>

namespace tessera {
namespace {

constexpr std::int32_t kNone = -1;

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
  const auto op_at = [&](std::int32_t op) -> const ProgramOp& {
    return rank.ops[static_cast<std::size_t>(op)];
  };
  const auto life = [&](std::int32_t tensor) -> const TensorLife& {
    return lives.all()[static_cast<std::size_t>(tensor)];
  };
  // Made by `op`, and then used by kernels of backward passes alone.
  const auto is_kept_for_backward = [&](std::int32_t tensor) {
    const std::vector<std::int32_t>& users = life(tensor).users;
    return users.size() > 1 && std::all_of(users.begin() + 1, users.end(), [&](std::int32_t user) {
             const ProgramOp& using_op = op_at(user);
             return using_op.kind == OpKind::kernels && using_op.stream == StreamKind::compute &&
                    using_op.phase == Phase::backward;
           });
  };
  for (std::int32_t op = 0; op < static_cast<std::int32_t>(rank.ops.size()); ++op) {
    if (!stands_alone(op_at(op), program)) continue;
    Rerun rerun;
    rerun.op = op;
    std::int32_t needs_until = std::numeric_limits<std::int32_t>::max();
    bool unchanged = true;
    for (const std::int32_t tensor : lives.of_op(op)) {
      if (life(tensor).users.front() == op) continue;
      rerun.needs.push_back(tensor);
      needs_until = std::min(needs_until, life(tensor).users.back());
      unchanged = unchanged && life(tensor).last_writer < op;
    }
    if (!unchanged) continue;
    for (const std::int32_t tensor : lives.of_op(op)) {
      const TensorLife& made = life(tensor);
      if (made.users.front() == op && is_kept_for_backward(tensor) && made.users[1] <= needs_until)
        rerun.makes.push_back(tensor);
    }
    if (rerun.makes.empty()) continue;
    for (const std::int32_t tensor : rerun.makes)
      of_tensor_[static_cast<std::size_t>(tensor)] = static_cast<std::int32_t>(all_.size());
    all_.push_back(std::move(rerun));
  }
}

}  // namespace tessera

#include "sim/engine/memory/op_uses.h"

#include <algorithm>

#include "sim/engine/memory/reruns.h"

namespace tessera {

OpUses::OpUses(const Program& program, int stage, const TensorLives& lives) {
  for (const TensorLife& life : lives.all()) maker_.push_back(life.users.front());
  for (const ProgramOp& op : program.stages[static_cast<std::size_t>(stage)].ops) {
    computes_.push_back(op.kind == OpKind::kernels && op.stream == StreamKind::compute ? 1 : 0);
  }
  sort_uses(lives);
  find_reruns(program, stage, lives);
  count_besides(program, stage, lives);
}

void OpUses::sort_uses(const TensorLives& lives) {
  for (const TensorLife& life : lives.all()) {
    const bool leaves = life.users.size() > 1 &&
                        std::ranges::all_of(life.users, [&](int user) { return computes(user); });
    can_leave_.push_back(leaves ? 1 : 0);
  }
  for (std::int32_t op = 0; op < ops(); ++op) {
    for (const std::int32_t tensor : lives.of_op(op)) {
      if (!can_leave(tensor)) continue;
      (maker(tensor) == op ? makes_ : reads_).tensors.push_back(tensor);
    }
    makes_.begin.push_back(makes_.tensors.size());
    reads_.begin.push_back(reads_.tensors.size());
  }
}

void OpUses::find_reruns(const Program& program, int stage, const TensorLives& lives) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  const bool gathers = gathers_for_backward(rank);
  for (std::int32_t op = 0; op < ops(); ++op) {
    bool can = !gathers && stands_alone(rank.ops[static_cast<std::size_t>(op)], program);
    for (const std::int32_t tensor : lives.of_op(op)) {
      const TensorLife& life = lives.all()[static_cast<std::size_t>(tensor)];
      const bool made = life.users.front() == op;
      can = can && (made ? life.last_writer <= op : life.last_writer < op && can_leave(tensor));
    }
    can_rerun_.push_back(can ? 1 : 0);
  }
}

void OpUses::count_besides(const Program& program, int stage, const TensorLives& lives) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  Bytes level, tensors;
  const auto bytes = [&](std::int32_t tensor) {
    return lives.all()[static_cast<std::size_t>(tensor)].allocation.bytes;
  };
  for (std::int32_t op = 0; op < ops(); ++op) {
    const ProgramOp& here = rank.ops[static_cast<std::size_t>(op)];
    besides_.push_back(level - tensors);
    Bytes peak = level + here.allocated;
    level += here.allocated - here.freed;
    if (here.kind == OpKind::kernels) {
      const Segment& segment = program.segment(here.segment);
      peak += segment.peak_above_start;
      level += segment.net_memory;
    }
    for (const std::int32_t tensor : made_by(op)) tensors += bytes(tensor);
    most_.push_back(std::max(Bytes(0), peak - tensors));
    for (const auto& list : {made_by(op), read_by(op)}) {
      for (const std::int32_t tensor : list) {
        const TensorLife& life = lives.all()[static_cast<std::size_t>(tensor)];
        if (life.users.back() == op) tensors -= bytes(tensor);
      }
    }
  }
}

}  // namespace tessera

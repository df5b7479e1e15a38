#include "sim/engine/device/stage_queues.h"

#include <algorithm>
#include <map>

namespace tessera {

namespace {

void add_hardware_queue(const std::vector<ProgramOp>& ops, StageQueues& queues) {
  const std::size_t count = ops.size();
  queues.queued_from.assign(count + 1, static_cast<std::int32_t>(count));
  queues.holds_up_another.assign(count, 0);
  for (std::size_t op = count; op-- > 0;) {
    const auto next = static_cast<std::size_t>(queues.queued_from[op + 1]);
    queues.queued_from[op] =
        is_copy(ops[op].kind) ? queues.queued_from[op + 1] : static_cast<std::int32_t>(op);
    if (next == count) continue;
    const ProgramOp& behind = ops[next];
    const bool waits =
        std::ranges::find(behind.waits, static_cast<std::int32_t>(op)) != behind.waits.end();
    queues.holds_up_another[op] = behind.stream != ops[op].stream && !waits ? 1 : 0;
  }
}

}  // namespace

StageQueues queues_of(const TimedProgram& timed, const RankProgram& stage) {
  StageQueues queues;
  std::map<GroupOfRank, std::int32_t> next_in_group;
  for (const ProgramOp& op : stage.ops) {
    const auto index = static_cast<std::int32_t>(queues.sequence.size());
    queues.of_stream[static_cast<std::size_t>(op.stream)].push_back(index);
    queues.sequence.push_back(is_collective(op.kind) ? next_in_group[op.group_of_rank()]++ : -1);
  }
  queues.launches = launches_of(timed, stage);
  if (timed.single_hardware_queue) add_hardware_queue(stage.ops, queues);
  return queues;
}

}  // namespace tessera

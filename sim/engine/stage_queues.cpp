#include "sim/engine/stage_queues.h"

#include <map>

namespace tessera {

StageQueues queues_of(const TimedProgram& timed, const RankProgram& stage) {
  StageQueues queues;
  std::map<GroupOfRank, std::int32_t> next_in_group;
  for (const ProgramOp& op : stage.ops) {
    const auto index = static_cast<std::int32_t>(queues.sequence.size());
    queues.of_stream[static_cast<std::size_t>(op.stream)].push_back(index);
    queues.sequence.push_back(is_collective(op.kind) ? next_in_group[op.group_of_rank()]++ : -1);
    const bool kernels = op.kind == OpKind::kernels;
    queues.launch_time.push_back(
        kernels ? timed.segments[static_cast<std::size_t>(op.segment.index())].host_time
                : timed.communication_host_time);
    const bool waits = op.host_sync || (kernels && timed.program.segment(op.segment).host_sync);
    queues.host_waits.push_back(waits ? 1 : 0);
  }
  return queues;
}

}  // namespace tessera

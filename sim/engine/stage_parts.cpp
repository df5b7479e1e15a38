#include "sim/engine/stage_parts.h"

#include "sim/engine/errors/out_of_memory_error.h"

namespace tessera {

std::vector<StageQueues> queues_of_stages(const TimedProgram& timed) {
  std::vector<StageQueues> queues;
  for (const RankProgram& stage : timed.program.stages) queues.push_back(queues_of(timed, stage));
  return queues;
}

std::vector<StageMemory> memory_of_stages(const TimedProgram& timed) {
  std::vector<StageMemory> memory;
  if (timed.memory_limit.bytes <= Bytes(0)) return memory;
  check_static_memory(timed);
  for (std::size_t stage = 0; stage < timed.program.stages.size(); ++stage)
    memory.emplace_back(timed.program, static_cast<int>(stage));
  return memory;
}

}  // namespace tessera

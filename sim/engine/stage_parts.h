#pragma once

#include <vector>

#include "sim/engine/device/stage_queues.h"
#include "sim/engine/memory/memory_pressure.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// What the ranks of each stage share; the second is empty where memory is not limited. Throws
/// OutOfMemoryError for a stage that holds more than the limit all the time.
std::vector<StageQueues> queues_of_stages(const TimedProgram& timed);
std::vector<StageMemory> memory_of_stages(const TimedProgram& timed);

}  // namespace tessera

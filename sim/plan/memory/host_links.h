#pragma once

#include <vector>

#include "sim/plan/timed_program.h"
#include "sim/remat/schedule.h"

namespace tessera {

/// The way of the GPUs of every pipeline stage to host memory, where all ranks of the stages in
/// `copying` copy at the same time and share links evenly; a stage has that of its worst-placed
/// rank.
std::vector<remat::HostLink> host_links(const TimedProgram& timed,
                                        const std::vector<bool>& copying);

}  // namespace tessera

#pragma once

#include <vector>

#include "sim/plan/timed_program.h"
#include "workloads/memory/launch_times.h"

namespace tessera {

/// Entries of the queue between host and GPU: with so many ahead the host waits with the next one
/// (recalled: launches of CUDA block beyond 1,024; no document of NVIDIA's states it).
constexpr std::size_t kQueuedLaunches = 1024;

/// What a collective puts into that queue. PyTorch 2.1 records an event on the stream that made
/// its input, lets NCCL's stream wait for it, launches the kernel, records its end, lets the stream
/// that goes on wait for that, and records two more where what was sent and received is freed
/// (recalled: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, collective(), synchronize();
/// c10/cuda/CUDACachingAllocator.cpp, insert_events()).
constexpr int kEntriesOfCollective = 7;

/// How much slower than the first rank's host the slowest one of a tensor group is. Kernels of all
/// wait for it in every collective; the other hosts run ahead. Read off two peaks of nanotron's
/// 1.34B model at tp 8 (docs/decisions/0064-what-streams-still-use.md); other jobs chose nothing.
constexpr double kSlowestHost = 1.05;

/// LaunchTimes of the first rank of every stage: on the clock of the host, on that of each stream,
/// and with the queue between them. Messages take no time; a stage waits for them on its streams,
/// while its host goes on. So hosts of a pipeline's first stages are ahead by a round trip of the
/// pipeline, or a queue; in the first step by what they send before they receive anything. Hosts
/// that every collective holds (TimedProgram::group_host_time) go in step. Empty ones where no
/// block is recorded on another stream.
std::vector<LaunchTimes> launch_times(const TimedProgram& timed);

}  // namespace tessera

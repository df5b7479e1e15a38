#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/timed_program.h"
#include "sim/report/analysis/critical_path.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// What the time of a rank, or of the critical path, is spent on.
enum class TimeClass : std::uint8_t {
  compute,        ///< kernels run, at their pace alone
  contention,     ///< what collectives beside them, which share the GPU, add to that
  communication,  ///< of a rank: exposed, no kernel runs
  bubble,         ///< no kernel runs because other pipeline stages are still at work
  host,           ///< no kernel runs because the host has not launched it yet
  memory_stall,   ///< no kernel runs because memory is not there yet
  idle,           ///< the rank is done, others are not
  unexplained,    ///< of the critical path alone
};
constexpr int kTimeClassCount = 8;
std::string_view label_of(TimeClass time_class);

/// One class, and within compute the kind of kernel, within communication the group.
struct ClassTime {
  TimeClass time_class = TimeClass::compute;
  std::string part;  ///< "gemm", "tensor"; empty for the other classes
  Seconds time;
};

/// Where a simulated rank's step went: every instant is in one class.
struct RankStory {
  int rank = 0;
  int stage = 0;
  std::vector<int> ranks;        ///< that do the same, itself included; ascending
  std::vector<ClassTime> times;  ///< adds up to the step time; in the order of TimeClass
  /// Sum over the parts of a class.
  Seconds in(TimeClass time_class) const;
};

/// Pieces of the critical path that are alike: the same segment, or collective of one kind, group
/// and phase, or messages.
struct PathOp {
  TimeClass time_class = TimeClass::compute;
  std::string name;  ///< "layer.forward.attention", "all_reduce tensor forward"
  Seconds time;
  int count = 0;
};

/// A simulated step taken apart.
struct StepStory {
  Seconds step_time;
  std::vector<RankStory> ranks;
  std::vector<PathPiece> path;
  std::vector<ClassTime> path_times;  ///< adds up to the step time; longest first
  std::vector<PathOp> path_ops;       ///< the same by op; longest first
};

/// Pure. The timeline must hold every op of every rank, with `last_rank`.
StepStory tell_step(const TimedProgram& timed, const Timeline& timeline);

}  // namespace tessera

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/plan/timed_program.h"

namespace tessera {

/// What the host of a rank does to launch the ops of a stage's program. All ranks of the stage
/// share it.
struct StageLaunches {
  std::vector<Seconds> host_time;   ///< by op: that the host spends to launch it
  std::vector<Seconds> elapsed;     ///< by op: sum of these up to it, itself included
  std::vector<std::int32_t> waits;  ///< ops for whose end the host waits, ascending
};

StageLaunches launches_of(const TimedProgram& timed, const RankProgram& stage);

/// What a host launches without waiting: the ops behind number `after`, from `since` on.
struct LaunchRun {
  std::int32_t after = -1;
  Seconds since;
  Seconds done;  ///< from then on they are launched for sure: most ops start long after
};

/// The run that ends with op `last`.
inline LaunchRun launch_run(std::int32_t after, Seconds since, std::int32_t last,
                            const StageLaunches& launches) {
  constexpr double kRounding = 1 + 1e-9;  // of sums of millions of terms
  if (last < 0) return {};
  const Seconds ahead = after < 0 ? Seconds() : launches.elapsed[static_cast<std::size_t>(after)];
  const Seconds last_date = since + (launches.elapsed[static_cast<std::size_t>(last)] - ahead);
  return {after, since, last_date * kRounding};
}

/// When the launches of a rank reach its device. These dates follow from the ends of the ops that
/// the host waited for, so nobody keeps them: one per op would be a fifth of a large timeline.
class LaunchDates {
 public:
  /// The date of `op`, one of `run`, which is the last that the host began; of an earlier op a date
  /// by which it was launched. Neither may descend from call to call.
  Seconds of(std::int32_t op, const LaunchRun& run, const StageLaunches& launches) {
    if (last_ <= run.after) {
      last_ = run.after;
      date_ = run.since;
    }
    while (last_ < op) date_ += launches.host_time[static_cast<std::size_t>(++last_)];
    return date_;
  }

 private:
  std::int32_t last_ = -1;  ///< op whose launch `date_` is
  Seconds date_;
};

}  // namespace tessera

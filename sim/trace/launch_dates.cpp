#include "sim/trace/launch_dates.h"

namespace tessera {

StageLaunches launches_of(const TimedProgram& timed, const RankProgram& stage) {
  StageLaunches launches;
  Seconds elapsed;
  for (const ProgramOp& op : stage.ops) {
    const auto number = static_cast<std::int32_t>(launches.host_time.size());
    const bool kernels = op.kind == OpKind::kernels;
    if (op.host_sync || (kernels && timed.program.segment(op.segment).host_sync))
      launches.waits.push_back(number);
    launches.host_time.push_back(timed.host_time_of(op));
    elapsed += launches.host_time.back();
    launches.elapsed.push_back(elapsed);
  }
  return launches;
}

}  // namespace tessera

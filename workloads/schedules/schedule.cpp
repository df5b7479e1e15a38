#include "workloads/schedules/schedule.h"

namespace tessera {

std::vector<ScheduledPass> schedule_passes(PipelineSchedule schedule, int stage,
                                           const PipelineShape& shape) {
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return gpipe(shape.micro_batches);
    case PipelineSchedule::one_f_one_b:
      return one_f_one_b(stage, shape.stages, shape.micro_batches, shape.ahead);
    case PipelineSchedule::interleaved_1f1b:
      return interleaved_1f1b(stage, shape);
    case PipelineSchedule::zb_h1:
      return zero_bubble_h1(stage, shape.stages, shape.micro_batches);
    case PipelineSchedule::zb_h2:
      return zero_bubble_h2(stage, shape.stages, shape.micro_batches);
    case PipelineSchedule::dualpipe:
      return dual_pipe(stage, shape.stages, shape.micro_batches);
    case PipelineSchedule::zbv:
      return zero_bubble_v(stage, shape.stages, shape.micro_batches);
  }
  return {};
}

}  // namespace tessera

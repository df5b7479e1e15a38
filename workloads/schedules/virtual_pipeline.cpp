#include "workloads/schedules/virtual_pipeline.h"

namespace tessera {

VirtualPipeline::VirtualPipeline(const StepOptions& step)
    : stages_(step.layout.pipeline),
      chunks_(step.layout.virtual_stages),
      two_way_(step.schedule == PipelineSchedule::dualpipe && step.mode == StepMode::training),
      in_v_(step.schedule == PipelineSchedule::zbv) {
  if (two_way_) chunks_ = 2;
}

int VirtualPipeline::part(ModelChunk chunk) const {
  if (in_v_) return chunk.chunk == 0 ? chunk.stage : length() - 1 - chunk.stage;
  if (!two_way_) return chunk.chunk * stages_ + chunk.stage;
  return chunk.chunk == 0 ? chunk.stage : stages_ - 1 - chunk.stage;
}

std::optional<ModelChunk> VirtualPipeline::neighbour(ModelChunk chunk, int step) const {
  const int wanted = part(chunk) + step;
  if (wanted < 0 || wanted >= length()) return std::nullopt;
  if (in_v_) return wanted < stages_ ? ModelChunk{wanted, 0} : ModelChunk{length() - 1 - wanted, 1};
  if (!two_way_) return ModelChunk{wanted % stages_, wanted / stages_};
  return ModelChunk{chunk.chunk == 0 ? wanted : stages_ - 1 - wanted, chunk.chunk};
}

}  // namespace tessera

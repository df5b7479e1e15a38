#include "workloads/schedules/virtual_pipeline.h"

namespace tessera {

VirtualPipeline::VirtualPipeline(const StepOptions& step)
    : stages_(step.layout.pipeline),
      chunks_(step.layout.virtual_stages),
      two_way_(step.schedule == PipelineSchedule::dualpipe && step.mode == StepMode::training) {
  if (two_way_) chunks_ = 2;
}

int VirtualPipeline::part(ModelChunk chunk) const {
  if (!two_way_) return chunk.chunk * stages_ + chunk.stage;
  return chunk.chunk == 0 ? chunk.stage : stages_ - 1 - chunk.stage;
}

std::optional<ModelChunk> VirtualPipeline::neighbour(ModelChunk chunk, int step) const {
  const int wanted = part(chunk) + step;
  if (wanted < 0 || wanted >= length()) return std::nullopt;
  if (!two_way_) return ModelChunk{wanted % stages_, wanted / stages_};
  return ModelChunk{chunk.chunk == 0 ? wanted : stages_ - 1 - wanted, chunk.chunk};
}

}  // namespace tessera

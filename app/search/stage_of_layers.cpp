#include "app/search/stage_of_layers.h"

#include <numeric>

#include "workloads/schedules/virtual_pipeline.h"
#include "workloads/sharding.h"

namespace tessera {

bool splits_backward(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zb_h1 || schedule == PipelineSchedule::zb_h2 ||
         schedule == PipelineSchedule::dualpipe || schedule == PipelineSchedule::zbv;
}

bool drains(PipelineSchedule schedule) {
  return !splits_backward(schedule);
}

Seconds time_bound(const StepOptions& step, const LayerCosts& costs, const StageOfLayers& stage) {
  const bool two_way = VirtualPipeline(step).two_way();
  const bool pipelined = step.layout.pipeline > 1;
  // Each copy of the model takes half of the micro-batches.
  const double share = static_cast<double>(step.micro_batches()) / (two_way ? 2 : 1);
  Seconds time = (costs.forward + costs.backward) * (share * stage.layers);
  if (stage.first_part) time += costs.embedding * share;
  if (stage.last_part && pipelined) time += costs.head * share;
  if (!two_way) time += costs.forward * stage.before;
  if (drains(step.schedule)) time += costs.backward * stage.before;
  return time;
}

Bytes persistent_bound(const StepOptions& step, const LayerCosts& costs,
                       const StageOfLayers& stage) {
  std::int64_t parameters = costs.parameters * stage.layers;
  if (stage.first_part) parameters += costs.embedding_parameters;
  if (stage.last_part) parameters += costs.head_parameters;
  return persistent_bytes(step, parameters, costs.experts * stage.layers);
}

StageOfLayers stage_of_layers(const StepOptions& step, const std::vector<int>& layers, int stage) {
  const VirtualPipeline pipeline(step);
  StageOfLayers found;
  for (int chunk = 0; chunk < pipeline.chunks(); ++chunk)
    found.layers += layers[static_cast<std::size_t>(pipeline.part({stage, chunk}))];
  found.before = std::accumulate(layers.begin(), layers.begin() + stage, 0);
  const int last = step.layout.pipeline - 1;
  const bool both_ends = pipeline.two_way() && (stage == 0 || stage == last);
  found.first_part = stage == 0 || both_ends;
  found.last_part = stage == last || both_ends;
  return found;
}

}  // namespace tessera

#pragma once

#include <vector>

#include "app/search/layer_costs.h"
#include "workloads/step_options.h"

namespace tessera {

/// One stage of a pipeline in terms of its layers.
struct StageOfLayers {
  int layers = 0;     ///< here
  double before = 0;  ///< in the stages ahead
  bool first_part = false, last_part = false;
};

/// `layers` has those of every part of the model.
StageOfLayers stage_of_layers(const StepOptions& step, const std::vector<int>& layers, int stage);

/// What the stage computes, and waits for where a pipeline fills and drains.
Seconds time_bound(const StepOptions& step, const LayerCosts& costs, const StageOfLayers& stage);

/// Weights, gradients and optimizer states of the stage.
Bytes persistent_bound(const StepOptions& step, const LayerCosts& costs,
                       const StageOfLayers& stage);

/// Whether gradients of weights are kernels apart from those of data (zero-bubble schedules).
bool splits_backward(PipelineSchedule schedule);

/// Whether what must wait behind a stage's last pass does: not where weight gradients fill the end.
bool drains(PipelineSchedule schedule);

}  // namespace tessera

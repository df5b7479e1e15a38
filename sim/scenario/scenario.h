#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/node.h"
#include "hw/units/precision.h"
#include "predictor/gpu/gpu_overlay.h"
#include "predictor/kernel_predictor.h"
#include "sim/scenario/collective_settings.h"
#include "sim/scenario/memory_settings.h"
#include "sim/scenario/perturbation.h"
#include "sim/scenario/reliability_settings.h"
#include "sim/scenario/simulation_settings.h"
#include "workloads/model_spec.h"
#include "workloads/step_options.h"

namespace tessera {

/// Everything a simulation depends on, checked: a value of this type can be simulated.
struct Scenario {
  std::string name;
  ModelSpec model;
  ClusterSpec cluster;
  StepOptions step;  ///< mode, batch, sequence length, layout, schedule, precision, optimizer,
                     ///< framework profile
  PredictorForm predictor_form = PredictorForm::tessera;
  std::vector<GpuOverlay> overlays;         ///< measured effects of the cluster's GPU; at most one
  CollectiveSettings collectives;           ///< measured collectives, choices, fidelity
  MemorySettings memory;                    ///< what happens where a step does not fit
  Perturbation perturbation;                ///< GPUs that differ, kernels whose time varies
  SimulationSettings simulation;            ///< which ranks are simulated once for many
  ReliabilitySettings reliability;          ///< what a long run meets; no step depends on it
  std::vector<std::string> approximations;  ///< where it is not the job that it stands for
};

}  // namespace tessera

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hw/units/quantity.h"
#include "workloads/parameter_count.h"

namespace tessera {

/// Where a result comes from, in words; printed with it.
struct Provenance {
  std::string scenario;                      ///< its name
  std::string model;                         ///< its name
  std::string mode;                          ///< "training", "inference"
  std::string framework;                     ///< name of its profile
  std::string recompute;                     ///< "none", "selective", "full"
  std::string predictor;                     ///< form of the kernel model
  std::string predictor_mode;                ///< "zero-shot", "calibrated", "calibrated-steps"
  std::string predictor_effect;              ///< where the GPU's effect comes from, in words
  std::vector<std::string> predictor_notes;  ///< what was never measured, a short line each
  std::vector<std::string> link_notes;       ///< what to know of the links, a line each
  std::vector<std::string> notes;            ///< what to know before using the result
  ParameterCounts parameters = {};           ///< of the model
  std::string tessera_version;
  std::vector<std::string> approximations;  ///< where the scenario is not the job it stands for
};

/// Wall-clock times of our own run, in the order in which they are printed ("plan", "simulate").
/// They differ from run to run, so a result holds them only where the user asks.
using RunTiming = std::vector<std::pair<std::string, Seconds>>;

}  // namespace tessera

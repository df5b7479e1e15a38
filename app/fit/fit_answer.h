#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/fit/fit_change.h"
#include "app/fit/fit_job.h"
#include "app/fit/fit_step.h"
#include "app/fit/largest_size.h"
#include "app/fit/memory_need.h"
#include "app/fit/memory_spread.h"
#include "predictor/weights/weights.h"

namespace tessera {

struct ChangedStep {
  FitChange change;
  std::vector<std::string> settings;  ///< as --set takes them
  FitStep step;
  int gpus = 0;
};

/// What `tessera fit` says.
struct FitAnswer {
  std::string name, kind, model, gpu, cluster, framework, precision;
  int gpus = 0;
  StepOptions options;
  MemorySpread spread;
  MemoryNeed need;  ///< for what
  FitStep step;
  LargestSize micro_batch;
  std::optional<LargestSize> sequence;  ///< empty for models without sequences
  std::vector<ChangedStep> changes;     ///< that may make it fit, simulated, fastest first
  std::vector<ChangedStep> refused;     ///< single ones that the rules forbid
  std::vector<std::string> not_simulated;
  std::vector<std::string> assumed, ignored, approximations;
};

/// One use of the memory of the fullest GPU.
struct FitPart {
  std::string key;   ///< "nccl"
  std::string name;  ///< "buffers of NCCL"
  Bytes bytes;
};
/// They add up to what the step needs.
std::vector<FitPart> parts_of(const FitAnswer& answer);

struct FitOptions {
  int jobs = 1;          ///< processes at a time
  std::size_t most = 8;  ///< so many changes are simulated, besides memory plans
  bool plans = false;    ///< memory plans are looked at too
};

/// Simulates the job, looks for the largest sizes, and where it does not surely fit for changes:
/// single ones first, then pairs, then three and four at once where fewer do not. What a change
/// needs is known from its program ahead of a simulation. Every simulation has a process of its
/// own. The same answer on every machine, whatever `jobs`. Throws InputError.
FitAnswer answer_fit(const FitJob& job, const PredictorWeights& weights, const FitOptions& options);

/// For a person, and everything as JSON (schema tessera.fit/1).
std::string fit_text(const FitAnswer& answer);
std::string fit_json(const FitAnswer& answer);

}  // namespace tessera

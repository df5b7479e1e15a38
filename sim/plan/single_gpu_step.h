#pragma once

#include <cstddef>
#include <vector>

#include "predictor/kernel_predictor.h"
#include "sim/plan/host_costs.h"
#include "sim/scenario/scenario.h"
#include "workloads/program/program.h"

namespace tessera {

/// The kernels of a step on one GPU, in the order of launch, ready to be timed with many
/// predictors: what a simulation would answer, in closed form.
class SingleGpuStep {
 public:
  /// `scenario` must have one GPU; throws InputError otherwise.
  explicit SingleGpuStep(const Scenario& scenario);

  /// Distinct kernels of the step with the number of their launches.
  struct CountedKernel {
    Kernel kernel;
    std::int64_t launches = 0;
  };
  const std::vector<CountedKernel>& kernels() const { return kernels_; }

  /// Step time with `durations` of `kernels()`.
  Seconds step_time(const std::vector<Seconds>& durations) const;
  Seconds step_time(const KernelPredictor& predictor) const;
  /// Of the log of the time in kernels.
  LogSpread spread(const KernelPredictor& predictor) const;

 private:
  struct Launch {
    std::size_t segment = 0;
    bool host_sync = false;
  };

  std::vector<CountedKernel> kernels_;
  std::vector<std::vector<std::size_t>> segment_kernels_;  ///< positions in kernels_
  std::vector<Seconds> segment_host_time_;
  std::vector<Launch> launches_;
};

}  // namespace tessera

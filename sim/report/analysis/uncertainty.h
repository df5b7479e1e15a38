#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "predictor/spread.h"
#include "workloads/program/kernel.h"

namespace tessera {

struct TimedProgram;
struct TimeBreakdown;

/// Where the step time lies with a probability of 80 %: kernels as uncertain as their predictions,
/// communication, copies and host costs by 15 %, and all of it by what two sources of measurements
/// of one job differ in (decision 44).
struct StepInterval {
  Interval time;
  LogSpread kernels;  ///< of the log of the time in kernels
};

/// Kernels of one kind of which some input lies outside the predictor's training data.
struct ExtrapolatedKernels {
  KernelKind kind = KernelKind::gemm;
  std::string input;  ///< the one that lies farthest outside: "k", "traffic"
  double factor = 1;  ///< that input / the largest one that was trained on
  double share = 0;   ///< of the kernel time, in [0, 1]
};

/// Time in each distinct kernel, parallel to TimedProgram::kernels.
using KernelTimes = std::vector<Seconds>;

/// Empty where the predictor's form knows no spread. `breakdown` is the mean over the ranks, its
/// waiting for other stages counts as kernel time.
std::optional<StepInterval> step_interval(const TimedProgram& timed, const KernelTimes& times,
                                          const TimeBreakdown& breakdown);

/// By kind, largest share first.
std::vector<ExtrapolatedKernels> extrapolated_kernels(const TimedProgram& timed,
                                                      const KernelTimes& times);

}  // namespace tessera

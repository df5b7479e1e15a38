#pragma once

#include "sim/plan/timed_program.h"
#include "sim/report/step_energy.h"
#include "sim/report/time_category.h"
#include "sim/trace/timeline_index.h"

namespace tessera {

/// The GPU that `rank` computes on.
const GpuSpec& gpu_of_rank(const TimedProgram& timed, int rank);

/// Finds what the power of GPUs follows, slice by slice of a step.
class GpuWorkMeter {
 public:
  /// `timed` and `index` must outlive the object.
  GpuWorkMeter(const TimedProgram& timed, const TimelineIndex& index, Seconds step);

  /// Kernels lie where they ran; exposed communication, as `breakdown` has it, is spread over the
  /// time in which none did.
  GpuWork of(int rank, const TimeBreakdown& breakdown) const;

 private:
  const TimedProgram& timed_;
  const TimelineIndex& index_;
  Seconds step_;
  /// By table of RankPaces, the program's own first, and segment: mean over the time of its
  /// kernels.
  std::vector<std::vector<double>> weights_;
};

}  // namespace tessera

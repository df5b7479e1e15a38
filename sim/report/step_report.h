#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/units/precision.h"
#include "hw/units/quantity.h"
#include "sim/report/analysis/straggler.h"
#include "sim/report/analysis/uncertainty.h"
#include "sim/report/counted_flops.h"
#include "sim/report/step_energy.h"
#include "sim/report/time_category.h"
#include "sim/trace/rank_folding.h"
#include "workloads/program/kernel.h"
#include "workloads/program/program.h"

namespace tessera {

/// Kernels of one kind, mean over the ranks.
struct KernelKindTime {
  KernelKind kind = KernelKind::gemm;
  Seconds time;
  double launches = 0;  ///< per rank; a mean, so it may be fractional
};

/// All runs of one segment, mean over the ranks.
struct SegmentTime {
  std::string name;
  Phase phase = Phase::forward;
  Seconds time;
  double runs = 0;  ///< per rank; a mean, so it may be fractional
};

/// Memory of one simulated rank.
struct RankMemory {
  int rank = 0;
  int stands_for = 1;  ///< ranks that do the same, this one included
  int stage = 0;
  Bytes static_bytes;  ///< parameters, gradients, optimizer states, persistent buffers
  Bytes peak;          ///< static memory and workspaces included
  Bytes reserved;      ///< what the allocator must hold (sim/plan/device_memory.h)
  Bytes device;        ///< reserved, CUDA context and NCCL's buffers
  bool fits = true;
  Bytes headroom;  ///< capacity minus device; negative where the rank does not fit
};

/// Memory of the job.
struct MemoryReport {
  Bytes capacity;  ///< of the smallest GPU; or by a limit or budget, with context and NCCL
  Bytes peak;      ///< of the rank whose tensors take most
  Bytes reserved;  ///< of the rank whose allocator holds most
  Bytes context;
  Bytes communicators;
  Bytes device;  ///< of the fullest rank: reserved, context and communicators
  bool fits = true;
  std::vector<RankMemory> per_rank;
  /// That memory pressure started beside the program, of the rank with the most; both directions.
  std::int64_t pressure_copies = 0;
  Bytes pressure_bytes;
  /// Segments that ran again because of it, of the rank that spent most time in them.
  std::int64_t pressure_reruns = 0;
  Seconds pressure_rerun_time;
};

/// What is known about a step once it was simulated. Definitions: sim/report/definitions.h.
struct StepReport {
  std::string gpu;  ///< id of the hardware catalog
  ParallelLayout layout;
  int micro_batches = 1;
  Precision precision = Precision::fp32;  ///< in which most of the counted FLOPs are done
  CountedFlops counted;                   ///< what MFU and HFU count
  FlopsPerSecond peak_per_gpu;            ///< dense, in `precision`

  Seconds step_time;
  double tokens_per_s = 0;
  double tokens_per_s_per_gpu = 0;
  double samples_per_s = 0;    ///< sequences
  std::optional<double> mfu;   ///< empty where the GPU has no published peak; above 1 only where
                               ///< `counted` says how that can be
  std::optional<double> hfu;   ///< likewise
  double bubble_fraction = 0;  ///< in [0, 1]

  TimeBreakdown breakdown;                   ///< mean over the ranks; adds up to the step time
  std::vector<TimeBreakdown> by_rank;        ///< of simulated ranks; each adds up to the step time
  std::vector<KernelKindTime> kernel_kinds;  ///< longest first
  std::vector<SegmentTime> segments;         ///< longest first
  std::optional<StepInterval> interval;      ///< of step_time; empty where the predictor knows none
  std::vector<ExtrapolatedKernels> extrapolated;  ///< largest share of the kernel time first
  MemoryReport memory;
  std::optional<StepEnergy> energy;    ///< empty where the GPU's board power is not known
  std::optional<Straggler> straggler;  ///< the rank that its peers wait for most
  RankFolding folding;                 ///< which ranks were simulated, and for whom

  /// Share of the kernel time in kernels outside the predictor's training data, in [0, 1].
  double extrapolated_share() const;
  /// Kernels run beside others: their kinds sum to more than the step.
  bool kernels_overlap() const;
  int gpus() const { return layout.world_size(); }
};

}  // namespace tessera

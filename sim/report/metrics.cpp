#include "sim/report/metrics.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/plan/device_memory.h"
#include "sim/report/analysis/gpu_work.h"
#include "sim/report/analysis/rank_breakdown.h"
#include "sim/report/clock_tick.h"
#include "sim/report/counted_flops.h"
#include "sim/trace/alike_ranks.h"
#include "sim/trace/timeline_index.h"

namespace tessera {
namespace {

/// Runs of one segment, summed over the ranks.
struct SegmentRuns {
  Seconds busy;
  std::int64_t count = 0;
};

/// Zero where nothing was measured, so that an empty step does not report NaN.
double per(double amount, double whole) {
  return whole > 0 ? amount / whole : 0.0;
}

/// Those of a rank that stands for `stands_for`.
void add_runs(const TimedProgram& timed, const TimelineIndex& index, int rank, int stands_for,
              std::vector<SegmentRuns>& runs) {
  const auto& ops = index.program_of(rank).ops;
  for (const OpRecord& record : index.records_of(rank)) {
    const ProgramOp& op = ops[static_cast<std::size_t>(record.op)];
    if (op.kind != OpKind::kernels) continue;
    const auto segment = static_cast<std::size_t>(op.segment.index());
    runs[segment].busy +=
        busy_time(record, timed.duration_of(rank, record.op, op.segment)) * stands_for;
    runs[segment].count += stands_for;
  }
}

/// What was found rank by rank, of those that were simulated.
struct RankMeasures {
  std::vector<SegmentRuns> runs;  ///< by segment
  std::vector<TimeBreakdown> by_rank;
  std::vector<GpuWork> work;
};

/// Of ranks that ran alike the first is looked at: of a thousand unfolded ranks, a few.
RankMeasures measure_ranks(const TimedProgram& timed, const TimelineIndex& index) {
  const auto simulated = index.simulated();
  const std::vector<std::size_t> first = first_alike(timed, index);
  std::vector<int> stand_for(simulated.size());
  for (std::size_t i = 0; i < first.size(); ++i) stand_for[first[i]] += simulated[i].stands_for;
  const GpuWorkMeter power(timed, index, index.step_time());
  RankMeasures all;
  all.runs.resize(timed.segments.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    const int rank = simulated[i].rank;
    if (first[i] != i) {
      all.by_rank.push_back(all.by_rank[first[i]]);
      all.work.push_back(all.work[first[i]]);
      all.work.back().rank = rank;
      continue;
    }
    add_runs(timed, index, rank, stand_for[i], all.runs);
    all.by_rank.push_back(break_down(timed, index, rank, index.step_time()));
    all.work.push_back(power.of(rank, all.by_rank.back()));
  }
  return all;
}

/// Equal times keep the order of the program.
template <class Entry>
void sort_longest_first(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.time > b.time; });
}

std::vector<SegmentTime> segment_times(const TimedProgram& timed,
                                       const std::vector<SegmentRuns>& runs) {
  const double ranks = timed.program.layout.world_size();
  std::vector<SegmentTime> times;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].count == 0) continue;
    const Segment& segment = timed.program.segments[i];
    times.push_back({segment.name, segment.phase, runs[i].busy / ranks,
                     static_cast<double>(runs[i].count) / ranks});
  }
  sort_longest_first(times);
  return times;
}

std::vector<KernelKindTime> kernel_kind_times(const TimedProgram& timed,
                                              const std::vector<SegmentRuns>& runs) {
  const double ranks = timed.program.layout.world_size();
  std::map<KernelKind, KernelKindTime> by_kind;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const TimedSegment& segment = timed.segments[i];
    const auto& kernels = timed.program.segments[i].kernels;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      KernelKindTime& entry = by_kind[kernels[k].kernel.kind];
      const double share = per(segment.kernel_durations[k].value(), segment.duration.value());
      entry.time += runs[i].busy * share / ranks;
      entry.launches += static_cast<double>(runs[i].count) / ranks;
    }
  }
  std::vector<KernelKindTime> times;
  for (auto& [kind, entry] : by_kind) {
    entry.kind = kind;
    if (entry.launches > 0) times.push_back(entry);
  }
  sort_longest_first(times);
  return times;
}

/// Mean over the ranks.
KernelTimes kernel_times(const TimedProgram& timed, const std::vector<SegmentRuns>& runs) {
  const double ranks = timed.program.layout.world_size();
  KernelTimes times(timed.kernels.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const TimedSegment& segment = timed.segments[i];
    for (std::size_t k = 0; k < segment.kernels.size(); ++k) {
      const double share = per(segment.kernel_durations[k].value(), segment.duration.value());
      times[segment.kernels[k]] += runs[i].busy * share / ranks;
    }
  }
  return times;
}

std::vector<double> segment_counts(const std::vector<SegmentRuns>& runs) {
  std::vector<double> counts;
  for (const SegmentRuns& run : runs) counts.push_back(static_cast<double>(run.count));
  return counts;
}

/// Mean over the ranks, category by category.
TimeBreakdown mean_of(const std::vector<TimeBreakdown>& by_rank, const TimelineIndex& index) {
  TimeBreakdown mean;
  for (const TimeCategory category : time_categories()) {
    for (std::size_t i = 0; i < by_rank.size(); ++i) {
      mean[category] += by_rank[i][category] * index.simulated()[i].stands_for;
    }
    mean[category] = mean[category] / static_cast<double>(index.ranks());
  }
  return mean;
}

void measure_pressure(const Timeline& timeline, MemoryReport& memory) {
  std::map<std::int32_t, std::pair<Bytes, std::int64_t>> copied;  // by rank
  for (const PressureCopy& copy : timeline.pressure_copies) {
    copied[copy.rank].first += copy.bytes;
    ++copied[copy.rank].second;
  }
  for (const auto& [rank, most] : copied)
    if (most.first > memory.pressure_bytes)
      std::tie(memory.pressure_bytes, memory.pressure_copies) = most;
  std::map<std::int32_t, std::pair<Seconds, std::int64_t>> reran;  // by rank
  for (const PressureRerun& rerun : timeline.pressure_reruns) {
    reran[rerun.rank].first += rerun.end - rerun.start;
    ++reran[rerun.rank].second;
  }
  for (const auto& [rank, most] : reran)
    if (most.first > memory.pressure_rerun_time)
      std::tie(memory.pressure_rerun_time, memory.pressure_reruns) = most;
}

RankMemory rank_memory(const TimedProgram& timed, const DeviceMemory& device) {
  RankMemory memory;
  memory.peak = device.allocated;
  memory.reserved = device.reserved;
  memory.device = device.total();
  memory.headroom = timed.memory_capacity - memory.device;
  memory.fits = memory.headroom >= Bytes(0);
  return memory;
}

MemoryReport measure_memory(const TimedProgram& timed, const Timeline& timeline,
                            const TimelineIndex& index) {
  MemoryReport memory;
  memory.capacity = timed.memory_capacity;
  memory.context = timed.library_memory.context;
  memory.communicators = timed.library_memory.communicators;
  DeviceMemories devices(timed);
  for (const auto& [rank, stands_for] : index.simulated()) {
    const Bytes peak = timeline.peak_memory[static_cast<std::size_t>(rank)];
    RankMemory of_rank = rank_memory(timed, devices.of(timed.program.program_number(rank), peak));
    of_rank.rank = rank;
    of_rank.stands_for = stands_for;
    of_rank.stage = index.position(rank).pipeline;
    of_rank.static_bytes = index.program_of(rank).static_memory;
    memory.peak = std::max(memory.peak, of_rank.peak);
    memory.reserved = std::max(memory.reserved, of_rank.reserved);
    memory.device = std::max(memory.device, of_rank.device);
    memory.fits = memory.fits && of_rank.fits;
    memory.per_rank.push_back(of_rank);
  }
  measure_pressure(timeline, memory);
  return memory;
}

/// Of the job's GPUs; 0 where one has no published peak.
FlopsPerSecond mean_peak(const TimedProgram& timed, const TimelineIndex& index,
                         Precision precision) {
  if (timed.paces.gpus.empty()) return timed.topology.cluster().node.gpu.peak(precision);
  double sum = 0;
  for (const auto& [rank, stands_for] : index.simulated()) {
    const double peak = gpu_of_rank(timed, rank).peak(precision).value();
    if (peak <= 0) return FlopsPerSecond(0);
    sum += peak * stands_for;
  }
  return FlopsPerSecond(sum / index.ranks());
}

void measure_speed(const Program& program, StepReport& report) {
  const double seconds = report.step_time.value();
  const double gpus = report.gpus();
  report.tokens_per_s = per(static_cast<double>(program.tokens_per_step), seconds);
  report.tokens_per_s_per_gpu = report.tokens_per_s / gpus;
  report.samples_per_s = per(static_cast<double>(program.sequences_per_step), seconds);
  if (report.peak_per_gpu.value() <= 0) return;
  const double available = seconds * gpus * report.peak_per_gpu.value();
  report.mfu = per(program.model_flops.value(), available);
  report.hfu = per(program.hardware_flops.value(), available);
}

}  // namespace

double StepReport::extrapolated_share() const {
  double share = 0;
  for (const ExtrapolatedKernels& kernels : extrapolated) share += kernels.share;
  return share;
}

bool StepReport::kernels_overlap() const {
  Seconds sum;
  for (const KernelKindTime& entry : kernel_kinds) sum += entry.time;
  return sum > step_time + kClockTick;
}

StepReport measure(const TimedProgram& timed, const Timeline& timeline) {
  const TimelineIndex index(timed, timeline);
  const GpuSpec& gpu = timed.topology.cluster().node.gpu;
  StepReport report;
  RankMeasures measures = measure_ranks(timed, index);
  const std::vector<SegmentRuns>& runs = measures.runs;
  report.by_rank = std::move(measures.by_rank);
  report.straggler = find_straggler(index);
  report.gpu = gpu.id;
  report.layout = timed.program.layout;
  report.micro_batches = timed.program.micro_batches;
  report.counted = counted_flops(timed.program, segment_counts(runs));
  report.precision = report.counted.precision;
  report.peak_per_gpu = mean_peak(timed, index, report.precision);
  report.step_time = timeline.step_time;
  report.folding = timeline.folding;
  measure_speed(timed.program, report);
  report.breakdown = mean_of(report.by_rank, index);
  report.bubble_fraction =
      per(report.breakdown[TimeCategory::bubble].value(), report.step_time.value());
  report.kernel_kinds = kernel_kind_times(timed, runs);
  report.segments = segment_times(timed, runs);
  const KernelTimes times = kernel_times(timed, runs);
  report.interval = step_interval(timed, times, report.breakdown);
  report.extrapolated = extrapolated_kernels(timed, times);
  report.energy =
      step_energy(timed.topology.cluster(), report, measures.work, timed.program.placement);
  report.memory = measure_memory(timed, timeline, index);
  return report;
}

}  // namespace tessera

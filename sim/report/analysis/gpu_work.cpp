#include "sim/report/analysis/gpu_work.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "predictor/gpu/gpu_support.h"
#include "sim/report/analysis/rank_breakdown.h"

namespace tessera {
namespace {

constexpr double kMemoryBound = 0.85;
constexpr double kCommunicating = 0.3;

double power_weight(KernelKind kind) {
  const bool fills_the_gpu =
      is_product(kind) || kind == KernelKind::attention || kind == KernelKind::convolution;
  return fills_the_gpu ? 1 : kMemoryBound;
}

/// Mean over the time of a segment's kernels.
double weight_of(const Segment& segment, const TimedSegment& timed) {
  double sum = 0;
  for (std::size_t k = 0; k < segment.kernels.size(); ++k)
    sum += power_weight(segment.kernels[k].kernel.kind) * timed.kernel_durations[k].value();
  return timed.duration.value() > 0 ? sum / timed.duration.value() : 0;
}

/// Seconds by slice of a step.
class Slices {
 public:
  explicit Slices(Seconds step) : width_(step.value() / kPowerSlices), seconds_(kPowerSlices) {}

  /// `amount`, evenly over [begin, end].
  void add(double begin, double end, double amount) {
    if (width_ <= 0 || end <= begin) return;
    const auto last = static_cast<std::size_t>(kPowerSlices - 1);
    const auto at = [&](double time) {
      return std::min(last, static_cast<std::size_t>(std::max(0.0, time / width_)));
    };
    for (std::size_t slice = at(begin); slice <= at(end); ++slice) {
      const double from = std::max(begin, static_cast<double>(slice) * width_);
      const double to =
          slice == last ? end : std::min(end, static_cast<double>(slice + 1) * width_);
      seconds_[slice] += amount * std::max(0.0, to - from) / (end - begin);
    }
  }
  double width() const { return width_; }
  std::vector<double>& seconds() { return seconds_; }

 private:
  double width_;
  std::vector<double> seconds_;
};

/// In every slice, `exposed` spread over what `busy` leaves of it.
void add_communication(double exposed, Slices& busy, std::vector<double>& work) {
  double idle = 0;
  const auto left = [&](double seconds) { return std::max(0.0, busy.width() - seconds); };
  for (const double seconds : busy.seconds()) idle += left(seconds);
  if (idle <= 0) return;
  for (std::size_t i = 0; i < work.size(); ++i)
    work[i] += kCommunicating * std::min(1.0, exposed / idle) * left(busy.seconds()[i]);
}

}  // namespace

const GpuSpec& gpu_of_rank(const TimedProgram& timed, int rank) {
  const int table = timed.paces.of(rank).table;
  return table < 0 ? timed.topology.cluster().node.gpu
                   : timed.paces.gpus[static_cast<std::size_t>(table)];
}

GpuWorkMeter::GpuWorkMeter(const TimedProgram& timed, const TimelineIndex& index, Seconds step)
    : timed_(timed), index_(index), step_(step), weights_(timed.paces.tables.size() + 1) {
  for (std::size_t i = 0; i < timed.segments.size(); ++i) {
    const Segment& segment = timed.program.segments[i];
    weights_[0].push_back(weight_of(segment, timed.segments[i]));
    for (std::size_t table = 0; table < timed.paces.tables.size(); ++table)
      weights_[table + 1].push_back(weight_of(segment, timed.paces.tables[table][i]));
  }
}

GpuWork GpuWorkMeter::of(int rank, const TimeBreakdown& breakdown) const {
  Slices busy(step_), work(step_);
  const auto& ops = index_.program_of(rank).ops;
  const auto& weights = weights_[static_cast<std::size_t>(timed_.paces.of(rank).table + 1)];
  for (const OpRecord& record : index_.records_of(rank)) {
    const ProgramOp& op = ops[static_cast<std::size_t>(record.op)];
    if (op.kind != OpKind::kernels) continue;
    const double ran = busy_time(record, timed_.duration_of(rank, record.op, op.segment)).value();
    const double weight = weights[static_cast<std::size_t>(op.segment.index())];
    busy.add(record.start.value(), record.end.value(), ran);
    work.add(record.start.value(), record.end.value(), ran * weight);
  }
  add_communication(breakdown.exposed_communication().value(), busy, work.seconds());
  return {.rank = rank, .gpu = gpu_of_rank(timed_, rank), .slices = std::move(work.seconds())};
}

}  // namespace tessera

#include "app/html/data/step_figures.h"

#include <algorithm>
#include <array>
#include <vector>

#include "workloads/memory/memory_replay.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

/// Use while one op runs.
struct UseAt {
  double time = 0;
  CategoryBytes bytes;
};

/// Of neighbours the fullest, so that about `most` are left.
std::vector<UseAt> thinned(const std::vector<UseAt>& uses, std::size_t most) {
  const std::size_t together = std::max<std::size_t>(1, (uses.size() + most - 1) / most);
  std::vector<UseAt> kept;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (i % together == 0) {
      kept.push_back(uses[i]);
    } else if (uses[i].bytes.total() > kept.back().bytes.total()) {
      kept.back().bytes = uses[i].bytes;
    }
  }
  return kept;
}

std::vector<UseAt> uses_of(const TimelineIndex& index, const TimedProgram& timed, int rank) {
  const RankProgram& program = index.program_of(rank);
  const auto records = index.records_of(rank);
  CategoryBytes used = program.static_parts;
  used[MemoryCategory::workspace] += timed.library_memory.allocator.workspaces;
  std::vector<UseAt> uses{{0, used}};
  std::int32_t last_op = -1;
  replay_memory(timed.program, program.stage, -1, [&](const MemoryStep& step) {
    const Bytes change = step.allocates ? step.allocation.bytes : -step.allocation.bytes;
    used[step.allocation.category] += change;
    if (step.op != last_op) {
      uses.push_back({records[static_cast<std::size_t>(step.op)].start.value(), used});
    } else if (used.total() > uses.back().bytes.total()) {
      uses.back().bytes = used;
    }
    last_op = step.op;
  });
  return uses;
}

/// Neighbours as one, at the time of the first and with the most memory, until `most` are left.
void thin_out(std::vector<double>& times, std::vector<std::int64_t>& bytes, std::size_t most) {
  const std::size_t together = (times.size() + most - 1) / std::max<std::size_t>(most, 1);
  if (together < 2) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < times.size(); i += together, ++kept) {
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last =
        bytes.begin() + static_cast<std::ptrdiff_t>(std::min(i + together, bytes.size()));
    bytes[kept] = *std::max_element(first, last);
    times[kept] = times[i];
  }
  times.resize(kept);
  bytes.resize(kept);
}

bool runs_again(const Segment& segment) {
  return std::ranges::any_of(segment.kernels, &KernelLaunch::recomputed);
}

}  // namespace

PageJson memory_by_category(const TimelineIndex& index, const TimedProgram& timed, int rank,
                            std::size_t most) {
  const std::vector<UseAt> uses = thinned(uses_of(index, timed, rank), most);
  PageJson names = PageJson::array(), times = PageJson::array(), bytes = PageJson::array();
  for (const UseAt& use : uses) times.push_back(use.time);
  for (int i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    names.push_back(name_of(category));
    PageJson row = PageJson::array();
    for (const UseAt& use : uses) row.push_back(use.bytes[category].value());
    bytes.push_back(std::move(row));
  }
  return {{"names", std::move(names)}, {"times_s", std::move(times)}, {"bytes", std::move(bytes)}};
}

PageJson memory_marks(const TimelineIndex& index, const TimedProgram& timed, int rank) {
  enum Kind : int { kOut, kIn, kAgain, kNone };
  const RankProgram& program = index.program_of(rank);
  const auto records = index.records_of(rank);
  std::vector<double> begin, end;
  std::vector<int> kinds;
  std::array<std::size_t, kNone> last{};  // position + 1 of the last mark of each kind
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const ProgramOp& op = program.ops[i];
    const bool again = op.kind == OpKind::kernels && runs_again(timed.program.segment(op.segment));
    const int kind = op.kind == OpKind::copy_out  ? kOut
                     : op.kind == OpKind::copy_in ? kIn
                     : again                      ? kAgain
                                                  : kNone;
    if (kind == kNone) continue;
    // What a thousandth of the step separates is one mark to the eye.
    std::size_t& known = last[static_cast<std::size_t>(kind)];
    const double from = records[i].start.value(), until = records[i].end.value();
    if (known > 0 && from - end[known - 1] < 1e-3 * index.step_time().value()) {
      end[known - 1] = std::max(end[known - 1], until);
      continue;
    }
    begin.push_back(from);
    end.push_back(until);
    kinds.push_back(kind);
    known = kinds.size();
  }
  return {{"begin_s", begin}, {"end_s", end}, {"kind", kinds}};
}

PageJson memory_of_rank(const TimelineIndex& index, const TimedProgram& timed, int rank,
                        std::size_t most) {
  std::vector<double> times;
  std::vector<std::int64_t> bytes;
  for (const MemorySample& sample : index.memory_of(rank)) {
    times.push_back(sample.time.value());
    bytes.push_back(sample.used.value());
  }
  thin_out(times, bytes, most);
  return {{"rank", rank},
          {"stage", index.program_of(rank).stage},
          {"times_s", times},
          {"bytes", bytes},
          {"marks", memory_marks(index, timed, rank)}};
}

PageJson memory_data(const StepReport& report, const TimedProgram& timed, const Timeline& timeline,
                     const StepPageLimits& limits) {
  const TimelineIndex index(timed, timeline);
  PageJson ranks = PageJson::array();
  for (const RankMemory& rank : report.memory.per_rank) {
    if (static_cast<int>(ranks.size()) == limits.memory_ranks) break;
    ranks.push_back(memory_of_rank(index, timed, rank.rank, limits.memory_samples));
    ranks.back()["static_bytes"] = rank.static_bytes.value();
    ranks.back()["peak_bytes"] = rank.peak.value();
    if (static_cast<int>(ranks.size()) <= limits.category_ranks)
      ranks.back()["categories"] =
          memory_by_category(index, timed, rank.rank, limits.category_samples);
  }
  return {{"step_time_s", report.step_time.value()},
          {"capacity_bytes", report.memory.capacity.value()},
          {"ranks", std::move(ranks)}};
}

PageJson kernel_roofline(const StepReport& report, const TimedProgram& timed) {
  PageJson points = PageJson::array();
  for (const TimedKernel& timed_kernel : timed.kernels) {
    const Kernel& kernel = timed_kernel.kernel;
    const double flops = kernel.flops.value(), seconds = timed_kernel.prediction.duration.value();
    const auto bytes = static_cast<double>(kernel.bytes().value());
    if (flops <= 0 || bytes <= 0 || seconds <= 0) continue;
    points.push_back({{"intensity", flops / bytes},
                      {"rate", flops / seconds},
                      {"kind", label_of(kernel.kind)},
                      {"shape", shape_label(kernel)}});
  }
  return {{"peak", report.peak_per_gpu.value()},
          {"bandwidth", timed.topology.cluster().node.gpu.memory_bandwidth.value()},
          {"points", std::move(points)}};
}

}  // namespace tessera

#include "workloads/program/program.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "workloads/model_graph.h"
#include "workloads/parallel/stage_program.h"

namespace tessera {
namespace {

struct SegmentFlops {
  Flops executed;
  Flops recomputed;  ///< of these
};

SegmentFlops flops_of(const Segment& segment) {
  SegmentFlops sum;
  if (segment.phase == Phase::optimizer) return sum;  // Muon's products
  for (const KernelLaunch& launch : segment.kernels) {
    if (!counts_as_model_flops(launch.kernel)) continue;
    sum.executed += launch.kernel.flops;
    if (launch.recomputed) sum.recomputed += launch.kernel.flops;
  }
  return sum;
}

/// Of a stage, in replicas of one kind.
double ranks_of_kind(const Program& program, std::int32_t kind) {
  const ParallelLayout& layout = program.layout;
  const auto& kinds = program.kind_of_replica;
  const auto replicas = kinds.empty() ? layout.data : std::ranges::count(kinds, kind);
  return static_cast<double>(replicas * layout.tensor * layout.context);
}

/// Over all ranks of the job.
SegmentFlops flops_of(const Program& program) {
  std::vector<SegmentFlops> of_segment;
  for (const Segment& segment : program.segments) of_segment.push_back(flops_of(segment));
  const auto stages = static_cast<std::size_t>(program.layout.pipeline);
  SegmentFlops all;
  for (std::size_t first = 0; first < program.stages.size(); first += stages) {
    SegmentFlops sum;
    for (std::size_t number = first; number < first + stages; ++number) {
      for (const ProgramOp& op : program.stages[number].ops) {
        if (op.kind != OpKind::kernels) continue;
        const SegmentFlops& part = of_segment[static_cast<std::size_t>(op.segment.index())];
        sum.executed += part.executed;
        sum.recomputed += part.recomputed;
      }
    }
    const double ranks = ranks_of_kind(program, static_cast<std::int32_t>(first / stages));
    all.executed += sum.executed * ranks;
    all.recomputed += sum.recomputed * ranks;
  }
  return all;
}

/// Programs for every number of micro-batches that some replica has, the first one's first.
Program stages_of_replicas(const ModelGraph& graph, const StepOptions& step) {
  std::vector<int> stages(static_cast<std::size_t>(step.layout.pipeline));
  std::iota(stages.begin(), stages.end(), 0);
  const std::vector<int>& counts = step.split.micro_batches_per_replica;
  std::vector<std::int64_t> distinct;
  std::vector<std::int32_t> kinds;
  for (const int count : counts) {
    const auto known = std::ranges::find(distinct, count);
    kinds.push_back(static_cast<std::int32_t>(known - distinct.begin()));
    if (known == distinct.end()) distinct.push_back(count);
  }
  Program program = build_stages(graph, step, stages, distinct);
  if (distinct.size() > 1) program.kind_of_replica = std::move(kinds);
  return program;
}

}  // namespace

Program with_counted_flops(Program program) {
  const SegmentFlops flops = flops_of(program);
  program.hardware_flops = flops.executed;
  program.model_flops = flops.executed - flops.recomputed;
  return program;
}

Program build_program(const ModelSpec& model, const StepOptions& step) {
  const ModelGraph graph = build_model_graph(model, step);
  Program program = stages_of_replicas(graph, step);
  for (const Block& block : graph.blocks) program.blocks.push_back({block.name, block.storages});
  for (std::size_t p = 0; p < graph.order.size(); ++p)
    program.order.push_back({graph.order[p], graph.layer_numbers[p]});
  program.placement = step.placement;
  program.micro_batches = static_cast<int>(step.micro_batches());
  program.sequences_per_step = step.global_batch;
  program.tokens_per_step = step.global_batch * step.sequence_length;
  program.parameters = parameter_count(model);
  return with_counted_flops(std::move(program));
}

}  // namespace tessera

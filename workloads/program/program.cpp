#include "workloads/program/program.h"

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
  for (const KernelLaunch& launch : segment.kernels) {
    if (!counts_as_model_flops(launch.kernel)) continue;
    sum.executed += launch.kernel.flops;
    if (launch.recomputed) sum.recomputed += launch.kernel.flops;
  }
  return sum;
}

/// Over all ranks of the job.
SegmentFlops flops_of(const Program& program) {
  std::vector<SegmentFlops> of_segment;
  for (const Segment& segment : program.segments) of_segment.push_back(flops_of(segment));
  SegmentFlops sum;
  for (const RankProgram& stage : program.stages) {
    for (const ProgramOp& op : stage.ops) {
      if (op.kind != OpKind::kernels) continue;
      const SegmentFlops& part = of_segment[static_cast<std::size_t>(op.segment.index())];
      sum.executed += part.executed;
      sum.recomputed += part.recomputed;
    }
  }
  const auto replicas = static_cast<double>(program.layout.world_size() / program.layout.pipeline);
  return {sum.executed * replicas, sum.recomputed * replicas};
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
  std::vector<int> stages(static_cast<std::size_t>(step.layout.pipeline));
  std::iota(stages.begin(), stages.end(), 0);
  Program program = build_stages(graph, step, stages);
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

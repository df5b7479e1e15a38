#include "workloads/program/program.h"

#include "workloads/model_graph.h"
#include "workloads/parallel/pass_library.h"
#include "workloads/parallel/stage_program.h"
#include "workloads/sharding.h"

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

/// Multiprocessors: defaults of Megatron-Core's transformer_config.py, moe_deepep_num_sms and
/// moe_hybridep_num_sms.
TokenRouting routing_of(const ModelSpec& model, const StepOptions& step) {
  const ExpertDispatcher dispatcher = step.framework.expert_dispatcher;
  if (dispatcher == ExpertDispatcher::all_to_all || model.experts == 0) return {};
  return {model.experts, model.experts_per_token, dispatcher == ExpertDispatcher::deepep ? 20 : 16};
}

}  // namespace

void count_flops(Program& program) {
  const SegmentFlops flops = flops_of(program);
  program.hardware_flops = flops.executed;
  program.model_flops = flops.executed - flops.recomputed;
}

Program build_program(const ModelSpec& model, const StepOptions& step) {
  const ModelGraph graph = build_model_graph(model, step);
  Program program;
  program.layout = step.layout;
  for (const Block& block : graph.blocks) program.blocks.push_back({block.name, block.storages});
  for (std::size_t p = 0; p < graph.order.size(); ++p)
    program.order.push_back({graph.order[p], graph.layer_numbers[p]});
  program.layout.shard = shard_ranks(step);
  program.placement = step.placement;
  program.tokens = routing_of(model, step);
  PassLibrary library(graph, program.segments);
  for (int stage = 0; stage < step.layout.pipeline; ++stage) {
    program.stages.push_back(build_stage_program(library, step, stage));
  }
  program.micro_batches = static_cast<int>(step.micro_batches());
  program.sequences_per_step = step.global_batch;
  program.tokens_per_step = step.global_batch * step.sequence_length;
  count_flops(program);
  program.parameters = parameter_count(model);
  return program;
}

}  // namespace tessera

#include "workloads/program.h"

#include "workloads/model_graph.h"
#include "workloads/parallel/pass_library.h"
#include "workloads/parallel/stage_program.h"

namespace tessera {
namespace {

bool is_gemm(const Kernel& kernel) {
  return kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::batched_gemm;
}

Flops gemm_flops(const Segment& segment) {
  Flops sum;
  for (const KernelLaunch& launch : segment.kernels) {
    if (is_gemm(launch.kernel)) sum += launch.kernel.flops;
  }
  return sum;
}

/// Over all ranks of the job.
Flops gemm_flops(const Program& program) {
  std::vector<Flops> of_segment;
  for (const Segment& segment : program.segments) of_segment.push_back(gemm_flops(segment));
  Flops sum;
  for (const RankProgram& stage : program.stages) {
    for (const ProgramOp& op : stage.ops) {
      if (op.kind == OpKind::kernels) {
        sum += of_segment[static_cast<std::size_t>(op.segment.index())];
      }
    }
  }
  return sum * static_cast<double>(program.layout.tensor * program.layout.data);
}

}  // namespace

Program build_program(const ModelSpec& model, const StepOptions& step) {
  const ModelGraph graph = build_model_graph(model, step);
  Program program;
  program.layout = step.layout;
  PassLibrary library(graph, program.segments);
  for (int stage = 0; stage < step.layout.pipeline; ++stage) {
    program.stages.push_back(build_stage_program(library, step, stage));
  }
  program.micro_batches = static_cast<int>(step.micro_batches());
  program.sequences_per_step = step.global_batch;
  program.tokens_per_step = step.global_batch * step.sequence_length;
  program.hardware_flops = gemm_flops(program);
  program.model_flops = program.hardware_flops;  // nothing is recomputed
  program.parameters = parameter_count(model);
  return program;
}

}  // namespace tessera

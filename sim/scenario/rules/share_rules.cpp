// What splitting a model of Hugging Face's modules over GPUs asks of it and of a layout.
#include <string>

#include "sim/scenario/rules/framework_rules.h"
#include "workloads/families/modules.h"
#include "workloads/parallel/layer_split.h"

namespace tessera {

/// Sizes of TensorShare.
void FrameworkRules::check_tensor_share() {
  const FrameworkProfile& profile = step_.framework;
  const int tensor = step_.layout.tensor;
  if (profile.overlap_tensor_products && profile.tensor_plan != TensorPlan::sequence)
    fail("training.framework.overlap_tensor_products",
         profile.name + " has no products beside gathers",
         "use framework: torchtitan or megatron, or overlap_tensor_products: false");
  if (tensor == 1 || profile.tensor_plan == TensorPlan::whole) return;
  if (model_.experts > 0)
    fail("parallelism.tensor",
         "experts of " + profile.name + " are not split over tensor-parallel ranks",
         "use framework: megatron, or 1");
  check_sequence_plan();
}

/// FSDP divides parameters, or gradients and what the optimizer holds; torchtitan has nothing else.
void FrameworkRules::check_fully_sharded() {
  const FrameworkProfile& profile = step_.framework;
  const bool fsdp_alone = profile.tensor_plan == TensorPlan::sequence;
  if (fsdp_alone && step_.data_parallel.sharding == Sharding::optimizer)
    fail("training.data_parallel.sharding",
         "optimizer: " + profile.name + " divides by FSDP, which has no ZeRO-1",
         "use parameters (reshard_after_forward: always), gradients with gather_units: true "
         "(never), none (replicas), or framework: fsdp");
}

void FrameworkRules::check_sequence_plan() {
  const FrameworkProfile& profile = step_.framework;
  if (profile.tensor_plan != TensorPlan::sequence) return;
  const ParallelLayout& layout = step_.layout;
  if (!layout.sequence_parallel)
    fail("parallelism.sequence_parallel",
         profile.name + " shares sequences wherever it shares layers", "leave it out, or use true");
  require_divisor("parallelism.tensor", layout.tensor,
                  "the positions of a context-parallel rank = sequence_length / context",
                  step_.sequence_length / layout.context);
  if (profile.overlap_tensor_products && step_.kernels != KernelMode::fused)
    fail("training.framework.overlap_tensor_products",
         "asynchronous tensor parallelism of " + profile.name + " is torch.compile's",
         "use training.kernels: fused, or overlap_tensor_products: false");
}

/// Gathers in fp8.
void FrameworkRules::check_gathers() {
  const DataParallel& data = step_.data_parallel;
  if (!data.gather_fp8) return;
  const bool gathers = data.sharding == Sharding::parameters || data.gather_units;
  const bool casts = step_.precision == Precision::fp8 &&
                     step_.framework.fp8_scaling == Fp8Scaling::current &&
                     !step_.framework.transformer_engine;
  if (!gathers || !casts)
    fail("training.data_parallel.gather_fp8",
         "is for weights that are gathered for products in fp8, scaled by their own largest values",
         "use precision: fp8 and sharding: parameters with framework: torchtitan, or false");
}

/// Stages of torch.distributed.pipelining.
void FrameworkRules::check_stages() {
  const FrameworkProfile& profile = step_.framework;
  const int stages = step_.layout.pipeline;
  if (stages == 1 || !profile.splits_stages || model_.family != ModelFamily::llama) return;
  check_split();
  if (model_.tied_embeddings)
    fail("parallelism.pipeline",
         "the first and the last stage of " + profile.name + " would each train a word table",
         "use model.tied_embeddings: false, framework: megatron, or 1");
  if (step_.schedule == PipelineSchedule::dualpipe || step_.schedule == PipelineSchedule::zb_h2)
    fail("training.schedule",
         "torch.distributed.pipelining has none like it (its DualPipeV is not simulated)",
         "use gpipe, one_f_one_b, interleaved_1f1b, zb_h1 or zbv, or framework: megatron");
  if (step_.mode == StepMode::forward_backward)
    fail("training.mode", "forward_backward is of a whole model", "use mode: training");
}

/// Parts of sequences under PyTorch's context_parallel.
void FrameworkRules::check_parts() {
  const ParallelLayout& layout = step_.layout;
  const FrameworkProfile& profile = step_.framework;
  if (layout.context == 1 || !profile.splits_sequences || model_.family != ModelFamily::llama)
    return;
  check_context();
  if (step_.context_attention == ContextAttention::ulysses)
    fail("parallelism.context_attention", "ulysses: " + profile.name + " trades no heads",
         "use ring (alltoall rotation) or all_gather (allgather rotation)");
}

}  // namespace tessera

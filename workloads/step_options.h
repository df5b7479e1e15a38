#pragma once

#include <cstdint>

#include "hw/units/precision.h"
#include "workloads/program.h"

namespace tessera {

enum class StepMode : std::uint8_t {
  training,          ///< the framework's whole step: forward, loss, backward, gradient reduction,
                     ///< clip-norm, optimizer
  forward_backward,  ///< forward and backward alone, gradients accumulating: no loss, no zero_grad,
                     ///< no optimizer (how NeuSight timed one GPU)
  inference,         ///< forward without dropout, nothing saved
};

/// Which kernels a framework launches for the same mathematics. Kernel lists: workloads/families/.
enum class FrameworkProfile : std::uint8_t {
  hf_eager,        ///< Hugging Face modules in PyTorch eager mode
  megatron_local,  ///< Megatron-Core `local` transformer, fp32
};

enum class KernelMode : std::uint8_t {
  eager,
  fused,  ///< chains of pointwise kernels and their reductions merge, as torch.compile does
};

enum class PipelineSchedule : std::uint8_t { gpipe, one_f_one_b };

enum class OptimizerKind : std::uint8_t { adam, none };

/// What is run for one step.
struct StepOptions {
  StepMode mode = StepMode::training;
  FrameworkProfile framework = FrameworkProfile::megatron_local;
  KernelMode kernels = KernelMode::eager;
  Precision precision = Precision::fp32;
  std::int64_t sequence_length = 0;
  std::int64_t micro_batch = 0;   ///< sequences per micro-batch and data-parallel rank
  std::int64_t global_batch = 0;  ///< sequences per step; = micro_batch * data * micro-batches
  ParallelLayout layout;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  OptimizerKind optimizer = OptimizerKind::adam;
  bool clip_gradients = true;

  std::int64_t micro_batches() const { return global_batch / (micro_batch * layout.data); }
};

}  // namespace tessera

#pragma once

#include <cstdint>

#include "hw/units/precision.h"
#include "workloads/framework_profile.h"
#include "workloads/program.h"

namespace tessera {

enum class StepMode : std::uint8_t {
  training,          ///< the framework's whole step: forward, loss, backward, gradient reduction,
                     ///< clip-norm, optimizer
  forward_backward,  ///< forward and backward alone, gradients accumulating: no loss, no zero_grad,
                     ///< no optimizer (how NeuSight timed one GPU)
  inference,         ///< forward without dropout, nothing saved
};

enum class PipelineSchedule : std::uint8_t { gpipe, one_f_one_b };

enum class OptimizerKind : std::uint8_t {
  adam,
  none,
  sgd,  ///< with momentum and weight decay
};

/// Which activations a transformer layer computes again in backward instead of keeping them.
enum class Recompute : std::uint8_t {
  none,
  selective,  ///< core attention: everything between the projections (Korthikanti et al., 2022)
  full,       ///< the whole layer; its input alone is kept
};

/// What is run for one step.
struct StepOptions {
  StepMode mode = StepMode::training;
  FrameworkProfile framework;
  KernelMode kernels = KernelMode::eager;
  Precision precision = Precision::fp32;  ///< of matrix products
  MixedPrecision formats;                 ///< of parameters, gradients and optimizer states
  Recompute recompute = Recompute::none;
  double expert_imbalance = 1;  ///< tokens of the busiest expert over the mean
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

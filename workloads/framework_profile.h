#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "workloads/data_parallel.h"
#include "workloads/mixed_precision.h"

namespace tessera {

/// Whose modules a model is made of.
enum class ModuleTree : std::uint8_t {
#include "configs/schema/words/module_tree.inc"
};

enum class KernelMode : std::uint8_t {
#include "configs/schema/words/kernel_mode.inc"
};

enum class AttentionKernels : std::uint8_t {
#include "configs/schema/words/attention_kernels.inc"
};

/// How operands of products in FP8 are scaled to its range.
enum class Fp8Scaling : std::uint8_t {
#include "configs/schema/words/fp8_scaling.inc"
};

/// What the host launches as one CUDA graph.
enum class CudaGraphs : std::uint8_t {
#include "configs/schema/words/cuda_graphs.inc"
};

/// How tokens travel to the ranks of their experts. Sources: Megatron-Core
/// transformer/moe/{token_dispatcher,fused_a2a}.py; DeepSeek-AI, DeepEP.
enum class ExpertDispatcher : std::uint8_t {
#include "configs/schema/words/expert_dispatcher.inc"
};
/// Not once for each of its experts.
constexpr bool sends_tokens_once(ExpertDispatcher dispatcher) {
  return dispatcher == ExpertDispatcher::deepep || dispatcher == ExpertDispatcher::hybridep;
}

/// Megatron's loss over words. Sources: Megatron-Core fusions/fused_cross_entropy.py; Transformer
/// Engine pytorch/triton/cross_entropy.py.
enum class LossFusion : std::uint8_t {
#include "configs/schema/words/loss_fusion.inc"
};

/// What `recompute: selective` runs again in backward.
enum class SelectiveRecompute : std::uint8_t {
#include "configs/schema/words/selective_recompute.inc"
};

/// How tensor-parallel ranks share a model of Hugging Face's modules.
enum class TensorPlan : std::uint8_t {
#include "configs/schema/words/tensor_plan.inc"
};

/// Which kernels a framework launches for the same mathematics, in which formats it keeps what the
/// optimizer needs, and what its host side costs. Shipped ones: configs/frameworks/.
struct FrameworkProfile {
#include "configs/schema/fields/framework_profile.inc"
  bool fp8_transposes = true;  ///< products of matrices with one FP8 scale read both by rows alone,
                               ///< so that casts write a second, turned copy (choose_casts())

  /// Formats of a step that computes in `precision`; FP8 keeps what bf16 keeps.
  MixedPrecision formats(Precision precision) const {
    const Precision activations = activation_precision(precision);
    if (activations == Precision::bf16) return bf16;
    return activations == Precision::fp16 ? fp16 : MixedPrecision{};
  }
};

}  // namespace tessera

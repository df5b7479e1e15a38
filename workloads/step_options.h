#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/precision.h"
#include "workloads/framework_profile.h"
#include "workloads/host_table.h"
#include "workloads/program/program.h"

namespace tessera {

enum class StepMode : std::uint8_t {
#include "configs/schema/words/step_mode.inc"
};

/// Orders of micro-batches in a pipeline: workloads/schedules/schedule.h.
enum class PipelineSchedule : std::uint8_t {
#include "configs/schema/words/pipeline_schedule.inc"
};

enum class OptimizerKind : std::uint8_t {
#include "configs/schema/words/optimizer_kind.inc"
};
constexpr bool is_muon(OptimizerKind kind) {
  return kind == OptimizerKind::muon || kind == OptimizerKind::dist_muon;
}

/// Whether an update needs norms of whole tensors, which ranks must not divide then.
constexpr bool needs_tensor_norms(OptimizerKind kind) {
  return kind == OptimizerKind::lamb || kind == OptimizerKind::lars;
}

/// Which activations a transformer layer computes again in backward instead of keeping them.
/// Source of `selective`: Korthikanti et al., 2022.
enum class Recompute : std::uint8_t {
#include "configs/schema/words/recompute.inc"
};

/// How the ranks of a context group, which hold parts of each sequence, attend to all of it.
enum class ContextAttention : std::uint8_t {
#include "configs/schema/words/context_attention.inc"
};

/// How layers are spread over pipeline stages, and micro-batches over replicas; by default evenly.
struct StageSplit {
#include "configs/schema/fields/stage_split.inc"
};

/// Linear layers that low-rank adapters stand beside.
enum class LoraTargets : std::uint8_t {
#include "configs/schema/words/lora_targets.inc"
};

/// How frozen weights of linear layers are held. Dettmers et al., "QLoRA", 2023.
enum class BaseWeights : std::uint8_t {
#include "configs/schema/words/base_weights.inc"
};
constexpr bool has_four_bits(BaseWeights weights) {
  return weights == BaseWeights::nf4 || weights == BaseWeights::nf4_double_quant;
}

/// What is run for one step.
struct StepOptions {
#include "configs/schema/fields/step_options.inc"
  ParallelLayout layout;
  StageSplit split;
  ContextAttention context_attention = ContextAttention::ring;
  std::vector<int> placement;  ///< GPU of each rank; empty: the first ones of the cluster in order
  bool segment_per_call = false;  ///< a segment for every kernel, for what tells kernels apart

  /// Whether backward runs `module` again (Megatron's --recompute-modules).
  bool recomputes(std::string_view module) const {
    return recompute == Recompute::selective &&
           std::ranges::find(recompute_modules, module) != recompute_modules.end();
  }

  /// Of a replica; of the one with most where they differ.
  std::int64_t micro_batches() const {
    const std::vector<int>& uneven = split.micro_batches_per_replica;
    return uneven.empty() ? global_batch / (micro_batch * layout.data)
                          : *std::ranges::max_element(uneven);
  }
};

/// `step` with `count` micro-batches for each replica.
inline StepOptions with_micro_batches(StepOptions step, std::int64_t count) {
  step.global_batch = step.micro_batch * step.layout.data * count;
  step.split.micro_batches_per_replica.clear();
  return step;
}

}  // namespace tessera

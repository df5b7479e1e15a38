#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

/// How the GEMM slowdown of a GPU that was never measured follows from those that were.
enum class ComputeRule : std::uint8_t {
  median,       ///< median of the measured GPUs
  predecessor,  ///< that of the predecessor (predictor/gpu/compute_rules.h)
  physical,     ///< mean of the GPUs without a power limit; wide SMs and dense clock apart
  pooled,       ///< the same by partial pooling: GPUs of its own generation count more
};

/// One way to predict GPUs that were never measured. Which one is shipped is decided by
/// leave-one-GPU-out on whole models (lab/validate/studies/rule_study.h); it travels with the
/// weights.
struct EffectRule {
  ComputeRule compute = ComputeRule::physical;
  bool power_limit = true;  ///< a sustained rate from TDP bounds GEMMs
  /// Weight of the limit that all power-limited cards have in common against the one that a card's
  /// own session showed, in [0, 1]; matters to measured cards alone.
  double session_pooling = 1;

  bool operator==(const EffectRule&) const = default;
};

std::string_view name_of(ComputeRule rule);
/// "physical, power limit, session pooling 1".
std::string text_of(const EffectRule& rule);

}  // namespace tessera

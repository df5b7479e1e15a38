#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "predictor/attention/attention_model.h"
#include "predictor/weights/training_data.h"

namespace tessera {

namespace weights {
class Attention;
}  // namespace weights

/// Unconstrained parameters, in the order of AttentionParameter.
using AttentionVector = std::array<double, kAttentionParameters>;

/// One implementation as measured on one GPU.
struct AttentionProfile {
  std::string gpu, stack;
  AttentionImplementation implementation = AttentionImplementation::flash2;
  bool served = false;       ///< timed inside a server
  bool causal = true;        ///< calls with a causal mask were measured
  bool full = true;          ///< calls without one were
  bool bulk_copies = false;  ///< of `gpu`, for which the kernel was written
  AttentionVector parameters{};
  double spread = 0;  ///< standard deviation of log time over shapes that were held out
};

/// Trained parameters of fused attention.
struct AttentionWeights {
  static constexpr int kSchemaVersion = 4;

  TrainingData data;
  std::vector<AttentionProfile> profiles;
  BackwardRatio backward;
  Flash1Ratio flash1;
  double copied_spread = 0;  ///< of log time, where a profile stands in for another GPU's
  /// Largest batch, heads, sequence and head size of the calls that were fitted.
  std::array<double, 4> range{};
};

/// As a section of the weights file. Throws InputError naming that file: damaged, or of another
/// schema version.
AttentionWeights attention_weights(const weights::Attention& section,
                                   const std::filesystem::path& path);
void write(const AttentionWeights& from, weights::Attention& section);

}  // namespace tessera

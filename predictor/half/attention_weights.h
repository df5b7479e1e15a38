#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "predictor/half/attention_model.h"
#include "predictor/half/half_memory_model.h"
#include "predictor/weights.h"

namespace tessera {

/// Unconstrained parameters, in the order of AttentionParameter.
using AttentionVector = std::array<double, kAttentionParameters>;

/// One implementation as measured on one GPU.
struct AttentionProfile {
  std::string gpu, stack;
  AttentionImplementation implementation = AttentionImplementation::flash2;
  bool served = false;  ///< timed inside a server
  bool causal = true;   ///< calls with a causal mask were measured
  bool full = true;     ///< calls without one were
  AttentionVector parameters{};
  double spread = 0;  ///< standard deviation of log time over shapes that were held out
};

/// Trained parameters of fused attention.
struct AttentionWeights {
  static constexpr int kSchemaVersion = 1;

  TrainingData data;
  std::vector<AttentionProfile> profiles;
  BackwardRatio backward;
  double copied_spread = 0;  ///< of log time, where a profile stands in for another GPU's
};

/// Trained parameters of 16-bit memory-bound kernels, measured on one GPU.
struct HalfMemoryWeights {
  static constexpr int kSchemaVersion = 1;

  TrainingData data;
  std::string gpu;
  std::array<HalfMemoryVector, kHalfMemoryOps> classes{};
  std::array<double, kHalfMemoryOps> spread{};  ///< of log time over shapes that were held out
};

/// Throw InputError naming the file: missing, damaged, or of another schema version.
AttentionWeights load_attention(const std::filesystem::path& path);
HalfMemoryWeights load_half_memory(const std::filesystem::path& path);
/// Same weights, same bytes. Write a temporary file and rename it.
void save_attention(const AttentionWeights& weights, const std::filesystem::path& path);
void save_half_memory(const HalfMemoryWeights& weights, const std::filesystem::path& path);

}  // namespace tessera

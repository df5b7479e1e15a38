#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hw/gpu.h"
#include "predictor/tensor/tensor_gemm_model.h"
#include "predictor/weights/training_range.h"

namespace tessera {

namespace weights {
class TensorGemm;
}

/// A library that was measured on a GPU.
struct TensorStackWeights {
  std::string name;
  Precision precision = Precision::bf16;
  std::int64_t rows = 0;  ///< that are at hand, fitted to or not
  TensorStackEffect<double> effect{};
};

/// A GPU that was measured, with the facts that the rule for unseen GPUs compares.
struct TensorGpuWeights {
  std::string gpu;  ///< id
  std::string die;  ///< empty = not known
  Architecture architecture = Architecture::ampere;
  double watts_per_flops = 0;  ///< TDP over dense peak; 0 = unknown
  double clock = 0;            ///< boost clock [Hz]; 0 = unknown
  TensorGpuEffect<double> effect{};
  double stack_spread = 0;  ///< of log time, between the libraries measured on it
  double long_spread = 0;   ///< of one kernel of 50 us and longer, on shapes not fitted to
  double short_spread = 0;  ///< of one below
  std::vector<TensorStackWeights> stacks;
};

/// Trained parameters of the half-precision products, with their provenance.
struct TensorWeights {
  static constexpr int kSchemaVersion = 2;

  std::string file;               ///< that was trained on, name without folder
  std::uint64_t fnv1a = 0;        ///< of it
  std::int64_t rows = 0;          ///< that the fit used
  std::string quantisation_rule;  ///< where the whole-wave shares of unseen GPUs come from
  TensorParameters<double> shared{};
  std::vector<TensorGpuWeights> gpus;
  GemmRange range{};  ///< largest batch, m, n, k
};

/// As a section of the weights file. Throws InputError naming that file: damaged, or of another
/// schema version.
TensorWeights tensor_weights(const weights::TensorGemm& section, const std::filesystem::path& path);
void write(const TensorWeights& from, weights::TensorGemm& section);

}  // namespace tessera

#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/gpu.h"
#include "predictor/attention/attention_weights.h"
#include "predictor/fp32/conv_model.h"
#include "predictor/fp32/gemm_model.h"
#include "predictor/fp32/memory_model.h"
#include "predictor/fp32/mlp_weights.h"
#include "predictor/gpu/effect_rule.h"
#include "predictor/gpu/gpu_effect.h"
#include "predictor/spread.h"
#include "predictor/tensor/tensor_weights.h"
#include "predictor/weights/training_data.h"
#include "predictor/weights/training_range.h"

namespace tessera {

/// A trained GPU: its effect and the facts that the rules for unseen GPUs compare.
struct TrainedGpu {
  GpuEffect effect;
  std::string die;
  int lanes_per_sm = 64;
  int efficiency_steps = 0;
  bool hbm = false;
  double tdp = 0;            ///< [W]
  double reached_flops = 0;  ///< GEMM rate that it held for 5 ms and longer; 0 = no such calls
};

/// Tile that cuBLAS chose for one measured product.
struct TileExample {
  float log_batch = 0, log_m = 0, log_n = 0, log_k = 0;
  int tile_m = 0, tile_n = 0;
  SgemmFamily family = SgemmFamily::ampere;  ///< of the kernels it was chosen from
};

/// The `neusight` form of one operator class.
struct NeusightClass {
  MlpWeights mlp;
  std::array<double, 4> feature_mean{};
  std::array<double, 4> feature_scale{};
  std::vector<TileExample> tiles;  ///< empty for classes without tile choice
};
inline constexpr std::size_t kNeusightClasses =
    5;  ///< linear, bmm, elementwise, softmax, layer_norm

/// Leave-one-GPU-out error: trained on the others, scored on `gpu` [%].
struct LogoScore {
  std::string form, gpu, op;
  std::int64_t n = 0;
  double mean_abs_error_pct = 0;
  double median_abs_error_pct = 0;
};

/// Everything trained of convolutions but the effects of single GPUs.
struct ConvolutionWeights {
  ConvolutionParameters<double> shared{};
  double shift = 0;          ///< slowdown less that of linear layers, mean of measured GPUs
  double floor_seconds = 0;  ///< mean launch floor of measured GPUs
};

/// All trained parameters with their provenance: those of the FP32 kernel models, and a section per
/// class of 16-bit kernels, empty where that was not trained.
struct PredictorWeights {
  static constexpr int kSchemaVersion = 2;      ///< of the file
  static constexpr int kFp32SchemaVersion = 1;  ///< of the section of FP32 kernels
  static constexpr int kFeatureVersion = 1;     ///< meaning of its parameters

  std::string precision = "fp32";
  std::uint64_t seed = 0;
  std::vector<TrainingData> data;
  GemmWeights gemm;     ///< linear layers
  GemmWeights batched;  ///< batched products
  MemoryParameters<double> memory{};
  std::optional<ConvolutionWeights> convolution;  ///< empty where no convolution was timed
  TrainingRange range;
  EffectRule rule;  ///< for GPUs that were not measured
  Spreads spreads;
  std::vector<TrainedGpu> gpus;
  std::vector<NeusightClass> neusight;  ///< kNeusightClasses, or empty
  std::vector<LogoScore> logo;
  std::vector<GpuEffect> calibrated;  ///< from overlays, for one run; not part of the file

  std::optional<TensorWeights> tensor_gemm;   ///< products on tensor cores
  std::optional<AttentionWeights> attention;  ///< fused attention

  /// Whether FP32 kernels were trained.
  bool trained() const { return !gpus.empty(); }
};

/// Throws InputError naming the file: missing, damaged, or of another schema or feature version.
PredictorWeights load_weights(const std::filesystem::path& path);
/// Same weights, same bytes, section by section: one that does not change keeps its bytes. Writes a
/// temporary file and renames it.
void save_weights(const PredictorWeights& weights, const std::filesystem::path& path);
/// Names the trained parameters that overlays correct: fnv1a of the sections of FP32 kernels, of
/// products on tensor cores and of attention.
std::uint64_t fingerprint(const PredictorWeights& weights);

}  // namespace tessera

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "lab/predict/scored_files.h"
#include "lab/predict/serving_kernels.h"
#include "predictor/attention/attention_predictor.h"
#include "predictor/tensor/tensor_gemm_predictor.h"

namespace tessera {

/// Which thread blocks a program's kernels of a product have.
enum class KernelTiles : std::uint8_t {
  any,
  whole,         ///< none shares its contraction with another
  compiled,      ///< whole, and of 128 rows alone
  compiled_few,  ///< the same for at most 128 rows: of 64, too
  untuned,       ///< whole, and of 128 x 256 alone
};

/// How long kernels take, one behind the other, and how far that may be off.
struct ServedTime {
  Seconds time;
  LogSpread spread;
};

/// Predicts kernels as a server of language models runs them, timed alone, on one GPU. The form
/// tessera takes attention with what serving adds to it, and products as much slower as they say;
/// other forms know neither.
class ServedKernels {
 public:
  ServedKernels(const ScoreRequest& request, const GpuSpec& gpu, std::string stack,
                Load load = Load::isolated);

  /// Of products, as TensorGemmPredictor::keep_warm.
  void keep_warm(int sets) { warm_sets_ = sets; }

  ServedTime timed(const std::vector<ServingKernel>& kernels);

 private:
  ServedTime timed(const ServingKernel& kernel);
  Seconds of_clocks(double clocks) const;
  Seconds paced(const ServingKernel& kernel, Seconds moving);
  KernelTiles tiles_of(const ServingKernel& kernel) const;
  TensorGemmPredictor& products(const ServingKernel& kernel);
  ServedTime of_product(const ServingKernel& kernel);
  ServedTime of_attention(const ServingKernel& kernel);
  Seconds quantization(const AttentionCall& call);
  AttentionPredictor& attention(const std::string& variant);
  const KernelPredictor& plain(const std::string& variant);
  GpuSpec variant(const std::string& name) const;

  const ScoreRequest& request_;
  GpuSpec gpu_;
  std::string stack_;
  Load load_;
  int warm_sets_ = 0;
  std::map<std::string, std::unique_ptr<KernelPredictor>> plain_;
  std::map<std::tuple<std::string, bool, double, double, KernelTiles>, TensorGemmPredictor>
      products_;
  std::map<std::string, AttentionPredictor> attention_;
};

}  // namespace tessera

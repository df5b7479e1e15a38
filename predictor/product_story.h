#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "predictor/fp32/conv_model.h"
#include "predictor/fp32/gemm_model.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// One way to cut the output of a product into thread blocks, and what the model makes of it.
struct TileCandidate {
  GemmTile tile;
  int split = 1;              ///< slices of the contraction
  double blocks = 0;          ///< thread blocks, all slices
  double waves = 0;           ///< blocks / SMs
  double charged_waves = 0;   ///< with the share of whole waves that the model charges, >= waves
  double blocks_per_sm = 0;   ///< on the busiest SM
  double sm_utilization = 0;  ///< blocks / (SMs * blocks_per_sm), in (0, 1]
  double seconds = 0;         ///< before what slows all candidates down
  double relative = 0;        ///< time against the fastest candidate, >= 1
  double share = 0;           ///< in the soft minimum; all candidates add up to 1
};

/// How the compute time of a matrix product comes about:
/// `tiles` * row_slowdown * layout_slowdown * gpu_slowdown, limited by power.
struct ProductStory {
  GemmShape shape;
  std::vector<TileCandidate> candidates;  ///< fastest first
  double tiles = 0;                       ///< soft minimum over the candidates [s]
  double row_slowdown = 1;     ///< operand rows far apart or off the memory sectors, >= 1
  double layout_slowdown = 1;  ///< NN and NT linear layers; of a convolution: its algorithm
  double gpu_slowdown = 1;     ///< the GPU's own, against the model that all GPUs share
  std::optional<double> at_power_limit;  ///< [s] at the power-limited rate; empty = no limit
  double power_sharpness = kPowerLimitSharpness;  ///< of the change to that rate

  double unlimited() const {
    return tiles * row_slowdown * layout_slowdown * gpu_slowdown;
  }  ///< [s]
  double compute_seconds() const;
};

/// What is particular to a GPU and a memory order; slowdowns as log time.
struct GemmSlowdown {
  double gpu = 0;
  double layout = 0;           ///< against the order in which the class was timed
  double sustained_flops = 0;  ///< power-limited rate [FLOP/s]; 0 = not limited
};

/// Of a linear layer or batched product.
ProductStory gemm_story(const GemmShape& shape, const GpuTraits& gpu, const GemmWeights& weights,
                        const GemmSlowdown& slowdown);

/// One of cuDNN's algorithms for a convolution.
struct AlgorithmCandidate {
  std::string_view name;  ///< "implicit_gemm", "fused_winograd", "staged_winograd"
  ConvolutionTerms<double> terms;
  double seconds = 0;
  double relative = 0;  ///< time against the fastest candidate, >= 1
  double share = 0;     ///< in the soft minimum; all candidates add up to 1
};

struct ConvolutionStory {
  std::vector<AlgorithmCandidate> algorithms;  ///< fastest first
  double seconds = 0;                          ///< soft minimum over them
  ProductStory product;                        ///< of the fastest
};

ConvolutionStory convolution_story(const ConvolutionShape& shape, const ConvolutionGpu<double>& gpu,
                                   const ConvolutionParameters<double>& p);

}  // namespace tessera

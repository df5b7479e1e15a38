#pragma once

#include <string>

#include "predictor/fp32/conv_model.h"
#include "predictor/fp32/launch_floor.h"
#include "predictor/weights/weights.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/test_gpus.h"
#include "workloads/program/convolution.h"

namespace tessera {

/// size x size images, padded to keep their size at stride 1.
inline Kernel square_convolution(std::int64_t batch, std::int64_t in, std::int64_t out,
                                 std::int64_t size, std::int32_t window = 3,
                                 std::int32_t stride = 1) {
  return convolution_kernel({.batch = batch,
                             .in_channels = in,
                             .out_channels = out,
                             .height = size,
                             .width = size,
                             .window = window,
                             .stride = stride,
                             .padding = window / 2});
}

inline ConvolutionParameters<double> planted_parameters() {
  return {.norm = 3,
          .prologue = 20,
          .memory = 1.4,
          .transform = 1.2,
          .implicit = -0.3,
          .fused = -0.2,
          .stage_seconds = 1e-6,
          .launch_share = 0.8,
          .quantisation = 0.7,
          .penalty = {0, 0.05, 0.3}};
}

/// The committed weights with the planted parameters; V100 alone has timed convolutions.
inline PredictorWeights weights_with_convolutions() {
  PredictorWeights weights = load_weights(committed_weights());
  weights.convolution = {.shared = planted_parameters(), .shift = 0.25, .floor_seconds = 70e-6};
  for (TrainedGpu& gpu : weights.gpus) {
    gpu.effect.convolution_slowdown.reset();
    if (gpu.effect.gpu == "V100-PCIe-32GB") gpu.effect.convolution_slowdown = 0.4;
  }
  return weights;
}

inline constexpr const char* kConvolutionHeader =
    "gpu,op,split,batch,in_channels,out_channels,kernel_size,input_size,stride,padding,"
    "latency_us\n";

/// Timings of an imaginary run on `id`: the planted parameters at `slowdown`, behind a floor of
/// 70 us that rises by 0.1 us with every call.
inline std::string synthetic_convolutions(const std::string& id, double slowdown, int rows = 240) {
  const GpuTraits traits = gpu_traits(test_gpu(id));
  const ConvolutionParameters<double> p = planted_parameters();
  std::string text;
  for (int i = 0; i < rows; ++i) {
    const int batch = 1 + (i * 37) % 64, in = 3 + (i * 211) % 1500, out = 3 + (i * 331) % 1500;
    const int size = 5 + (i * i) % 60;
    const ConvolutionShape shape = convolution_shape(square_convolution(batch, in, out, size));
    const ConvolutionGpu<double> gpu{traits, slowdown, 0};
    const double seconds =
        isolated_seconds(convolution_seconds(shape, gpu, p), 70e-6 + 0.1e-6 * i, p.launch_share);
    text += id + ",conv2d,train," + std::to_string(batch) + "," + std::to_string(in) + "," +
            std::to_string(out) + ",3," + std::to_string(size) + ",1,1," +
            std::to_string(seconds * 1e6) + "\n";
  }
  return text;
}

}  // namespace tessera

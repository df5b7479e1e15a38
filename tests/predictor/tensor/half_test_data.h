#pragma once

#include <cmath>
#include <string>

#include "hw/gpu.h"
#include "hw/units/input_error.h"
#include "predictor/tensor/tensor_weights.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// Datasheet facts of the GPUs that these tests use; throws InputError for others.
inline GpuSpec tensor_gpu(const std::string& id) {
  GpuSpec gpu;
  gpu.id = id;
  gpu.vendor = "NVIDIA";
  const auto set = [&](Architecture architecture, int sms, double tflops, double gbps, int l2_mib,
                       double watts) {
    gpu.architecture = architecture;
    gpu.sm_count = sms;
    gpu.fp16 = FlopsPerSecond(tflops * 1e12);
    gpu.bf16 = architecture < Architecture::ampere ? FlopsPerSecond(0) : gpu.fp16;
    gpu.memory_bandwidth = BytesPerSecond(gbps * 1e9);
    gpu.l2 = Bytes(std::int64_t{l2_mib} << 20);
    gpu.tdp = Watts(watts);
  };
  if (id == "A100-SXM4-80GB") set(Architecture::ampere, 108, 312, 2039, 40, 400);
  if (id == "A100-PCIe-40GB") set(Architecture::ampere, 108, 312, 1555, 40, 250);
  if (id == "H100-SXM5-80GB") set(Architecture::hopper, 132, 989.4, 3350, 50, 700);
  if (id == "H200-SXM5-141GB") set(Architecture::hopper, 132, 989.4, 4800, 50, 700);
  if (id == "B200-SXM-180GB") set(Architecture::blackwell, 148, 2250, 8000, 126, 1000);
  if (id == "V100-PCIe-32GB") set(Architecture::volta, 80, 112, 900, 6, 250);
  if (id == "T4") set(Architecture::turing, 40, 65, 320, 4, 70);
  if (id == "P100-PCIe-16GB") set(Architecture::pascal, 56, 18.7, 732, 4, 250);
  const bool ampere = gpu.architecture == Architecture::ampere;
  const bool volta = gpu.architecture == Architecture::volta;
  const bool turing = gpu.architecture == Architecture::turing;
  gpu.boost_clock = Hertz(ampere ? 1.41e9 : turing ? 1.59e9 : volta ? 1.38e9 : 1.98e9);
  gpu.tensor_clock = gpu.boost_clock;  // no less than the peaks above
  if (ampere) gpu.compute_capability = "8.0";
  if (id.starts_with("A100")) gpu.die = "GA100";
  if (id.starts_with("H")) gpu.die = "GH100";
  if (id.starts_with("B200")) gpu.die = "GB100";
  if (id.starts_with("V100")) gpu.die = "GV100";
  if (gpu.sm_count == 0) throw InputError({"GPU " + id, "is unknown", "use one of the tests'"});
  return gpu;
}

/// A linear layer: m tokens, n outputs, k inputs; compulsory traffic of 2-byte elements.
inline Kernel half_product(std::int64_t m, std::int64_t n, std::int64_t k,
                           Precision precision = Precision::bf16) {
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.precision = precision;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = Flops(2.0 * static_cast<double>(m * n) * static_cast<double>(k));
  kernel.bytes_read = Bytes(2 * (m * k + k * n));
  kernel.bytes_written = Bytes(2 * m * n);
  return kernel;
}

/// Plausible parameters that no fit made.
inline TensorParameters<double> plausible_parameters() {
  return {
      .prologue = 200,
      .split_seconds = 2.5e-6,
      .norm = 3.5,
      .l2_centre = -0.9,
      .l2_slope = 0.5,
      .l2_gain = 0.7,
      .penalty = {0.01, 0.02, 0.06, 0.2, 0.3, 0.3, 0.3, 0.4, 0.4, 0.45, 0.5, 0.8, 1.0, 1.6, 1.7}};
}

/// Weights of two measured GPUs, A100 with two libraries.
inline TensorWeights plausible_weights() {
  TensorWeights weights{.file = "made up", .shared = plausible_parameters(), .gpus = {}};
  weights.range = {1, 32768, 65536, 65536};
  weights.gpus = {{.gpu = "A100-SXM4-80GB",
                   .die = "GA100",
                   .architecture = Architecture::ampere,
                   .watts_per_flops = 400 / 312e12,
                   .effect = {0.10, 0.19, 0.11, 0.03},
                   .stack_spread = 0.04,
                   .long_spread = 0.07,
                   .short_spread = 0.11,
                   .stacks = {{"new", Precision::bf16, 90000, {0.8, 2.6e-6, -0.05, 0.01}},
                              {"old", Precision::fp16, 10000, {0.4, 1.1e-6, 0.09, -0.01}}}},
                  {.gpu = "H100-SXM5-80GB",
                   .die = "GH100",
                   .architecture = Architecture::hopper,
                   .watts_per_flops = 700 / 989.4e12,
                   .effect = {0.03, 0.06, 0.17, 0.09},
                   .stack_spread = 0.02,
                   .long_spread = 0.06,
                   .short_spread = 0.08,
                   .stacks = {{"only", Precision::bf16, 70000, {0.15, 2.3e-6, 0, 0}}}}};
  return weights;
}

}  // namespace tessera

#include "predictor/gpu/gpu_support.h"

#include <string>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

bool has_tensor_peak(const GpuSpec& gpu, Precision precision) {
  const bool floating = precision == Precision::tf32 || precision == Precision::bf16 ||
                        precision == Precision::fp16 || precision == Precision::fp8 ||
                        precision == Precision::fp4;
  return floating && gpu.architecture != Architecture::pascal && gpu.peak(precision).value() > 0;
}

/// "fp32, fp16": what products may be computed in instead.
std::string supported_products(const GpuSpec& gpu) {
  std::string names;
  for (const Precision precision : kAllPrecisions)
    if (supports_products(gpu, precision))
      names += (names.empty() ? "" : ", ") + std::string(name_of(precision));
  return names;
}

bool runs_fused_attention(const GpuSpec& gpu) {
  return gpu.architecture >= Architecture::ampere && gpu.architecture < Architecture::cdna1 &&
         gpu.vendor != "AMD";
}

}  // namespace

bool supports_products(const GpuSpec& gpu, Precision precision) {
  return precision == Precision::fp32 || has_tensor_peak(gpu, precision);
}

bool has_tensor_memory(const GpuSpec& gpu) {
  const std::string& version = gpu.compute_capability;
  return version.starts_with("10.") || version.starts_with("11.");
}

void require_products(const GpuSpec& gpu, Precision precision) {
  if (supports_products(gpu, precision)) return;
  if (precision == Precision::int8 && gpu.int8.value() > 0)
    throw InputError({.where = "GPU " + gpu.id,
                      .what = "multiplies int8, but a single product in it is not modelled",
                      .hint = "tessera predict --kernels reads tables of them, casts included; or "
                              "compute in one of " +
                              supported_products(gpu)});
  throw InputError(
      {.where = "GPU " + gpu.id,
       .what = "has no tensor cores for matrix products in " + std::string(name_of(precision)) +
               ", or states no dense peak",
       .hint = "compute them in one of " + supported_products(gpu) + ", or choose another GPU"});
}

Precision usual_precision(const GpuSpec& gpu) {
  if (supports_products(gpu, Precision::bf16)) return Precision::bf16;
  return supports_products(gpu, Precision::fp16) ? Precision::fp16 : Precision::fp32;
}

bool supports(const GpuSpec& gpu, AttentionImplementation implementation) {
  if (implementation == AttentionImplementation::flash3)
    return gpu.architecture == Architecture::hopper;
  return runs_fused_attention(gpu);
}

void require(const GpuSpec& gpu, AttentionImplementation implementation) {
  if (supports(gpu, implementation)) return;
  if (runs_fused_attention(gpu))
    throw InputError({.where = "GPU " + gpu.id,
                      .what = "does not run " + std::string(name_of(implementation)),
                      .hint = "it needs Hopper; choose flash2 or cudnn"});
  throw InputError({.where = "GPU " + gpu.id,
                    .what = "has no fused attention of " + std::string(name_of(implementation)),
                    .hint = "it needs compute capability 8.0; model attention unfused"});
}

std::optional<AttentionImplementation> fastest_implementation(const GpuSpec& gpu) {
  if (!runs_fused_attention(gpu)) return std::nullopt;
  if (gpu.architecture == Architecture::hopper) return AttentionImplementation::flash3;
  return gpu.architecture > Architecture::hopper ? AttentionImplementation::cudnn
                                                 : AttentionImplementation::flash2;
}

}  // namespace tessera

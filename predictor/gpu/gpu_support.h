#pragma once

#include <optional>

#include "hw/gpu.h"
#include "hw/units/precision.h"
#include "workloads/program/attention.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// Matrix products and convolutions: `Kernel::precision` is that of their arithmetic.
constexpr bool is_product(KernelKind kind) {
  return kind == KernelKind::gemm || kind == KernelKind::batched_gemm ||
         kind == KernelKind::grouped_gemm || kind == KernelKind::convolution;
}

/// Whether products in `precision` are predicted on `gpu`: fp32 everywhere, others on tensor cores
/// with a published dense peak.
bool supports_products(const GpuSpec& gpu, Precision precision);
/// Throws InputError naming the GPU, the precision and those that it has instead.
void require_products(const GpuSpec& gpu, Precision precision);
/// What people train in on `gpu`: bf16, where it has none fp16, else fp32.
Precision usual_precision(const GpuSpec& gpu);

/// Products that read and write tensor memory: Blackwell for data centers, 10.0 and 10.3, and for
/// machines, 11.0. Its graphics cards, 12.0, have instructions like Ada's.
bool has_tensor_memory(const GpuSpec& gpu);

/// Fused attention needs compute capability 8.0, FlashAttention-3 needs Hopper.
bool supports(const GpuSpec& gpu, AttentionImplementation implementation);
/// Throws InputError naming the GPU, the implementation and what to choose instead.
void require(const GpuSpec& gpu, AttentionImplementation implementation);
/// What a framework with current libraries would run: Hopper FlashAttention-3, Ampere and Ada
/// FlashAttention-2, Blackwell cuDNN; empty for older GPUs and those of other vendors.
std::optional<AttentionImplementation> fastest_implementation(const GpuSpec& gpu);

}  // namespace tessera

#include "predictor/attention/kernel_generation.h"

namespace tessera {
namespace {

/// Elements of 16 bits that one tensor instruction contracts.
constexpr int kContracted = 16;

// FLOPs of 16-bit operands per clock and SM (configs/hw/gpus).
constexpr double kA100PerClock = 2048, kHopperPerClock = 4096, kBlackwellPerClock = 8192;

bool has_tensor_memory(const GpuSpec& gpu) {
  return gpu.compute_capability.starts_with("10.");
}

}  // namespace

bool runs_earlier_instructions(const AttentionCall& call, const GpuSpec& gpu) {
  using enum AttentionImplementation;
  if (!has_tensor_memory(gpu)) return false;
  if (call.implementation == trtllm) return call.head_dim % kContracted != 0;
  return call.implementation == flash2 || call.implementation == flash1;
}

double share_of_earlier_instructions(bool hopper) {
  return (hopper ? kHopperPerClock : kA100PerClock) / kBlackwellPerClock;
}

double padding_of(const AttentionCall& call, bool hopper, const GpuSpec& gpu, double fitted) {
  if (call.implementation != AttentionImplementation::trtllm) return fitted;
  if (has_tensor_memory(gpu) && call.head_dim % kContracted == 0) return 0;
  return hopper ? fitted : 1;
}

}  // namespace tessera

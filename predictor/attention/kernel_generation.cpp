#include "predictor/attention/kernel_generation.h"

#include <algorithm>

#include "predictor/attention/attention_shape.h"
#include "predictor/gpu/gpu_support.h"

namespace tessera {
namespace {

/// Elements of 16 bits that one tensor instruction contracts.
constexpr int kContracted = 16;

// FLOPs of 16-bit operands per clock and SM (configs/hw/gpus).
constexpr double kA100PerClock = 2048, kHopperPerClock = 4096, kBlackwellPerClock = 8192;

/// Of the way to the next size that `built_head_dim` knows, of which 64 is the smallest:
/// FlashAttention-2 has kernels for heads of 32 too (static_switch.h; recalled).
double padding_to_built(std::int64_t head_dim) {
  constexpr double kSmallest = 32, kNext = 64;
  const auto size = static_cast<double>(head_dim);
  return size > kSmallest ? 1 : (kSmallest - size) / (kNext - size);
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

AttentionCall as_multiplied(AttentionCall call) {
  if (takes_one_head_size(call.implementation))
    call.value_dim = std::max(call.head_dim, call.value_dim);
  return call;
}

bool takes_one_head_size(AttentionImplementation implementation) {
  return implementation == AttentionImplementation::flash1 ||
         implementation == AttentionImplementation::flash2;
}

double padding_of(const AttentionCall& call, bool hopper, const GpuSpec& gpu, double fitted) {
  if (takes_one_head_size(call.implementation)) return padding_to_built(call.head_dim);
  if (call.implementation != AttentionImplementation::trtllm) return fitted;
  if (has_tensor_memory(gpu) && call.head_dim % kContracted == 0) return 0;
  return hopper ? fitted : 1;
}

double most_queries_of_block(const AttentionCall& call, const GpuSpec& gpu,
                             std::string_view stack) {
  using enum AttentionImplementation;
  constexpr int kSmall = 64, kLarge = 256;
  const bool little_memory = gpu.compute_capability == "8.6" || gpu.compute_capability == "8.9";
  const auto says = [&](std::string_view word) { return stack.find(word) != stack.npos; };
  if (little_memory && call.implementation == trtllm) return kSmall;
  if (!little_memory || call.implementation != flash2) return kMostBlockQueries;
  if (says("flashinfer")) return call.head_dim < kLarge ? kMostBlockQueries : kSmall;
  const bool square = call.causal && call.head_dim > kSmall;
  return square || says("triton") ? kSmall : kMostBlockQueries;
}

}  // namespace tessera

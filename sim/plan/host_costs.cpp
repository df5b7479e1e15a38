#include "sim/plan/host_costs.h"

namespace tessera {
namespace {

// Whole-layer host time of PyTorch eager mode, divided by the layer's calls: GPT-2 of Hugging Face,
// 30 kernels and about 40 views in 0.35 ms; Megatron's local layer is about the same.
constexpr Seconds kEagerCall = 5_us;
// A compiled graph launches from generated code, without the dispatcher: 3-5 us a kernel.
constexpr Seconds kCompiledCall = 4_us;
// One NCCL call through torch.distributed: 15-30 us.
constexpr Seconds kCommunicationCall = 20_us;

}  // namespace

HostCosts host_costs(KernelMode kernels) {
  return {.per_call = kernels == KernelMode::fused ? kCompiledCall : kEagerCall,
          .per_communication = kCommunicationCall};
}

}  // namespace tessera

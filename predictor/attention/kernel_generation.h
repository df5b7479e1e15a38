#pragma once

#include <string_view>

#include "hw/gpu.h"
#include "workloads/program/attention.h"

namespace tessera {

/// Whether the kernel of `call` runs on `gpu` with the tensor instructions of an earlier
/// generation, mma.sync: on data centre GPUs of Blackwell, whose own (tcgen05) read and write
/// tensor memory, FlashAttention-2 and kernels in Triton's manner, which were never written for
/// them, and TensorRT-LLM's where heads are no multiple of the 16 elements that one instruction
/// contracts: its kernels for Blackwell have none (both recalled).
bool runs_earlier_instructions(const AttentionCall& call, const GpuSpec& gpu);

/// Of Blackwell's peak, what those instructions reach at the same clock: as much as an SM of the
/// GPU that their kernel was timed on, of Hopper (`hopper`) or A100.
double share_of_earlier_instructions(bool hopper);

/// FlashAttention of 2022 and FlashAttention-2 have kernels for one head size of Q, K and V, which
/// they multiply whole (csrc/flash_attn/flash_api.cpp, mha_fwd and mha_bwd, static_switch.h;
/// recalled).
bool takes_one_head_size(AttentionImplementation implementation);

/// `call` with the sizes that are multiplied: who calls those kernels (vLLM among them) fills V
/// with zeros to the size of Q.
AttentionCall as_multiplied(AttentionCall call);

/// How far a kernel on `gpu`, which was not timed, pads heads to the next size that is built: in
/// full where it takes one size, `fitted` where it was timed on another GPU, of Hopper (`hopper`)
/// or A100, but TensorRT-LLM's for Blackwell are built for multiples of 16, and of its kernels for
/// A100, timed with heads of 128 alone, those of H100 and L40S tell: heads of 72 take as long as
/// of 80.
double padding_of(const AttentionCall& call, bool hopper, const GpuSpec& gpu, double fitted);

/// Most queries of a thread block on `gpu`, which was not timed, run by `stack` (empty: training).
/// SMs with 100 KB of shared memory (compute capability 8.6 and 8.9) have blocks of 64 in
/// FlashAttention-2 where a causal mask meets heads over 64 (flash_fwd_launch_template.h), in
/// Triton's kernels (SGLang's extend_attention.py) and in TensorRT-LLM's of that time (fmha_v2);
/// FlashInfer keeps 128 below heads of 256 (`FA2DetermineCtaTileQ`; all recalled).
double most_queries_of_block(const AttentionCall& call, const GpuSpec& gpu, std::string_view stack);

}  // namespace tessera

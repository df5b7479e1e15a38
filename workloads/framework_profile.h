#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "workloads/data_parallel.h"
#include "workloads/mixed_precision.h"

namespace tessera {

/// Whose modules a model is made of.
enum class ModuleTree : std::uint8_t {
  hugging_face,  ///< transformers 4.35: activations [b, s, h], one GPU per replica
  megatron,      ///< Megatron-Core r0.5.0: activations [s, b, h], tensor and pipeline parallel
};

enum class KernelMode : std::uint8_t {
  eager,
  fused,  ///< chains of pointwise kernels and their reductions merge, as torch.compile does
};

enum class AttentionKernels : std::uint8_t {
  unfused,             ///< products, scale, mask, softmax and dropout are kernels of their own
  fused_softmax,       ///< scale, causal mask and softmax are one kernel (16 bit only)
  flash2,              ///< FlashAttention-2
  flash3,              ///< FlashAttention-3, Hopper only
  cudnn,               ///< cuDNN's fused attention
  transformer_engine,  ///< cuDNN from Hopper on, else FlashAttention-2
  flash1,              ///< FlashAttention of 2022 and its Triton form
};

/// How operands of products in FP8 are scaled to its range.
enum class Fp8Scaling : std::uint8_t {
  delayed,  ///< by the largest values of earlier steps: one cast per matrix (Transformer Engine)
  current,  ///< by its own largest value, which a kernel finds first (torchao's Float8Linear,
            ///< Transformer Engine's Float8CurrentScaling)
  none,     ///< the framework has no such products
  mxfp8,    ///< every 32 numbers by one of their own, which the casting kernel finds (Transformer
            ///< Engine's MXFP8BlockScaling, on Blackwell); its 1/32 byte a number is not counted
};

/// What the host launches as one CUDA graph.
enum class CudaGraphs : std::uint8_t {
  off,
  layers,          ///< a layer's kernels between two communications (Transformer Engine's graphs of
                   ///< callables, Megatron's --cuda-graph-impl local): one call for all of them
  full_iteration,  ///< forward and backward of a whole step
};

/// How tokens travel to the ranks of their experts. Sources: Megatron-Core
/// transformer/moe/{token_dispatcher,fused_a2a}.py; DeepSeek-AI, DeepEP.
enum class ExpertDispatcher : std::uint8_t {
  all_to_all,        ///< once for each of its experts, by NCCL
  deepep,            ///< once for each node with one of them, then once for each GPU over NVLink
  hybridep,          ///< likewise, with fewer multiprocessors
  all_to_all_fused,  ///< as all_to_all, with kernels of Transformer Engine that put tokens in order
};
/// Not once for each of its experts.
constexpr bool sends_tokens_once(ExpertDispatcher dispatcher) {
  return dispatcher == ExpertDispatcher::deepep || dispatcher == ExpertDispatcher::hybridep;
}

/// Megatron's loss over words. Sources: Megatron-Core fusions/fused_cross_entropy.py; Transformer
/// Engine pytorch/triton/cross_entropy.py.
enum class LossFusion : std::uint8_t {
  separate,  ///< operators over fp32 logits
  native,    ///< compiled pieces over fp32 logits
  te,        ///< two kernels, which leave the gradient where the 16-bit logits were
};

/// What `recompute: selective` runs again in backward.
enum class SelectiveRecompute : std::uint8_t {
  core_attention,  ///< softmax(q k^T) v (Megatron)
  operators,       ///< all but fused attention and every second matrix product (torchtitan)
};

/// How tensor-parallel ranks share a model of Hugging Face's modules.
enum class TensorPlan : std::uint8_t {
  whole,       ///< not at all
  sequence,    ///< torchtitan's parallelize_llama: parts of the sequence between split layers
  replicated,  ///< transformers' tp_plan, DeepSpeed's AutoTP: whole activations between them
};

/// Which kernels a framework launches for the same mathematics, in which formats it keeps what the
/// optimizer needs, and what its host side costs. Shipped ones: configs/frameworks/.
struct FrameworkProfile {
  std::string name;
  ModuleTree modules = ModuleTree::hugging_face;
  KernelMode kernels = KernelMode::eager;
  AttentionKernels attention = AttentionKernels::unfused;
  SelectiveRecompute selective = SelectiveRecompute::core_attention;
  Fp8Scaling fp8_scaling = Fp8Scaling::delayed;
  bool fp8_transposes = true;  ///< products of matrices with one FP8 scale read both by rows alone,
                               ///< so that casts write a second, turned copy (choose_casts())
  CudaGraphs cuda_graphs = CudaGraphs::off;
  ExpertDispatcher expert_dispatcher = ExpertDispatcher::all_to_all;
  bool overlap_experts = false;            ///< a micro-batch's exchanges of experts run beside the
                                           ///< kernels of another (StageProgram::run_together)
  bool weights_in_activation = false;      ///< a token's weights multiply the activations of its
                                           ///< experts; else their results, which backward keeps
  bool products_per_expert = false;        ///< the host launches a product for every expert
  bool expert_bias_apart = false;          ///< kernels of their own add experts' biases, one by one
  std::vector<std::string> graph_modules;  ///< of a layer that a graph holds; none: all
  int bf16_layers_first = 0;  ///< so many layers multiply in bf16 where others do in fp8 or nvfp4
  int bf16_layers_last = 0;
  bool attention_copies = false;  ///< q, k, v and the output are copied into the kernel's layout
  bool fused_norm = false;        ///< RMS norm is one kernel (layer norm always is)
  bool fused_rope = false;        ///< rotary embedding is one kernel per tensor
  bool fused_gate = false;        ///< a gated activation is one kernel
  bool bias_epilogue = true;      ///< a linear layer's bias is added by the product's kernel
  bool fp32_logits = false;       ///< logits are cast to fp32 ahead of the loss
  LossFusion loss_fusion = LossFusion::separate;
  bool fused_router = false;          ///< scores and choice of experts are one kernel each way
  bool loss_in_place = false;         ///< the loss overwrites its fp32 logits
  bool transformer_engine = false;    ///< its products hold a workspace of their own, and unfused
                                      ///< attention no buffer for the product's unread input
  bool deterministic = false;         ///< torch.use_deterministic_algorithms, which wants
                                      ///< CUBLAS_WORKSPACE_CONFIG=:4096:8
  bool products_accumulate = false;   ///< the weight-gradient product adds to the gradient buffer
                                      ///< itself (beta = 1); else a kernel does
  bool gradients_set_to_none = true;  ///< zero_grad frees; else the buffers are filled with zeros
  bool always_average = false;   ///< gradients are divided by the data-parallel size even where it
                                 ///< is 1
  bool fused_optimizer = false;  ///< one pass (torch's fused=True, apex FusedAdam); else torch's
                                 ///< foreach, one pass per line of the update rule
  bool keeps_sent = false;  ///< what a pipeline stage sent stays until the micro-batch's backward
                            ///< pass has ended (DeepSpeed: pipe_buffers["outputs"])
  bool deepspeed_zero = false;  ///< ZeRO-1 keeps DeepSpeed's copies of gradients (sharding.h)
  bool planned_memory = false;  ///< a compiler lays memory out ahead of the step: nothing is cached
  bool overlap_p2p = true;  ///< interleaved pipelines transfer beside computation; else the host
                            ///< waits for every exchange between stages
  bool overlap_tensor_gradients = true;  ///< the all-reduce of a column-split layer's data gradient
                                         ///< runs beside its weight gradient; else behind it
  bool overlap_tensor_products = false;  ///< parts of the sequence are gathered and scattered chunk
                                         ///< by chunk beside the products of split layers
  bool own_rows_first = false;  ///< a rank multiplies the rows that it holds while the others' are
                                ///< gathered, and those behind the gather (nanotron)
  bool scatter_embedding = false;   ///< with sequence parallelism a split embedding's rows are
                                    ///< reduce-scattered; else all-reduced, and each takes its part
  bool packed_attention = false;    ///< workloads/families/packed_attention.cpp (nanotron)
  bool python_functions = false;    ///< norms, rotary embeddings, fused attention and split layers
                                    ///< are autograd functions in Python (ops/python_calls.h)
  bool average_in_sum = false;      ///< the collective that sums gradients divides them
  bool per_tensor_updates = false;  ///< gradient norm, clipping and the cast of master weights are
                                    ///< a kernel per parameter; else passes over lists
  bool split_by_cost = false;       ///< pipeline stages are filled up to their share of the model's
                                    ///< products (workloads/parallel/cost_split.h)
  bool fills_past_share = false;    ///< and past a share that they meet exactly
  int message_headers = 0;  ///< messages ahead of every tensor between stages that the receiver's
                            ///< host reads
  bool sends_mask = false;  ///< the attention mask travels beside the activations
  int vocabulary_multiple = 128;  ///< Megatron's modules pad the vocabulary to a multiple of it for
                                  ///< each tensor-parallel rank
  TensorPlan tensor_plan = TensorPlan::whole;
  bool splits_stages = false;     ///< Hugging Face's modules are cut into pipeline stages
  bool splits_sequences = false;  ///< context-parallel ranks share sequences, and attend part by
                                  ///< part (PyTorch's context_parallel)
  bool complex_rope = false;      ///< rotary embedding multiplies complex numbers, between casts
  bool compiled_loss = false;     ///< the loss is one compiled function of 16-bit logits
  bool keeps_outputs = false;     ///< the last stage holds every micro-batch's logits until the
                                  ///< schedule has ended (torch.distributed.pipelining)
  bool copies_gathered = false;   ///< gathered weights are copied out of their buffer (FSDP2)
  bool gradients_join_in_place = false;  ///< of gradients that meet, the second is added to the
                                         ///< first where nobody else holds it (PyTorch 2.0)
  bool keeps_logits = true;              ///< the training loop holds logits through backward
  bool reentrant_checkpoints = false;    ///< torch.utils.checkpoint's reentrant form
  bool shifts_labels = false;            ///< the last position's logits are dropped by a copy
  bool keeps_gathered = false;     ///< with `own_rows_first`: backward keeps the gathered rows
  bool records_streams = false;    ///< what a collective read or wrote and is freed is given to
                                   ///< others behind the collective's end (memory/launch_times.h)
  bool blocking_messages = false;  ///< with `records_streams`: hosts wait for messages of stages
  bool gathers_lists = false;  ///< ZeRO-1 gathers updated parameters as lists of their parts, each
                               ///< of which is flattened and copied back (update_gathers.h)
  bool moments_at_update =
      false;                   ///< Adam's moments are made by the first update, from memory that
                               ///< the passes of the first step have given back (torch.optim)
  bool bucket_copies = false;  ///< replicas hold gradients again in buckets of DDP
  bool channels_last = false;  ///< images lie as convolutions on tensor cores take them
  bool mask_buffers = true;    ///< layers of family gpt2 hold a causal mask over all positions
  /// CUDA_DEVICE_MAX_CONNECTIONS. 1: the streams of a GPU share one hardware queue, and kernels
  /// start in the order of their launches; more: every stream has a queue of its own.
  int cuda_device_max_connections = 8;
  MixedPrecision bf16{Precision::bf16, Precision::bf16, Precision::bf16, Precision::bf16, false};
  MixedPrecision fp16{Precision::fp32, Precision::fp32, Precision::fp32, Precision::fp32, false};
  Bytes context{900LL << 20};    ///< of CUDA with all kernels loaded (PyTorch 2.1)
  DataParallel data_parallel;    ///< where a scenario does not choose otherwise
  Seconds host_per_call = 5_us;  ///< one framework call, Python and dispatcher; views cost it too
  Seconds host_per_compiled_call = 4_us;   ///< one launch from compiled code
  Seconds host_per_communication = 20_us;  ///< one collective or message call

  /// Formats of a step that computes in `precision`; FP8 keeps what bf16 keeps.
  MixedPrecision formats(Precision precision) const {
    const Precision activations = activation_precision(precision);
    if (activations == Precision::bf16) return bf16;
    return activations == Precision::fp16 ? fp16 : MixedPrecision{};
  }
};

}  // namespace tessera

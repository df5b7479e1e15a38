#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/precision.h"
#include "workloads/framework_profile.h"
#include "workloads/host_table.h"
#include "workloads/program/program.h"

namespace tessera {

enum class StepMode : std::uint8_t {
  training,          ///< the framework's whole step: forward, loss, backward, gradient reduction,
                     ///< clip-norm, optimizer
  forward_backward,  ///< forward and backward alone, gradients accumulating: no loss, no zero_grad,
                     ///< no optimizer (how NeuSight timed one GPU)
  inference,         ///< forward without dropout, nothing saved
};

/// Orders of micro-batches in a pipeline: workloads/schedules/schedule.h.
enum class PipelineSchedule : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved_1f1b,  ///< over `ParallelLayout::virtual_stages` model chunks per stage
  zb_h1,
  zb_h2,
  dualpipe,
  zbv,  ///< over two model chunks per stage, which lie in a V
};

enum class OptimizerKind : std::uint8_t {
  adam,
  none,
  sgd,        ///< with momentum and weight decay
  lamb,       ///< Adam scaled by the norms of every tensor and of its update (apex FusedLAMB)
  lars,       ///< SGD with momentum scaled by the norms of every tensor and of its gradient
  muon,       ///< momentum of the layers' matrices made orthogonal, Adam for the rest
  dist_muon,  ///< likewise; each replica updates whole tensors of its own and sends them to all
};
constexpr bool is_muon(OptimizerKind kind) {
  return kind == OptimizerKind::muon || kind == OptimizerKind::dist_muon;
}

/// Whether an update needs norms of whole tensors, which ranks must not divide then.
constexpr bool needs_tensor_norms(OptimizerKind kind) {
  return kind == OptimizerKind::lamb || kind == OptimizerKind::lars;
}

/// Which activations a transformer layer computes again in backward instead of keeping them.
enum class Recompute : std::uint8_t {
  none,
  selective,  ///< core attention: everything between the projections (Korthikanti et al., 2022)
  full,       ///< the whole layer; its input alone is kept
};

/// How the ranks of a context group, which hold parts of each sequence, attend to all of it.
enum class ContextAttention : std::uint8_t {
  ring,        ///< keys and values go round beside the attention of the part that is there
  all_gather,  ///< keys and values are gathered first
  ulysses,     ///< an all-to-all trades parts of the sequence for parts of the heads, and back
};

/// How layers are spread over pipeline stages, and micro-batches over replicas; by default evenly.
struct StageSplit {
  /// Of every model chunk in the order of the model: pipeline * virtual_stages numbers.
  std::vector<int> layers_per_stage;
  int first_stage_layers = 0;  ///< of all chunks of the first stage; 0: like the others
  int last_stage_layers = 0;
  bool embedding_as_layer = false;             ///< the embedding takes the place of a layer
  bool head_as_layer = false;                  ///< likewise head and loss
  std::vector<int> micro_batches_per_replica;  ///< of every one; empty: equal
};

/// Linear layers that low-rank adapters stand beside.
enum class LoraTargets : std::uint8_t {
  all,        ///< attention and feed-forward, experts not
  attention,  ///< queries, keys, values and output
};

/// How frozen weights of linear layers are held. Dettmers et al., "QLoRA", 2023.
enum class BaseWeights : std::uint8_t {
  as_parameters,
  nf4,               ///< 4 bits, and a scale in fp32 for every 64 (bitsandbytes)
  nf4_double_quant,  ///< scales in 8 bits with one in fp32 for every 256
};

/// What is run for one step.
struct StepOptions {
  StepMode mode = StepMode::training;
  FrameworkProfile framework;
  KernelMode kernels = KernelMode::eager;
  Precision precision = Precision::fp32;  ///< of matrix products
  MixedPrecision formats;                 ///< of parameters, gradients and optimizer states
  Recompute recompute = Recompute::none;
  std::vector<std::string> recompute_modules;  ///< of `selective`; none: the framework's choice
  int recompute_layers = 0;         ///< of `full`: the first ones of every model chunk; 0: all
  int offload_layers = 0;           ///< the first ones: what they saved waits in host memory
  bool offload_optimizer = false;   ///< the CPU updates (DeepSpeed's ZeRO-Offload): host_update.h
  bool offload_parameters = false;  ///< and keeps the weights, which units fetch: unit_gathers.h
  double expert_imbalance = 1;      ///< tokens of the busiest expert over the mean
  std::int64_t sequence_length = 0;
  double mean_document = 0;           ///< of documents that are packed into a sequence; tokens
  double longest_document = 0;        ///< of them; 0: all are equally long
  std::int64_t micro_batch = 0;       ///< sequences per micro-batch and data-parallel rank
  std::int64_t global_batch = 0;      ///< sequences per step, of all replicas
  double expert_capacity_factor = 0;  ///< an expert takes so many times the mean number of tokens
                                      ///< at most, and its buffers have that size; 0: no limit
  ParallelLayout layout;
  DataParallel data_parallel;  ///< buckets, overlap, sharding
  StageSplit split;
  ContextAttention context_attention = ContextAttention::ring;
  std::vector<int> placement;  ///< GPU of each rank; empty: the first ones of the cluster in order
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  OptimizerKind optimizer = OptimizerKind::adam;
  bool clip_gradients = true;
  std::int64_t lora_rank = 0;  ///< > 0: adapters of this rank are trained, and nothing else
  LoraTargets lora_targets = LoraTargets::all;
  std::vector<std::string> lora_modules;  ///< transformers' names (q_proj), each with an adapter of
                                          ///< its own; none: as lora_targets says
  BaseWeights base_weights = BaseWeights::as_parameters;  ///< of frozen linear layers
  bool dora = false;  ///< adapters turn weights, and a trained number per output stretches them
  HostTable host;     ///< measured; where it has nothing the framework profile's figures hold
  bool segment_per_call = false;  ///< a segment for every kernel, for what tells kernels apart

  /// Whether backward runs `module` again (Megatron's --recompute-modules).
  bool recomputes(std::string_view module) const {
    return recompute == Recompute::selective &&
           std::ranges::find(recompute_modules, module) != recompute_modules.end();
  }

  /// Of a replica; of the one with most where they differ.
  std::int64_t micro_batches() const {
    const std::vector<int>& uneven = split.micro_batches_per_replica;
    return uneven.empty() ? global_batch / (micro_batch * layout.data)
                          : *std::ranges::max_element(uneven);
  }
};

/// `step` with `count` micro-batches for each replica.
inline StepOptions with_micro_batches(StepOptions step, std::int64_t count) {
  step.global_batch = step.micro_batch * step.layout.data * count;
  step.split.micro_batches_per_replica.clear();
  return step;
}

}  // namespace tessera

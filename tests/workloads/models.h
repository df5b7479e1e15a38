#pragma once

#include "workloads/model_spec.h"
#include "workloads/step_options.h"

namespace tessera::test {

// Dimensions from the published configurations.

inline ModelSpec gpt2_large() {
  ModelSpec model;
  model.name = "gpt2-large";
  model.family = ModelFamily::gpt2;
  model.layers = 36;
  model.hidden = 1280;
  model.heads = model.kv_heads = 20;
  model.head_dim = 64;
  model.ffn = 5120;
  model.vocab = 50257;
  model.max_positions = 1024;
  return model;
}

inline ModelSpec gpt3_175b() {
  ModelSpec model = gpt2_large();
  model.name = "gpt3-175b";
  model.layers = 96;
  model.hidden = 12288;
  model.heads = model.kv_heads = 96;
  model.head_dim = 128;
  model.ffn = 4 * 12288;
  model.max_positions = 2048;
  return model;
}

inline ModelSpec bert_large() {
  ModelSpec model = gpt2_large();
  model.name = "bert-large";
  model.family = ModelFamily::bert;
  model.layers = 24;
  model.hidden = 1024;
  model.heads = model.kv_heads = 16;
  model.ffn = 4096;
  model.vocab = 30522;
  model.max_positions = 512;
  model.token_types = 2;
  model.activation = Activation::gelu;
  return model;
}

inline ModelSpec opt_1_3b() {
  ModelSpec model = gpt2_large();
  model.name = "opt-1.3b";
  model.family = ModelFamily::opt;
  model.layers = 24;
  model.hidden = 2048;
  model.heads = model.kv_heads = 32;
  model.ffn = 8192;
  model.vocab = 50272;
  model.max_positions = 2048;
  model.activation = Activation::relu;
  model.attention_dropout = 0;
  return model;
}

inline ModelSpec llama2_7b() {
  ModelSpec model;
  model.name = "llama-2-7b";
  model.family = ModelFamily::llama;
  model.layers = 32;
  model.hidden = 4096;
  model.heads = model.kv_heads = 32;
  model.head_dim = 128;
  model.ffn = 11008;
  model.vocab = 32000;
  model.activation = Activation::swiglu;
  model.hidden_dropout = model.attention_dropout = 0;
  model.tied_embeddings = false;
  return model;
}

inline ModelSpec bloom_176b() {
  ModelSpec model;
  model.name = "bloom-176b";
  model.family = ModelFamily::bloom;
  model.layers = 70;
  model.hidden = 14336;
  model.heads = model.kv_heads = 112;
  model.head_dim = 128;
  model.ffn = 4 * 14336;
  model.vocab = 250880;
  model.hidden_dropout = model.attention_dropout = 0;
  return model;
}

inline ModelSpec mpt_7b() {
  ModelSpec model;
  model.name = "mpt-7b";
  model.family = ModelFamily::mpt;
  model.layers = 32;
  model.hidden = 4096;
  model.heads = model.kv_heads = 32;
  model.head_dim = 128;
  model.ffn = 4 * 4096;
  model.vocab = 50432;
  model.activation = Activation::gelu;
  model.hidden_dropout = model.attention_dropout = 0;
  return model;
}

/// The 4-expert model of NeuSight's measurements.
inline ModelSpec switch_xl4() {
  ModelSpec model;
  model.name = "switch-xl4";
  model.family = ModelFamily::switch_transformer;
  model.layers = model.encoder_layers = 24;
  model.hidden = 1024;
  model.heads = model.kv_heads = 32;
  model.head_dim = 128;
  model.ffn = 16384;
  model.vocab = 32128;
  model.activation = Activation::relu;
  model.experts = 4;
  model.expert_capacity = 64;
  model.moe_every = 2;
  return model;
}

// Framework profiles as configs/frameworks/ describes them; FrameworkProfiles.AreTheShippedOnes
// holds the two together.

inline FrameworkProfile hf_eager() {
  FrameworkProfile profile;
  profile.name = "hf-eager";
  profile.tensor_plan = TensorPlan::replicated;
  profile.shifts_labels = profile.reentrant_checkpoints = true;
  profile.gradients_join_in_place = true;
  profile.data_parallel.overlap_gradients = true;
  return profile;
}

/// Weights in `parameters` beside fp32 ones of the optimizer; ranks sum gradients as they are held.
inline MixedPrecision with_masters(Precision parameters, Precision gradients) {
  return {.parameters = parameters,
          .gradients = gradients,
          .reduce = gradients,
          .optimizer_states = Precision::fp32,
          .master_weights = true};
}

/// In fp32, or with `choose_attention` not applied: its softmax is unfused.
inline FrameworkProfile megatron_local() {
  FrameworkProfile profile;
  profile.name = "megatron-local";
  profile.modules = ModuleTree::megatron;
  profile.bias_epilogue = false;
  profile.gradients_set_to_none = false;
  profile.always_average = true;
  profile.fused_optimizer = true;
  profile.cuda_device_max_connections = 1;
  profile.bf16 = with_masters(Precision::bf16, Precision::fp32);
  profile.fp16 = with_masters(Precision::fp16, Precision::fp16);
  return profile;
}

/// Transformer Engine's kernels with FlashAttention-2.
inline FrameworkProfile megatron() {
  FrameworkProfile profile = megatron_local();
  profile.name = "megatron";
  profile.attention = AttentionKernels::flash2;
  profile.attention_copies = true;
  profile.bias_epilogue = true;
  profile.fused_norm = profile.fused_rope = profile.fused_gate = true;
  profile.loss_in_place = true;
  profile.transformer_engine = true;
  profile.products_accumulate = true;
  profile.data_parallel.bucket = profile.data_parallel.first_bucket = Bytes(160'000'000);
  profile.data_parallel.bucket_per_replica = Bytes(4'000'000);
  profile.fp16 = with_masters(Precision::fp16, Precision::fp32);
  profile.host_per_call = 6_us;
  return profile;
}

/// FSDP's modules and formats with FlashAttention-2.
inline FrameworkProfile fsdp() {
  FrameworkProfile profile;
  profile.name = "fsdp";
  profile.tensor_plan = TensorPlan::replicated;
  profile.gradients_join_in_place = true;
  profile.data_parallel.sharding = Sharding::parameters;
  profile.data_parallel.overlap_gradients = true;
  profile.attention = AttentionKernels::flash2;
  profile.fp32_logits = true;
  profile.fused_optimizer = true;
  profile.bf16 = {};
  return profile;
}

inline FrameworkProfile torchtitan() {
  FrameworkProfile profile = fsdp();
  profile.name = "torchtitan";
  profile.fp8_scaling = Fp8Scaling::current;
  profile.selective = SelectiveRecompute::operators;
  profile.tensor_plan = TensorPlan::sequence;
  profile.splits_stages = profile.splits_sequences = profile.complex_rope = true;
  profile.copies_gathered = profile.keeps_sent = profile.keeps_outputs = true;
  profile.keeps_logits = false;
  return profile;
}

inline FrameworkProfile nanotron() {
  FrameworkProfile profile;
  profile.name = "nanotron";
  profile.modules = ModuleTree::megatron;
  profile.attention = AttentionKernels::flash2;
  profile.packed_attention = profile.fused_norm = profile.own_rows_first = true;
  profile.scatter_embedding = profile.average_in_sum = profile.fused_optimizer = true;
  profile.per_tensor_updates = profile.split_by_cost = profile.sends_mask = true;
  profile.python_functions = profile.gathers_lists = profile.moments_at_update = true;
  profile.records_streams = true;
  profile.gradients_set_to_none = profile.overlap_p2p = false;
  profile.message_headers = 2;
  profile.vocabulary_multiple = 1;
  profile.fp8_scaling = Fp8Scaling::none;
  profile.bf16 = with_masters(Precision::bf16, Precision::fp32);
  profile.fp16 = with_masters(Precision::fp16, Precision::fp32);
  profile.data_parallel.overlap_gradients = profile.data_parallel.whole_sums = true;
  profile.data_parallel.bucket = 50_MiB;
  profile.data_parallel.first_bucket = 2_MiB;
  profile.cuda_device_max_connections = 1;
  profile.host_per_call = 10.4_us;
  profile.host_per_communication = 35_us;
  return profile;
}

/// `step` in `precision`, with the formats of its framework.
inline StepOptions in(Precision precision, StepOptions step) {
  step.precision = precision;
  step.formats = step.framework.formats(precision);
  return step;
}

/// One GPU, one micro-batch.
inline StepOptions single_gpu(const FrameworkProfile& framework, StepMode mode, std::int64_t batch,
                              std::int64_t sequence) {
  StepOptions step;
  step.framework = framework;
  step.mode = mode;
  step.sequence_length = sequence;
  step.micro_batch = step.global_batch = batch;
  return step;
}

}  // namespace tessera::test

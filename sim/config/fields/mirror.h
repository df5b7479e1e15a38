#pragma once

#include "sim/config/fields/mirror_cluster.h"
#include "sim/scenario/scenario.h"
#include "workloads/model_spec.h"

namespace tessera {

// As in mirror_cluster.h.
void mirror(Of<ModelSpec> auto& model, auto&& visit) {
  visit("name", model.name);
  visit("family", model.family);
  visit("layers", model.layers);
  visit("encoder_layers", model.encoder_layers);
  visit("hidden", model.hidden);
  visit("heads", model.heads);
  visit("kv_heads", model.kv_heads);
  visit("head_dim", model.head_dim);
  visit("ffn", model.ffn);
  visit("vocab", model.vocab);
  visit("max_positions", model.max_positions);
  visit("token_types", model.token_types);
  visit("activation", model.activation);
  visit("hidden_dropout", model.hidden_dropout);
  visit("attention_dropout", model.attention_dropout);
  visit("tied_embeddings", model.tied_embeddings);
  visit("qk_norm", model.qk_norm);
  visit("qkv_bias", model.qkv_bias);
  visit("experts", model.experts);
  visit("expert_capacity", model.expert_capacity);
  visit("moe_every", model.moe_every);
  visit("experts_per_token", model.experts_per_token);
  visit("window", model.window);
  visit("full_every", model.full_every);
  visit("full_first", model.full_first);
  visit("attention_sinks", model.attention_sinks);
  visit("attention_softcap", model.attention_softcap);
  visit("logit_softcap", model.logit_softcap);
  visit("kv_rank", model.kv_rank);
  visit("q_rank", model.q_rank);
  visit("rope_dim", model.rope_dim);
  visit("v_head_dim", model.v_head_dim);
  visit("expert_ffn", model.expert_ffn);
  visit("shared_ffn", model.shared_ffn);
  visit("shared_gate", model.shared_gate);
  visit("dense_layers", model.dense_layers);
  visit("router_groups", model.router_groups);
  visit("router_sigmoid", model.router_sigmoid);
  visit("router_bias", model.router_bias);
  visit("expert_bias", model.expert_bias);
  visit("norm", model.norm);
  visit("norm_placement", model.norm_placement);
  visit("block_order", model.block_order);
  visit("qk_norm_wide", model.qk_norm_wide);
  visit("output_bias", model.output_bias);
  visit("mlp_bias", model.mlp_bias);
  visit("head_bias", model.head_bias);
  visit("embedding_scale", model.embedding_scale);
  visit("residual_scale", model.residual_scale);
  visit("logit_scale", model.logit_scale);
  visit("mtp_layers", model.mtp_layers);
  visit("layer_pattern", model.layer_pattern);
  visit("mamba_heads", model.mamba_heads);
  visit("mamba_head_dim", model.mamba_head_dim);
  visit("mamba_state", model.mamba_state);
  visit("mamba_groups", model.mamba_groups);
  visit("outputs", model.outputs);
  visit("architecture", model.architecture);
  visit("image_size", model.image_size);
  visit("classes", model.classes);
}

void mirror(Of<LaunchFloors> auto& floors, auto&& visit) {
  visit("linear", floors.linear);
  visit("batched", floors.batched);
  visit("elementwise", floors.elementwise);
  visit("softmax", floors.softmax);
  visit("layer_norm", floors.layer_norm);
}

void mirror(Of<TensorShift> auto& shift, auto&& visit) {
  visit("compute", shift.compute);
  visit("memory", shift.memory);
  visit("power", shift.power);
  visit("attention", shift.attention);
  visit("rows", shift.rows);
}

void mirror(Of<GpuOverlay> auto& overlay, auto&& visit) {
  visit("gpu", overlay.gpu);
  visit("mode", overlay.mode);
  visit("precision", overlay.precision);
  visit("gemm_slowdown", overlay.gemm_slowdown);
  visit("batched_slowdown", overlay.batched_slowdown);
  visit("elementwise_slowdown", overlay.bandwidth_slowdown[0]);
  visit("softmax_slowdown", overlay.bandwidth_slowdown[1]);
  visit("layer_norm_slowdown", overlay.bandwidth_slowdown[2]);
  visit("sustained_flops", overlay.sustained_flops);
  visit("floors", overlay.floors);
  visit("tensor", overlay.tensor);
  visit("source", overlay.source);
  visit("source_fnv1a", overlay.source_fnv1a);
  visit("rows", overlay.rows);
  visit("weights", overlay.weights);
  visit("tool_version", overlay.tool_version);
}

void mirror(Of<MixedPrecision> auto& formats, auto&& visit) {
  visit("parameters", formats.parameters);
  visit("gradients", formats.gradients);
  visit("reduce", formats.reduce);
  visit("optimizer_states", formats.optimizer_states);
  visit("master_weights", formats.master_weights);
  visit("fp8_parameters", formats.fp8_parameters);
}

void mirror(Of<DataParallel> auto& data, auto&& visit) {
  visit("sharding", data.sharding);
  visit("shard_group", data.shard_group);
  visit("gather_units", data.gather_units);
  visit("overlap_gradients", data.overlap_gradients);
  visit("align_gradients", data.align_gradients);
  visit("overlap_parameters", data.overlap_parameters);
  visit("align_parameters", data.align_parameters);
  visit("bucket", data.bucket);
  visit("first_bucket", data.first_bucket);
  visit("bucket_per_replica", data.bucket_per_replica);
  visit("reduce_each_micro_batch", data.reduce_each_micro_batch);
  visit("whole_sums", data.whole_sums);
  visit("gather_fp8", data.gather_fp8);
  visit("units_ahead", data.units_ahead);
}

void mirror(Of<FrameworkProfile> auto& profile, auto&& visit) {
  visit("name", profile.name);
  visit("modules", profile.modules);
  visit("kernels", profile.kernels);
  visit("attention", profile.attention);
  visit("fp8_scaling", profile.fp8_scaling);
  visit("cuda_graphs", profile.cuda_graphs);
  visit("selective_recompute", profile.selective);
  visit("expert_dispatcher", profile.expert_dispatcher);
  visit("overlap_experts", profile.overlap_experts);
  visit("weights_in_activation", profile.weights_in_activation);
  visit("products_per_expert", profile.products_per_expert);
  visit("graph_modules", profile.graph_modules);
  visit("bf16_layers_first", profile.bf16_layers_first);
  visit("bf16_layers_last", profile.bf16_layers_last);
  visit("attention_copies", profile.attention_copies);
  visit("fused_norm", profile.fused_norm);
  visit("fused_rope", profile.fused_rope);
  visit("fused_gate", profile.fused_gate);
  visit("bias_epilogue", profile.bias_epilogue);
  visit("fp32_logits", profile.fp32_logits);
  visit("loss_in_place", profile.loss_in_place);
  visit("engine_modules", profile.transformer_engine);
  visit("deterministic", profile.deterministic);
  visit("context", profile.context);
  visit("products_accumulate", profile.products_accumulate);
  visit("gradients_set_to_none", profile.gradients_set_to_none);
  visit("always_average", profile.always_average);
  visit("fused_optimizer", profile.fused_optimizer);
  visit("deepspeed_zero", profile.deepspeed_zero);
  visit("keeps_sent", profile.keeps_sent);
  visit("planned_memory", profile.planned_memory);
  visit("overlap_p2p", profile.overlap_p2p);
  visit("overlap_tensor_gradients", profile.overlap_tensor_gradients);
  visit("overlap_tensor_products", profile.overlap_tensor_products);
  visit("packed_attention", profile.packed_attention);
  visit("own_rows_first", profile.own_rows_first);
  visit("scatter_embedding", profile.scatter_embedding);
  visit("python_functions", profile.python_functions);
  visit("average_in_sum", profile.average_in_sum);
  visit("per_tensor_updates", profile.per_tensor_updates);
  visit("split_by_cost", profile.split_by_cost);
  visit("message_headers", profile.message_headers);
  visit("sends_mask", profile.sends_mask);
  visit("vocabulary_multiple", profile.vocabulary_multiple);
  visit("tensor_plan", profile.tensor_plan);
  visit("splits_stages", profile.splits_stages);
  visit("splits_sequences", profile.splits_sequences);
  visit("complex_rope", profile.complex_rope);
  visit("compiled_loss", profile.compiled_loss);
  visit("loss_fusion", profile.loss_fusion);
  visit("fused_router", profile.fused_router);
  visit("keeps_outputs", profile.keeps_outputs);
  visit("copies_gathered", profile.copies_gathered);
  visit("gradients_join_in_place", profile.gradients_join_in_place);
  visit("keeps_logits", profile.keeps_logits);
  visit("reentrant_checkpoints", profile.reentrant_checkpoints);
  visit("shifts_labels", profile.shifts_labels);
  visit("keeps_gathered", profile.keeps_gathered);
  visit("bucket_copies", profile.bucket_copies);
  visit("mask_buffers", profile.mask_buffers);
  visit("cuda_device_max_connections", profile.cuda_device_max_connections);
  visit("bf16", profile.bf16);
  visit("fp16", profile.fp16);
  visit("data_parallel", profile.data_parallel);
  visit("host_per_call", profile.host_per_call);
  visit("host_per_compiled_call", profile.host_per_compiled_call);
  visit("host_per_communication", profile.host_per_communication);
}

void mirror(Of<ProtocolCalibration> auto& way, auto&& visit) {
  visit("algorithm", way.algorithm);
  visit("protocol", way.protocol);
  visit("latency_factor", way.latency_factor);
  visit("transfer_factor", way.transfer_factor);
  visit("fill_factor", way.fill_factor);
  visit("rows", way.rows);
  visit("residual_pct", way.residual_pct);
}

void mirror(Of<SizeCorrection> auto& correction, auto&& visit) {
  visit("bytes", correction.bytes);
  visit("factor", correction.factor);
}

void mirror(Of<GroupCalibration> auto& group, auto&& visit) {
  visit("collective", group.collective);
  visit("ranks", group.ranks);
  visit("nodes", group.nodes);
  visit("reduces_in_switch", group.reduces_in_switch);
  visit("protocols", group.protocols);
  visit("corrections", group.corrections);
  visit("launch", group.launch);
}

void mirror(Of<CollectiveOverride> auto& choice, auto&& visit) {
  visit("group", choice.group);
  visit("algorithm", choice.algorithm);
  visit("protocol", choice.protocol);
  visit("copy_engines", choice.copy_engines);
}

void mirror(Of<CollectiveSettings> auto& settings, auto&& visit) {
  visit("fidelity", settings.fidelity);
  visit("groups", settings.groups);
  visit("overrides", settings.overrides);
  visit("tuner", settings.tuner);
  visit("source", settings.source);
  visit("slows_kernels", settings.slows_kernels);
  visit("nccl_messages", settings.nccl_messages);
}

void mirror(Of<GpuPerturbation> auto& perturbation, auto&& visit) {
  visit("ranks", perturbation.ranks);
  visit("gpu", perturbation.gpu);
  visit("slowdown", perturbation.slowdown);
  visit("stages", perturbation.stages);
  visit("replicas", perturbation.replicas);
  visit("nic_bandwidth_share", perturbation.nic_bandwidth_share);
}

void mirror(Of<Perturbation> auto& perturbation, auto&& visit) {
  visit("gpus", perturbation.gpus);
  visit("kernel_jitter", perturbation.kernel_jitter);
  visit("seed", perturbation.seed);
}

void mirror(Of<FoldSettings> auto& fold, auto&& visit) {
  visit("tensor", fold.tensor);
  visit("data", fold.data);
  visit("rails", fold.rails);
}

void mirror(Of<SimulationSettings> auto& settings, auto&& visit) {
  visit("fold", settings.fold);
  visit("time_limit", settings.time_limit);
}

void mirror(Of<ReliabilitySettings> auto& settings, auto&& visit) {
  visit("failures", settings.failures);
  visit("failures_per_1000_node_days", settings.failures_per_1000_node_days);
  visit("detection", settings.detection);
  visit("repair", settings.repair);
  visit("restart_time", settings.restart_time);
  visit("checkpoint_interval", settings.checkpoint_interval);
  visit("checkpoint_time", settings.checkpoint_time);
  visit("storage_bandwidth", settings.storage_bandwidth);
  visit("memory_interval", settings.memory_interval);
  visit("local_interval", settings.local_interval);
  visit("incremental_share", settings.incremental_share);
  visit("full_every", settings.full_every);
  visit("asynchronous", settings.asynchronous);
  visit("policy", settings.policy);
  visit("spares", settings.spares);
  visit("repair_crews", settings.repair_crews);
  visit("least_replicas", settings.least_replicas);
}

void mirror(Of<HostTable> auto& host, auto&& visit) {
  visit("name", host.name);
  visit("cpu", host.cpu);
  visit("source", host.source);
  visit("factor", host.factor);
  visit("per_call", host.per_call);
  visit("per_compiled_call", host.per_compiled_call);
  visit("per_communication", host.per_communication);
  visit("per_message", host.per_message);
}

/// The section `training` of a scenario, without the number of micro-batches, which follows from
/// the rest.
void mirror(Of<StepOptions> auto& step, auto&& visit) {
  visit("mode", step.mode);
  visit("framework", step.framework);
  visit("kernels", step.kernels);
  visit("precision", step.precision);
  visit("sequence_length", step.sequence_length);
  visit("mean_document", step.mean_document);
  visit("global_batch", step.global_batch);
  visit("micro_batch", step.micro_batch);
  visit("schedule", step.schedule);
  visit("optimizer", step.optimizer);
  visit("clip_gradients", step.clip_gradients);
  visit("mixed_precision", step.formats);
  visit("data_parallel", step.data_parallel);
  visit("recompute", step.recompute);
  visit("recompute_modules", step.recompute_modules);
  visit("recompute_layers", step.recompute_layers);
  visit("offload_layers", step.offload_layers);
  visit("offload_optimizer", step.offload_optimizer);
  visit("expert_imbalance", step.expert_imbalance);
  visit("expert_capacity_factor", step.expert_capacity_factor);
  visit("lora_rank", step.lora_rank);
  visit("lora_targets", step.lora_targets);
  visit("host", step.host);
}

void mirror(Of<ParallelLayout> auto& layout, auto&& visit) {
  visit("tensor", layout.tensor);
  visit("pipeline", layout.pipeline);
  visit("data", layout.data);
  visit("sequence_parallel", layout.sequence_parallel);
  visit("virtual_stages", layout.virtual_stages);
  visit("context", layout.context);
  visit("expert", layout.expert);
  visit("expert_tensor", layout.expert_tensor);
  visit("order", layout.order);
}

void mirror(Of<StageSplit> auto& split, auto&& visit) {
  visit("layers_per_stage", split.layers_per_stage);
  visit("first_stage_layers", split.first_stage_layers);
  visit("last_stage_layers", split.last_stage_layers);
  visit("embedding_as_layer", split.embedding_as_layer);
  visit("head_as_layer", split.head_as_layer);
  visit("micro_batches_per_replica", split.micro_batches_per_replica);
}

void mirror(Of<MemorySettings> auto& memory, auto&& visit) {
  visit("planner", memory.planner);
  visit("budget", memory.budget);
  visit("swap", memory.swap);
  visit("recompute", memory.recompute);
  visit("host_memory", memory.host_memory);
  visit("thorough", memory.thorough);
  visit("limit", memory.limit);
  visit("layers", memory.layers);
  visit("pressure", memory.pressure);
  visit("packing", memory.packing);
  visit("optimizer_states", memory.optimizer_states);
  visit("split_batch", memory.split_batch);
  visit("planned_sequence_length", memory.planned_sequence_length);
  visit("planned_expert_imbalance", memory.planned_expert_imbalance);
}

}  // namespace tessera

#pragma once

// What DeepSpeed's configuration may say beside what deepspeed_config.cpp reads.
#include <array>
#include <string_view>

#include "app/import/job/foreign_fields.h"

namespace tessera::deepspeed {

/// Keys that no step depends on, by how they begin.
inline constexpr auto kHarmless =
    std::to_array<std::string_view>({"steps_per_print",
                                     "wall_clock_breakdown",
                                     "memory_breakdown",
                                     "dump_state",
                                     "tensorboard.",
                                     "wandb.",
                                     "csv_monitor.",
                                     "comet.",
                                     "flops_profiler.",
                                     "autotuning.",
                                     "comms_logger.",
                                     "checkpoint.",
                                     "nebula.",
                                     "aio.",
                                     "scheduler.",
                                     "optimizer.params.",
                                     "optimizer.legacy_fusion",
                                     "dataloader_drop_last",
                                     "zero_allow_untested_optimizer",
                                     "zero_force_ds_cpu_optimizer",
                                     "prescale_gradients",
                                     "gradient_predivide_factor",
                                     "fp16.loss_scale",
                                     "fp16.initial_scale_power",
                                     "fp16.hysteresis",
                                     "fp16.min_loss_scale",
                                     "fp16.consecutive_hysteresis",
                                     "fp16.auto_cast",
                                     "bf16.check_grad_overflow",
                                     "use_node_local_storage",
                                     "load_universal_checkpoint",
                                     "graph_harvesting",
                                     "zero_optimization.contiguous_gradients",
                                     "zero_optimization.elastic_checkpoint",
                                     "zero_optimization.load_from_fp32_weights",
                                     "zero_optimization.ignore_unused_parameters",
                                     "zero_optimization.log_trace_cache_warnings",
                                     "zero_optimization.stage3_gather_16bit_weights_on_model_save",
                                     "zero_optimization.stage3_gather_fp16_weights_on_model_save",
                                     "zero_optimization.round_robin_gradients",
                                     "zero_optimization.memory_efficient_linear",
                                     "activation_checkpointing.profile"});

/// When weights are gathered and how long they are kept: the simulation has
/// rules of its own.
inline constexpr auto kGathering = std::to_array<std::string_view>(
    {"zero_optimization.allgather_bucket_size", "zero_optimization.sub_group_size",
     "zero_optimization.stage3_prefetch_bucket_size", "zero_optimization.prefetch_bucket_size",
     "zero_optimization.stage3_param_persistence_threshold",
     "zero_optimization.param_persistence_threshold",
     "zero_optimization.stage3_model_persistence_threshold",
     "zero_optimization.stage3_max_live_parameters", "zero_optimization.max_live_parameters",
     "zero_optimization.stage3_max_reuse_distance", "zero_optimization.max_reuse_distance"});

inline constexpr const char* kQuantized = "quantizes what ranks send each other: not simulated";
inline constexpr std::array kRules{
    UsualValue{"amp.enabled", "false", "is apex's mixed precision, which is not simulated"},
    UsualValue{"torch_autocast.enabled", "false", "casts by operator, which is not simulated"},
    UsualValue{"fp16.fp16_master_weights_and_grads", "false",
               "keeps fp16 master weights: not simulated"},
    UsualValue{"bf16.bf16_master_weights_and_grads", "false",
               "keeps bf16 master weights: not simulated"},
    UsualValue{"bf16.bf16_optimizer_states", "false", "keeps bf16 optimizer states: not simulated"},
    UsualValue{"bf16.immediate_grad_update", "true",
               "changes when gradients are summed: not simulated"},
    UsualValue{"sparse_gradients", "false", "sends sparse gradients, which is not simulated"},
    UsualValue{"disable_allgather", "false", "broadcasts weights, which is not simulated"},
    UsualValue{"zero_optimization.allgather_partitions", "true",
               "broadcasts weights: not simulated"},
    UsualValue{"zero_optimization.reduce_scatter", "true", "all-reduces gradients: not simulated"},
    UsualValue{"zero_optimization.zero_quantized_weights", "false", kQuantized},
    UsualValue{"zero_optimization.zero_quantized_nontrainable_weights", "false", kQuantized},
    UsualValue{"zero_optimization.zero_quantized_gradients", "false", kQuantized},
    UsualValue{"zero_optimization.zero_hpz_partition_size", "1",
               "keeps secondary shards within nodes (ZeRO++), which is not simulated"},
    UsualValue{"zero_optimization.mics_hierarchical_params_gather", "false",
               "gathers in two steps, which is not simulated"},
    UsualValue{"zero_optimization.use_all_reduce_for_fetch_params", "false",
               "gathers by all-reduce, which is not simulated"},
    UsualValue{"zero_optimization.offload_optimizer.ratio", "1.0",
               "updates a part of the weights on the GPU, which is not simulated"},
    UsualValue{"zero_optimization.cpu_offload_use_pin_memory", "any", ""},
    UsualValue{"activation_checkpointing.partition_activations", "false",
               "divides kept activations among ranks, which is not simulated"},
    UsualValue{"activation_checkpointing.cpu_checkpointing", "false",
               "offloads kept activations, which is not simulated"},
    UsualValue{"activation_checkpointing.contiguous_memory_optimization", "any", ""},
    UsualValue{"activation_checkpointing.synchronize_checkpoint_boundary", "any", ""},
    UsualValue{"activation_checkpointing.number_checkpoints", "any", ""},
    UsualValue{"compile.enabled", "false",
               "compiles the model: give --framework hf-compile instead"},
    UsualValue{"compile.deepcompile", "false", "compiles the step, which is not simulated"},
    UsualValue{"progressive_layer_drop.enabled", "false",
               "leaves out layers, which is not simulated"},
    UsualValue{"curriculum_learning.enabled", "false",
               "changes the sequence length: not simulated"},
    UsualValue{"data_efficiency.enabled", "false", "changes the sequence length: not simulated"},
    UsualValue{"eigenvalue.enabled", "false", "computes eigenvalues, which is not simulated"},
    UsualValue{"quantize_training.enabled", "false", "quantizes weights, which is not simulated"},
    UsualValue{"hybrid_engine.enabled", "false", "generates text as well, which is not simulated"},
    UsualValue{"elasticity.enabled", "false", "chooses the batch by itself: give --global-batch"},
    UsualValue{"pipeline.stages", "1", "cuts the model into stages, which is not simulated"},
    UsualValue{"pipeline.partition", "any", ""},
    UsualValue{"pipeline.seed_layers", "any", ""},
    UsualValue{"pipeline.activation_checkpoint_interval", "0",
               "runs layers again, which is not read: set training.recompute"},
};

}  // namespace tessera::deepspeed

#pragma once

// What nanotron's files may say (src/nanotron/config of December 2024; names of 2025 are recalled).
#include <array>
#include <string_view>

#include "app/import/job/foreign_fields.h"

namespace tessera::nanotron {

inline constexpr auto kRead =
    std::to_array<std::string_view>({"parallelism.dp",
                                     "parallelism.tp",
                                     "parallelism.pp",
                                     "parallelism.pp_engine",
                                     "parallelism.tp_mode",
                                     "parallelism.tp_linear_async_communication",
                                     "parallelism.tp_recompute_allgather",
                                     "parallelism.recompute_layer",
                                     "tokens.sequence_length",
                                     "tokens.micro_batch_size",
                                     "tokens.batch_accumulation_per_replica",
                                     "model.dtype",
                                     "model.ddp_bucket_cap_mb",
                                     "model.make_vocab_size_divisible_by",
                                     "model.model_config.hidden_size",
                                     "model.model_config.intermediate_size",
                                     "model.model_config.num_hidden_layers",
                                     "model.model_config.num_attention_heads",
                                     "model.model_config.num_key_value_heads",
                                     "model.model_config.vocab_size",
                                     "model.model_config.hidden_act",
                                     "model.model_config.tie_word_embeddings",
                                     "model.model_config.is_llama_config",
                                     "optimizer.zero_stage",
                                     "optimizer.accumulate_grad_in_fp32",
                                     "optimizer.clip_grad",
                                     "optimizer.optimizer_factory.name",
                                     "optimizer.optimizer_factory.torch_adam_is_fused",
                                     "general.ignore_sanity_checks"});

inline constexpr auto kHarmless =
    std::to_array<std::string_view>({"general.",
                                     "checkpoints.",
                                     "data_stages",
                                     "lighteval",
                                     "logging.",
                                     "metrics_logging",
                                     "profiler",
                                     "s3_upload",
                                     "tokenizer.",
                                     "tokens.train_steps",
                                     "tokens.val_check_interval",
                                     "tokens.limit_",
                                     "optimizer.learning_rate_scheduler",
                                     "optimizer.weight_decay",
                                     "optimizer.optimizer_factory.adam_",
                                     "model.init_method",
                                     "model.model_config.bos_token_id",
                                     "model.model_config.eos_token_id",
                                     "model.model_config.pad_token_id",
                                     "model.model_config.initializer_range",
                                     "model.model_config.rms_norm_eps",
                                     "model.model_config.rope_",
                                     "model.model_config.max_position_embeddings",
                                     "model.model_config.pretraining_tp",
                                     "model.model_config.use_cache",
                                     "model.model_config.z_loss_coefficient",
                                     "model.model_config.ring_attn_",
                                     "model.model_config.sliding_window_size"});

inline constexpr const char* kOtherModel =
    "is a model whose modules are not those of profile nanotron: import its config.json with "
    "--framework megatron";
inline constexpr const char* kOtherModules =
    "chooses modules of nanotron's code of 2025, which are not simulated";
inline constexpr std::array kRules{
    UsualValue{"parallelism.expert_parallel_size", "1", "splits experts, which are not simulated"},
    UsualValue{"parallelism.context_parallel_size", "1",
               "splits sequences, which profile nanotron does not"},
    UsualValue{"parallelism.moe_layer_recompute", "false", "is not simulated"},
    UsualValue{"model.model_config.is_qwen2_config", "false", kOtherModel},
    UsualValue{"model.model_config.is_starcoder2_config", "false", kOtherModel},
    UsualValue{"model.model_config.is_mamba_config", "false", kOtherModel},
    UsualValue{"model.model_config.is_moe_config", "false", kOtherModel},
    UsualValue{"model.model_config.attention_bias", "false",
               "has biases of queries, keys and values, which profile nanotron has not"},
    UsualValue{"model.model_config._attn_implementation", "flash_attention_2",
               "is attention that profile nanotron does not have"},
    UsualValue{"model.model_config._use_doc_masking", "false",
               "lets documents see only themselves, which is not simulated"},
    UsualValue{"model.model_config._use_qkv_packed", "false", kOtherModules},
    UsualValue{"model.model_config._fused_rms_norm", "true", kOtherModules},
    UsualValue{"model.model_config._fused_rotary_emb", "true", kOtherModules},
    UsualValue{"model.model_config.use_sliding_window", "false", "is not simulated"},
    UsualValue{"model.model_config.sliding_window", "none", "is not simulated"},
    UsualValue{"model.model_config.no_rope_layer", "none", "is not simulated"},
    UsualValue{"model.model_config.flex_attention_mask", "none", "is not simulated"},
    UsualValue{"model.model_config.z_loss_enabled", "false",
               "adds a loss over the logits, which is not simulated"},
    UsualValue{"model.model_config.log_attn_probs", "false", "is not simulated"},
};

}  // namespace tessera::nanotron

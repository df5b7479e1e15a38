#pragma once

// What the arguments of Hugging Face's Trainer mean to a step (transformers/training_args.py of
// 2023 to 2025, and what its examples and TRL's scripts add).
#include <array>
#include <string_view>

#include "app/import/job/foreign_fields.h"

namespace tessera::trainer {

/// No step depends on them, by how they begin.
inline constexpr auto kHarmless = std::to_array<std::string_view>({
    // Learning rates, lengths of the run, seeds.
    "--learning_rate",
    "--weight_decay",
    "--adam_beta",
    "--adam_epsilon",
    "--num_train_epochs",
    "--max_steps",
    "--lr_scheduler",
    "--warmup_",
    "--seed",
    "--data_seed",
    "--optim_args",
    // What is read and written beside the steps.
    "--output_dir",
    "--overwrite_",
    "--do_train",
    "--do_eval",
    "--do_predict",
    "--eval",
    "--prediction_loss_only",
    "--per_device_eval_batch_size",
    "--per_gpu_eval",
    "--logging_",
    "--log_level",
    "--log_on_each_node",
    "--save_",
    "--report_to",
    "--run_name",
    "--disable_tqdm",
    "--push_to_hub",
    "--hub_",
    "--resume_from_checkpoint",
    "--load_best_model_at_end",
    "--metric_for_best_model",
    "--greater_is_better",
    "--ignore_data_skip",
    "--skip_memory_metrics",
    "--include_",
    "--bf16_full_eval",
    "--fp16_full_eval",
    "--wandb_",
    "--trackio_",
    // Data.
    "--dataset",
    "--train_file",
    "--train_data",
    "--validation_",
    "--test_file",
    "--data_path",
    "--data_dir",
    "--preprocessing_num_workers",
    "--streaming",
    "--text_column",
    "--dataloader_",
    "--remove_unused_columns",
    "--label_names",
    "--length_column_name",
    "--max_train_samples",
    "--max_eval_samples",
    "--keep_linebreaks",
    "--use_fast_tokenizer",
    "--tokenizer_name",
    "--config_name",
    "--cache_dir",
    "--token",
    "--use_auth_token",
    "--trust_remote_code",
    "--model_revision",
    "--low_cpu_mem_usage",
    "--padding_side",
    "--chat_template",
    "--system_prompt",
    "--completion_only_loss",
    "--assistant_only_loss",
    "--use_slow_tokenizer",
    "--lazy_preprocess",
    "--eos_token",
    "--pad_token",
    "--reduce_loss",
    "--packing",
    "--group_by_length",
    // How processes start and find each other.
    "--local_rank",
    "--local-rank",
    "--ddp_backend",
    "--ddp_timeout",
    "--ddp_find_unused_parameters",
    "--ddp_broadcast_buffers",
    "--fsdp_transformer_layer_cls_to_wrap",
    "--average_tokens_across_devices",
});

/// Likewise, by all of their name.
inline constexpr auto kHarmlessNames = std::to_array<std::string_view>({"--project"});

/// And those that say what is not simulated, unless they have their usual value.
inline constexpr std::array kRules{
    UsualValue{"--auto_find_batch_size", "false", "chooses the batch by what fits"},
    UsualValue{"--use_cpu", "false", "trains on CPUs, which is not simulated"},
    UsualValue{"--no_cuda", "false", "trains on CPUs, which is not simulated"},
    UsualValue{"--label_smoothing_factor", "0.0", "is another loss, which is not simulated"},
    UsualValue{"--neftune_noise_alpha", "none", "adds noise to embeddings, which is not simulated"},
    UsualValue{"--use_liger_kernel", "false", "has kernels that are not simulated"},
    UsualValue{"--torch_empty_cache_steps", "none", "gives memory back, which is not simulated"},
    UsualValue{"--fp16_backend", "auto", "is another mixed precision, which is not simulated"},
    UsualValue{"--half_precision_backend", "auto", "is another mixed precision: not simulated"},
    UsualValue{"--torch_compile_mode", "default", "compiles otherwise, which is not simulated"},
    UsualValue{"--torch_compile_backend", "inductor", "compiles otherwise: not simulated"},
    UsualValue{"--freeze_backbone", "false", "trains a part of the model, which is not simulated"},
    UsualValue{
        "--use_peft", "false",
        "trains adapters: import the model's config.json with --adapter, or leave it out and "
        "set training.lora_rank"},
    UsualValue{"--use_lora", "false", "trains adapters: set training.lora_rank instead"},
    UsualValue{"--load_in_4bit", "false", "keeps weights in 4 bits: set training.base_weights"},
    UsualValue{"--load_in_8bit", "false", "keeps weights in 8 bits, which is not simulated"},
};

/// Those that the importer asks for, to tell misspellings from them.
inline constexpr auto kRead = std::to_array<std::string_view>({
    "--model_name_or_path",
    "--per_device_train_batch_size",
    "--gradient_accumulation_steps",
    "--gradient_checkpointing",
    "--gradient_checkpointing_kwargs",
    "--bf16",
    "--fp16",
    "--tf32",
    "--deepspeed",
    "--fsdp",
    "--fsdp_config",
    "--optim",
    "--max_grad_norm",
    "--torch_compile",
    "--torch_compile_mode",
    "--torch_compile_backend",
    "--torch_dtype",
    "--dtype",
    "--attn_implementation",
    "--ddp_bucket_cap_mb",
    "--packing",
    "--packing_strategy",
    "--use_peft",
    "--lora_r",
    "--lora_alpha",
    "--lora_dropout",
    "--lora_target_modules",
    "--lora_modules_to_save",
    "--use_dora",
    "--use_rslora",
    "--load_in_4bit",
    "--bnb_4bit_quant_type",
    "--use_bnb_nested_quant",
    "--max_seq_length",
    "--max_length",
    "--block_size",
    "--model_max_length",
    "--cutoff_len",
});

/// Programs whose step does more than train one model, by a part of their name.
inline constexpr auto kOtherPrograms = std::to_array<std::string_view>(
    {"dpo", "ppo", "grpo", "rloo", "reward", "rlhf", "orpo", "kto", "gkd", "distill", "cpo", "bco",
     "xpo", "nash", "prm", "simpo", "preference"});

/// Arguments of such programs alone (trl/trainer/*_config.py).
inline constexpr auto kOfOtherPrograms =
    std::to_array<std::string_view>({"--beta",
                                     "--loss_type",
                                     "--ref_model",
                                     "--ref_model_mixup_alpha",
                                     "--sync_ref_model",
                                     "--precompute_ref_log_probs",
                                     "--max_prompt_length",
                                     "--max_completion_length",
                                     "--max_new_tokens",
                                     "--num_generations",
                                     "--use_vllm",
                                     "--vllm_mode",
                                     "--reward_model_path",
                                     "--reward_funcs",
                                     "--sft_model_path",
                                     "--num_ppo_epochs",
                                     "--kl_coef",
                                     "--rpo_alpha",
                                     "--desirable_weight",
                                     "--undesirable_weight",
                                     "--cpo_alpha",
                                     "--simpo_gamma"});

/// And of TRL's trainer of one model alone: either tells its program.
inline constexpr auto kOfTrl = std::to_array<std::string_view>(
    {"--use_peft", "--packing", "--packing_strategy", "--padding_free", "--dataset_text_field",
     "--assistant_only_loss", "--completion_only_loss", "--dataset_num_proc", "--eos_token"});

/// Names of the sequence length among programs.
inline constexpr auto kLengths =
    std::to_array<const char*>({"--max_seq_length", "--max_length", "--block_size",
                                "--model_max_length", "--cutoff_len", "--max_seq_len"});

}  // namespace tessera::trainer

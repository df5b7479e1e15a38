#pragma once

// What accelerate's configuration may say beside what accelerate_job.cpp reads.
#include <array>
#include <string_view>

#include "app/import/job/foreign_fields.h"

namespace tessera::accelerate {

/// Keys that no step depends on, by how they begin.
inline constexpr auto kHarmless =
    std::to_array<std::string_view>({"compute_environment",
                                     "debug",
                                     "enable_cpu_affinity",
                                     "machine_rank",
                                     "main_training_function",
                                     "main_process_ip",
                                     "main_process_port",
                                     "rdzv_",
                                     "same_network",
                                     "gpu_ids",
                                     "commands",
                                     "command_file",
                                     "use_stateful_dataloader",
                                     "num_cpu_threads_per_process",
                                     "quiet",
                                     "module",
                                     "mpirun_config.",
                                     "tpu_",
                                     "sagemaker",
                                     "monitor",
                                     "max_restarts",
                                     "role",
                                     "tee",
                                     "log_dir",
                                     "use_parallelism_config",
                                     "deepspeed_config.deepspeed_hostfile",
                                     "deepspeed_config.deepspeed_multinode_launcher",
                                     "deepspeed_config.deepspeed_inclusion_filter",
                                     "deepspeed_config.deepspeed_exclusion_filter",
                                     "deepspeed_config.zero3_init_flag",
                                     "deepspeed_config.zero3_save_16bit_model",
                                     "deepspeed_config.offload_optimizer_nvme_path",
                                     "deepspeed_config.offload_param_nvme_path",
                                     "fsdp_config.fsdp_cpu_ram_efficient_loading",
                                     "fsdp_config.fsdp_sync_module_states",
                                     "fsdp_config.fsdp_state_dict_type",
                                     "fsdp_config.fsdp_use_orig_params",
                                     "fsdp_config.fsdp_transformer_layer_cls_to_wrap",
                                     "fsdp_config.fsdp_min_num_params",
                                     "fsdp_config.fsdp_forward_prefetch",
                                     "fsdp_config.fsdp_limit_all_gathers",
                                     "fsdp_config.xla",
                                     "fp8_config.amax_",
                                     "fp8_config.fp8_format",
                                     "fp8_config.interval",
                                     "fp8_config.margin",
                                     "fp8_config.opt_level",
                                     "fp8_config.use_autocast_during_eval",
                                     "dynamo_config.dynamo_prefix",
                                     "dynamo_config.dynamo_use_fullgraph",
                                     "dynamo_config.dynamo_use_regional_compilation"});

inline constexpr std::array kRules{
    UsualValue{"use_cpu", "false", "trains on CPUs, which is not simulated"},
    UsualValue{"downcast_bf16", "no", "is for TPUs, which are not simulated"},
    UsualValue{"dynamo_config.dynamo_mode", "default",
               "compiles otherwise, which is not simulated"},
    UsualValue{"dynamo_config.dynamo_use_dynamic", "false",
               "compiles for all lengths at once, which is not simulated"},
    UsualValue{"fp8_config.override_linear_precision", "(false, false, false)",
               "keeps products in 16 bits, which is not simulated"},
    UsualValue{"fsdp_config.fsdp_auto_wrap_policy", "transformer_based_wrap",
               "divides the model otherwise than by layers, which is not simulated"},
    UsualValue{"fsdp_config.fsdp_backward_prefetch", "backward_pre",
               "gathers later than a layer ahead, which is not simulated"},
    UsualValue{"fsdp_config.fsdp_backward_prefetch_policy", "backward_pre",
               "gathers later than a layer ahead, which is not simulated"},
    UsualValue{"deepspeed_config.deepspeed_moe_layer_cls_names", "",
               "keeps layers of experts whole, which is not simulated"},
};

}  // namespace tessera::accelerate

#pragma once

// What torchtitan's job files may say beside what torchtitan_job.cpp reads.
#include <array>
#include <string>
#include <string_view>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/imported_job.h"

namespace tessera::torchtitan {

/// Sections and keys that no step depends on, by how they begin.
inline constexpr auto kNoPartOfAStep =
    std::to_array<std::string_view>({"job.",
                                     "profiling.",
                                     "metrics.",
                                     "checkpoint.",
                                     "lr_scheduler.",
                                     "validation.",
                                     "memory_estimation.",
                                     "comm.",
                                     "fault_tolerance.",
                                     "debug.seed",
                                     "debug.print_config",
                                     "model.tokenizer_path",
                                     "model.hf_assets_path",
                                     "model.print_after_conversion",
                                     "optimizer.lr",
                                     "optimizer.eps",
                                     "optimizer.beta",
                                     "optimizer.weight_decay",
                                     "training.steps",
                                     "training.warmup_steps",
                                     "training.dataset",
                                     "training.seed",
                                     "training.gc_",
                                     "training.max_norm",
                                     "training.tokenizer",
                                     "experimental.custom_",
                                     "parallelism.enable_compiled_autograd",
                                     "experimental.enable_compiled_autograd",
                                     "activation_checkpoint.early_stop",
                                     "activation_checkpoint.preserve_rng",
                                     "activation_checkpoint.determinism",
                                     "activation_checkpoint.debug"});

/// Switches that say what is not simulated.
inline constexpr std::array kUsualValues{
    UsualValue{"model.norm_type", "rmsnorm", "is not simulated: norms are RMSNorm"},
    UsualValue{"compile.backend", "inductor", "compiles otherwise, which is not simulated"},
    UsualValue{"optimizer.early_step_in_backward", "false", "is not simulated"},
    UsualValue{"parallelism.pipeline_parallel_first_stage_less_layers", "1",
               "is not simulated: the embedding counts as a layer"},
    UsualValue{"parallelism.pipeline_parallel_last_stage_less_layers", "1",
               "is not simulated: the head counts as a layer"},
    UsualValue{"fault_tolerance.enable", "false",
               "averages replica groups by torchft, which is not simulated"},
    UsualValue{"parallelism.expert_parallel_degree", "1", "is not simulated: its experts are not"},
    UsualValue{"parallelism.expert_tensor_parallel_degree", "1",
               "is not simulated: its experts are not"},
    UsualValue{"float8.recipe_name", "tensorwise",
               "is not simulated: a scale for each tensor alone is"},
    UsualValue{"quantize.linear.float8.recipe_name", "tensorwise",
               "is not simulated: a scale for each tensor alone is"},
    UsualValue{"float8.emulate", "false", "is not simulated"},
    UsualValue{"quantize.linear.float8.emulate", "false", "is not simulated"},
    UsualValue{"activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
               "moe.router.gate", "is not simulated: every second product runs again"},
};

/// And those that change nothing without tensor parallelism (parallel_dims.py,
/// loss_parallel_enabled).
inline constexpr const char* kWholeLoss =
    "is not simulated: the loss of tensor-parallel ranks is over parts of the vocabulary";
inline constexpr std::array kOfTensorGroups{
    UsualValue{"parallelism.disable_loss_parallel", "false", kWholeLoss},
    UsualValue{"training.disable_loss_parallel", "false", kWholeLoss},
    UsualValue{"training.enable_loss_parallel", "true", kWholeLoss},  // until September 2024
};

/// Its models and the shipped ones that they are.
struct Flavor {
  std::string_view model, flavor, id;
  int layers;
};
inline constexpr std::array kFlavors{
    Flavor{"llama3", "8B", "llama-3-8b", 32},        Flavor{"llama3", "70B", "llama-3-70b", 80},
    Flavor{"llama3", "405B", "llama-3.1-405b", 126}, Flavor{"llama2", "7B", "llama-2-7b", 32},
    Flavor{"llama2", "13B", "llama-2-13b", 40},      Flavor{"llama2", "70B", "llama-2-70b", 80},
};

}  // namespace tessera::torchtitan

namespace tessera {

/// torchtitan's job file as its fields, which a command line may have changed.
ImportedJob import_torchtitan_fields(ForeignFields fields, const std::string& name,
                                     const JobOptions& options);

}  // namespace tessera

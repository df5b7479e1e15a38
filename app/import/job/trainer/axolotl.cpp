// axolotl's files: the Trainer's arguments under names of its own.
#include <array>

#include "app/import/job/trainer/trainer_dialect.h"
#include "hw/units/input_error.h"
#include "hw/units/lower_case.h"

namespace tessera {
namespace {

constexpr std::array<std::pair<std::string_view, const char*>, 11> kAxolotlNames{
    {{"base_model", "--model_name_or_path"},
     {"micro_batch_size", "--per_device_train_batch_size"},
     {"optimizer", "--optim"},
     {"lora_r", "--lora_r"},
     {"lora_alpha", "--lora_alpha"},
     {"lora_modules_to_save", "--lora_modules_to_save"},
     {"peft_use_dora", "--use_dora"},
     {"peft_use_rslora", "--use_rslora"},
     {"num_epochs", "--num_train_epochs"},
     {"lr_scheduler", "--lr_scheduler_type"},
     {"ddp_bucket_cap_mb", "--ddp_bucket_cap_mb"}}};

constexpr auto kAxolotlRead = std::to_array<std::string_view>({"adapter",
                                                               "lora_dropout",
                                                               "lora_target_linear",
                                                               "lora_target_modules",
                                                               "load_in_4bit",
                                                               "load_in_8bit",
                                                               "bf16",
                                                               "fp16",
                                                               "bfloat16",
                                                               "float16",
                                                               "flash_attention",
                                                               "sdp_attention",
                                                               "eager_attention",
                                                               "gradient_checkpointing",
                                                               "sample_packing",
                                                               "pad_to_sequence_len",
                                                               "sequence_len",
                                                               "fsdp",
                                                               "fsdp_config",
                                                               "fsdp_version"});

constexpr auto kAxolotlHarmless = std::to_array<std::string_view>({
    "datasets",
    "test_datasets",
    "dataset_",
    "pretraining_dataset",
    "shuffle_merged_datasets",
    "val_set_size",
    "eval",
    "saves_per_epoch",
    "chat_template",
    "default_system_message",
    "train_on_inputs",
    "train_on_eos",
    "roles_to_train",
    "special_tokens",
    "tokens",
    "added_tokens_overrides",
    "tokenizer_",
    "base_model_config",
    "base_model_ignore_patterns",
    "model_type",
    "is_llama_derived_model",
    "is_mistral_derived_model",
    "is_falcon_derived_model",
    "is_qwen_derived_model",
    "lora_model_dir",
    "lora_fan_in_fan_out",
    "loraplus_",
    "cosine_",
    "lr_quadratic_warmup",
    "learning_rate",
    "max_packed_sequence_len",
    "sample_packing_",
    "push_dataset_to_hub",
    "early_stopping_patience",
    "auto_resume_from_checkpoints",
    "mlflow_",
    "comet_",
    "use_wandb",
    "use_mlflow",
    "use_comet",
    "strict",
    "debug",
    "hf_use_auth_token",
    "load_best_model_at_end",
    "loss_watchdog_",
    "bench_",
    "do_bench_eval",
    "gpu_memory_limit",
    "embeddings_skip_upcast",
    "save_first_step",
    "rope_scaling",
});

constexpr const char* kOwnKernels = "has kernels that are not simulated";
constexpr const char* kOtherPasses =
    "is another training, whose step runs other models beside the one that is trained";
constexpr const char* kOtherSplit = "splits the job in a way that is not read";
constexpr std::array kAxolotlRules{
    UsualValue{"rl", "", kOtherPasses},
    UsualValue{"reward_model", "false", kOtherPasses},
    UsualValue{"process_reward_model", "false", kOtherPasses},
    UsualValue{"relora", "false", "is not simulated"},
    UsualValue{"relora_steps", "", "is not simulated"},
    UsualValue{"plugins", "", "changes the step in ways that are not read"},
    UsualValue{"liger_rope", "false", kOwnKernels},
    UsualValue{"liger_rms_norm", "false", kOwnKernels},
    UsualValue{"liger_glu_activation", "false", kOwnKernels},
    UsualValue{"liger_layer_norm", "false", kOwnKernels},
    UsualValue{"liger_fused_linear_cross_entropy", "false", kOwnKernels},
    UsualValue{"cut_cross_entropy", "false", kOwnKernels},
    UsualValue{"lora_mlp_kernel", "false", kOwnKernels},
    UsualValue{"lora_qkv_kernel", "false", kOwnKernels},
    UsualValue{"lora_o_kernel", "false", kOwnKernels},
    UsualValue{"unsloth_cross_entropy_loss", "false", kOwnKernels},
    UsualValue{"unsloth_lora_mlp", "false", kOwnKernels},
    UsualValue{"unsloth_lora_qkv", "false", kOwnKernels},
    UsualValue{"unsloth_lora_o", "false", kOwnKernels},
    UsualValue{"unsloth_rms_norm", "false", kOwnKernels},
    UsualValue{"unsloth_rope", "false", kOwnKernels},
    UsualValue{"flash_attn_cross_entropy", "false", kOwnKernels},
    UsualValue{"flash_attn_rms_norm", "false", kOwnKernels},
    UsualValue{"flash_attn_fuse_qkv", "false", kOwnKernels},
    UsualValue{"flash_attn_fuse_mlp", "false", kOwnKernels},
    UsualValue{"s2_attention", "false", kOwnKernels},
    UsualValue{"xformers_attention", "false", kOwnKernels},
    UsualValue{"flex_attention", "false", kOwnKernels},
    UsualValue{"unfrozen_parameters", "", "trains a part of the model, which is not simulated"},
    UsualValue{"peft_layers_to_transform", "", "adapts some layers, which is not simulated"},
    UsualValue{"noisy_embedding_alpha", "", "adds noise to embeddings, which is not simulated"},
    UsualValue{"tensor_parallel_size", "1", kOtherSplit},
    UsualValue{"context_parallel_size", "1", kOtherSplit},
    UsualValue{"sequence_parallel_degree", "1", kOtherSplit},
    UsualValue{"dp_shard_size", "", kOtherSplit},
    UsualValue{"dp_replicate_size", "", kOtherSplit},
    UsualValue{"gptq", "false", "keeps weights in a format that is not simulated"},
    UsualValue{"fp8", "false", "is another precision, which is not simulated"},
};

class AxolotlFile {
 public:
  explicit AxolotlFile(ForeignFields file) : file_(std::move(file)) {}

  TrainerArguments read() {
    all_.is_of_another = true;
    read_batch();
    read_adapters();
    read_precision();
    read_attention();
    read_checkpoints();
    read_packing();
    read_shards();
    translate_rest(file_, {kAxolotlRead, kAxolotlNames, kAxolotlHarmless, kAxolotlRules}, all_);
    return std::move(all_);
  }

 private:
  void put(const std::string& key, const std::string& option, const std::string& value) {
    put_argument(all_, file_, key, option, value);
  }
  void refuse(const std::string& key, const std::string& what, const std::string& hint) {
    all_.fields.add_problem({file_.values().at(key).where, key + " " + what, hint});
  }

  void read_batch() {
    if (file_.has("micro_batch_size")) return;
    put("micro_batch_size", "--per_device_train_batch_size", "1");
    all_.assumed.emplace_back("1 sequence per GPU and micro-batch, axolotl's default");
  }

  void read_adapters() {
    const std::string adapter = lower_case(file_.word("adapter").value_or(""));
    const std::string dropout = file_.word("lora_dropout").value_or("0");
    const bool everywhere = file_.flag("lora_target_linear");
    const std::string targets = file_.word("lora_target_modules").value_or("");
    const bool four_bits = file_.flag("load_in_4bit");
    if (file_.flag("load_in_8bit")) put("load_in_8bit", "--load_in_8bit", "true");
    if (four_bits && adapter.empty())
      refuse("load_in_4bit", "is for adapters alone", "write adapter: qlora");
    if (adapter.empty()) return drop_adapters();
    if (adapter != "lora" && adapter != "qlora")
      refuse("adapter", "is " + adapter + ", which is not simulated", "known: lora, qlora");
    if (!file_.has("lora_r")) refuse("adapter", "has no lora_r beside it", "write it");
    if (const auto rank = file_.integer("lora_r")) put("lora_r", "--lora_r", std::to_string(*rank));
    put("adapter", "--use_peft", "true");
    put("lora_dropout", "--lora_dropout", dropout);
    const std::string beside = everywhere ? "all-linear" : targets;
    if (!beside.empty()) put("lora_target_modules", "--lora_target_modules", beside);
    if (four_bits || adapter == "qlora") hold_in_4_bits();
  }
  /// Of a job that trains all weights.
  void drop_adapters() {
    for (const char* key : {"lora_r", "lora_alpha", "lora_modules_to_save"})
      if (const auto value = file_.word(key))
        all_.ignored.push_back(std::string(key) + " = " + *value + ": there is no adapter");
  }

  void hold_in_4_bits() {
    put("load_in_4bit", "--load_in_4bit", "true");
    put("load_in_4bit", "--use_bnb_nested_quant", "true");
    all_.assumed.emplace_back("weights in nf4, scales in 8 bits: axolotl's bnb_config by default");
    all_.approximate.emplace_back(
        "adapters beside weights in 4 bits count in the step's 16 bits, as the rest of the model: "
        "peft holds them in fp32");
  }

  /// Weights are loaded in the format of the step (utils/config, normalize_config), and stay so.
  void read_precision() {
    const std::string brain = lower_case(file_.word("bf16").value_or(""));
    const bool is_brain = brain == "auto" || brain == "full" || file_.flag("bf16");
    const bool half = file_.flag("fp16") && !is_brain;
    const bool pure_brain = file_.flag("bfloat16");
    const bool pure_half = file_.flag("float16");
    if (brain == "auto") all_.assumed.emplace_back("bf16: auto takes it where the GPU has it");
    if (is_brain && brain != "full") put("bf16", "--bf16", "true");
    if (half) put("fp16", "--fp16", "true");
    const bool loads_brain = is_brain || pure_brain;
    if (!loads_brain && !half && !pure_half) return;
    put(loads_brain ? "bf16" : "fp16", "--torch_dtype", loads_brain ? "bfloat16" : "float16");
    all_.assumed.emplace_back(
        "weights in the step's 16 bits, as axolotl loads them; FSDP and DeepSpeed make their own");
  }

  void read_attention() {
    constexpr std::array<std::pair<const char*, const char*>, 3> kSwitches{
        {{"flash_attention", "flash_attention_2"},
         {"sdp_attention", "sdpa"},
         {"eager_attention", "eager"}}};
    for (const auto& [key, kernels] : kSwitches)
      if (file_.flag(key)) put(key, "--attn_implementation", kernels);
  }

  void read_checkpoints() {
    const std::string how = lower_case(file_.word("gradient_checkpointing").value_or("false"));
    if (how == "true") return put("gradient_checkpointing", "--gradient_checkpointing", "true");
    if (how == "false" || how.empty()) return;
    refuse("gradient_checkpointing", "is " + how + ", which offloads and is not simulated",
           "known: true, false");
  }

  /// Packed and padded sequences are full.
  void read_packing() {
    const bool packs = file_.flag("sample_packing");
    const bool pads = file_.flag("pad_to_sequence_len");
    const std::string length = file_.word("sequence_len").value_or("512");
    put("sequence_len", packs || pads ? "--block_size" : "--max_length", length);
    if (!file_.has("sequence_len"))
      all_.assumed.emplace_back("sequences of 512 tokens, axolotl's default of sequence_len");
    if (packs)
      all_.approximate.emplace_back(
          "sample_packing: documents see only themselves, and attention counts over whole "
          "sequences");
  }

  /// Version 2 has no list of words.
  void read_shards() {
    const std::string words = file_.word("fsdp").value_or("");
    const bool configured = file_.has("fsdp_config") || file_.has("fsdp_version");
    if (!words.empty() || configured)
      put("fsdp", "--fsdp", words.empty() ? "full_shard auto_wrap" : words);
    const std::string version = file_.word("fsdp_version").value_or("");
    std::string config = file_.word("fsdp_config").value_or("");
    if (!version.empty() && config.empty()) config = "{}";
    if (!version.empty() && config.starts_with("{"))
      config.insert(1, "\"version\": " + version + (config == "{}" ? "" : ", "));
    if (!config.empty()) put("fsdp_config", "--fsdp_config", config);
  }

  ForeignFields file_;
  TrainerArguments all_;
};

}  // namespace

TrainerArguments axolotl_arguments(ForeignFields file) {
  return AxolotlFile(std::move(file)).read();
}

}  // namespace tessera

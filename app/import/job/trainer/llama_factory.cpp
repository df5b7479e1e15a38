// LLaMA-Factory's files: the Trainer's arguments, and its own beside them.
#include <array>

#include "app/import/job/trainer/trainer_dialect.h"
#include "hw/units/input_error.h"
#include "hw/units/lower_case.h"

namespace tessera {
namespace {

constexpr std::array<std::pair<std::string_view, const char*>, 1> kLlamaFactoryNames{
    {{"additional_target", "--lora_modules_to_save"}}};

constexpr auto kLlamaFactoryRead = std::to_array<std::string_view>(
    {"stage", "do_train", "finetuning_type", "lora_rank", "lora_dropout", "lora_target", "use_dora",
     "use_rslora", "quantization_bit", "quantization_type", "quantization_method",
     "double_quantization", "disable_gradient_checkpointing", "use_reentrant_gc", "flash_attn",
     "cutoff_len", "packing", "neat_packing", "pure_bf16"});

constexpr auto kLlamaFactoryHarmless = std::to_array<std::string_view>({
    "template",
    "dataset_dir",
    "media_dir",
    "val_size",
    "max_samples",
    "eval_dataset",
    "plot_loss",
    "overwrite_cache",
    "tokenized_path",
    "adapter_name_or_path",
    "adapter_folder",
    "create_new_adapter",
    "pissa_",
    "loraplus_",
    "mask_history",
    "train_on_prompt",
    "mix_strategy",
    "interleave_probs",
    "buffer_size",
    "default_system",
    "tool_format",
    "enable_thinking",
    "ignore_pad_token_for_loss",
    "data_shared_file_system",
    "preprocessing_batch_size",
    "rope_scaling",
    "new_special_tokens",
    "split_special_tokens",
    "use_fast_tokenizer",
    "compute_accuracy",
    "disable_shuffling",
    "early_stopping_steps",
    "include_effective_tokens_per_second",
    "use_swanlab",
    "swanlab_",
    "ray_",
    "image_",
    "video_",
    "hf_hub_token",
    "ms_hub_token",
    "print_param_status",
    "infer_",
});

constexpr const char* kOtherStates = "is another optimizer, which is not simulated";
constexpr const char* kOtherKernels = "has kernels that are not simulated";
constexpr std::array kLlamaFactoryRules{
    UsualValue{"use_galore", "false", kOtherStates},
    UsualValue{"use_apollo", "false", kOtherStates},
    UsualValue{"use_badam", "false", kOtherStates},
    UsualValue{"use_adam_mini", "false", kOtherStates},
    UsualValue{"use_muon", "false", kOtherStates},
    UsualValue{"use_llama_pro", "false", "trains a part of the layers, which is not simulated"},
    UsualValue{"use_unsloth", "false", kOtherKernels},
    UsualValue{"use_unsloth_gc", "false", "offloads activations, which is not simulated"},
    UsualValue{"enable_liger_kernel", "false", kOtherKernels},
    UsualValue{"use_kt", "false", kOtherKernels},
    UsualValue{"shift_attn", "false", "is attention that is not simulated"},
    UsualValue{"mixture_of_depths", "none", "leaves out layers, which is not simulated"},
    UsualValue{"moe_aux_loss_coef", "none", "adds a loss, which is not simulated"},
    UsualValue{"upcast_layernorm", "false", "is not simulated"},
    UsualValue{"upcast_lmhead_output", "false", "is not simulated"},
    UsualValue{"resize_vocab", "false", "changes the model: give its new config.json by --model"},
    UsualValue{"train_mm_proj_only", "false", "trains a part of the model: not simulated"},
    UsualValue{"sequence_parallel_size", "1", "splits sequences, which is not simulated"},
    UsualValue{"use_ray", "false", "starts workers of Ray, which are not read"},
};

class LlamaFactoryFile {
 public:
  explicit LlamaFactoryFile(ForeignFields file) : file_(std::move(file)) {}

  TrainerArguments read() {
    all_.is_of_another = true;
    read_stage();
    read_adapters();
    read_bits();
    read_checkpoints();
    read_attention();
    read_length();
    read_weights();
    translate_rest(
        file_, {kLlamaFactoryRead, kLlamaFactoryNames, kLlamaFactoryHarmless, kLlamaFactoryRules},
        all_);
    return std::move(all_);
  }

 private:
  void put(const std::string& key, const std::string& option, const std::string& value) {
    put_argument(all_, file_, key, option, value);
  }
  /// What `key` says, else LLaMA-Factory's default.
  std::string word_or(const std::string& key, const std::string& usual) {
    return file_.word(key).value_or(usual);
  }
  void refuse(const std::string& key, const std::string& what, const std::string& hint) {
    const auto found = file_.values().find(key);
    const auto& any = file_.values().begin()->second.where;
    all_.fields.add_problem(
        {found == file_.values().end() ? any : found->second.where, what, hint});
  }

  void read_stage() {
    stage_ = word_or("stage", "sft");
    if (stage_ != "sft" && stage_ != "pt")
      refuse("stage",
             "stage is " + stage_ + ", whose step runs other models beside the one that is trained",
             "known: sft, pt; the memory of the trained model alone is that of its config.json");
    if (!file_.flag("do_train"))
      refuse("do_train", "do_train is not true: the job evaluates alone", "write do_train: true");
    put("stage", "--do_train", "true");
  }

  /// hparams/finetuning_args.py: rank 8, no dropout, beside all linear layers.
  void read_adapters() {
    const std::string type = word_or("finetuning_type", "lora");
    adapts_ = type == "lora";
    if (type != "lora" && type != "full")
      refuse("finetuning_type", "finetuning_type is " + type + ", which is not simulated",
             "known: lora, full");
    if (!file_.has("finetuning_type"))
      all_.assumed.emplace_back("adapters (LoRA), LLaMA-Factory's default");
    const std::string rank = std::to_string(file_.integer("lora_rank").value_or(8));
    const std::string dropout = word_or("lora_dropout", "0");
    const std::string targets = word_or("lora_target", "all");
    const std::string dora = word_or("use_dora", "false");
    const std::string rslora = word_or("use_rslora", "false");
    if (!adapts_) return;
    put("finetuning_type", "--use_peft", "true");
    put("lora_rank", "--lora_r", rank);
    put("lora_dropout", "--lora_dropout", dropout);
    put("use_dora", "--use_dora", dora);
    put("use_rslora", "--use_rslora", rslora);
    put("lora_target", "--lora_target_modules",
        targets == "all" ? "all-linear" : words_of_list(targets));
    if (!file_.has("lora_rank"))
      all_.assumed.emplace_back("adapters of rank 8, LLaMA-Factory's default");
    if (!file_.has("lora_target"))
      all_.assumed.emplace_back("adapters beside all linear layers, LLaMA-Factory's default");
  }

  void read_bits() {
    const std::string bits = word_or("quantization_bit", "");
    const std::string type = word_or("quantization_type", "nf4");
    const std::string twice = word_or("double_quantization", "true");
    const std::string method = lower_case(word_or("quantization_method", "bnb"));
    if (bits.empty()) return;
    if (method != "bnb" && method != "bitsandbytes")
      refuse("quantization_method", "quantization_method is " + method + ", which is not simulated",
             "known: bnb");
    if (bits != "4") return put("quantization_bit", "--load_in_8bit", "true");
    put("quantization_bit", "--load_in_4bit", "true");
    put("quantization_type", "--bnb_4bit_quant_type", type);
    put("double_quantization", "--use_bnb_nested_quant", twice);
    all_.approximate.emplace_back(
        "adapters beside weights in 4 bits count in the step's 16 bits, as the rest of the model: "
        "LLaMA-Factory holds them in fp32");
  }

  /// model/model_utils/checkpointing.py: on unless it is forbidden, whatever the Trainer is told.
  void read_checkpoints() {
    const bool forbidden = file_.flag("disable_gradient_checkpointing");
    const bool asked = file_.flag("gradient_checkpointing");
    const std::string reentrant = word_or("use_reentrant_gc", "true");
    if (forbidden && !asked) return;
    put("disable_gradient_checkpointing", "--gradient_checkpointing", "true");
    put("use_reentrant_gc", "--gradient_checkpointing_kwargs",
        "{\"use_reentrant\": " + reentrant + "}");
    if (!asked)
      all_.assumed.emplace_back(
          "full recomputation, LLaMA-Factory's default: disable_gradient_checkpointing turns it "
          "off");
  }

  void read_attention() {
    constexpr std::array<std::pair<std::string_view, const char*>, 5> kKernels{
        {{"auto", ""},
         {"disabled", "eager"},
         {"sdpa", "sdpa"},
         {"fa2", "flash_attention_2"},
         {"fa3", "flash_attention_3"}}};
    const std::string name = lower_case(word_or("flash_attn", "auto"));
    for (const auto& [own, kernels] : kKernels) {
      if (own != name) continue;
      if (*kernels != '\0') put("flash_attn", "--attn_implementation", kernels);
      return;
    }
    refuse("flash_attn", "flash_attn is " + name + ", which is not known",
           "known: auto, disabled, sdpa, fa2, fa3");
  }

  /// Packed sequences are full, and pre-training packs by itself.
  void read_length() {
    const std::string length = word_or("cutoff_len", "2048");
    const bool separates = file_.flag("neat_packing");
    const bool packs = file_.has("packing") ? file_.flag("packing") : stage_ == "pt" || separates;
    put("cutoff_len", packs ? "--block_size" : "--cutoff_len", length);
    if (!file_.has("cutoff_len"))
      all_.assumed.emplace_back("sequences of 2048 tokens, LLaMA-Factory's default of cutoff_len");
    if (separates)
      all_.approximate.emplace_back(
          "neat_packing: documents see only themselves, and attention counts over whole sequences");
  }

  /// model/adapter.py: frozen weights are in the step's format, trained ones in fp32, but for
  /// pure_bf16.
  void read_weights() {
    const bool pure = file_.flag("pure_bf16");
    const bool brain = lower_case(word_or_kept("bf16")) == "true";
    const bool half = lower_case(word_or_kept("fp16")) == "true";
    if (pure) return put("pure_bf16", "--torch_dtype", "bfloat16");
    if (adapts_) put("bf16", "--torch_dtype", brain ? "bfloat16" : half ? "float16" : "auto");
  }
  /// Without asking for it: the Trainer reads it too.
  std::string word_or_kept(const std::string& key) const {
    const auto found = file_.values().find(key);
    return found == file_.values().end() ? "" : found->second.text;
  }

  ForeignFields file_;
  TrainerArguments all_;
  std::string stage_;
  bool adapts_ = false;
};

}  // namespace

TrainerArguments llama_factory_arguments(ForeignFields file) {
  return LlamaFactoryFile(std::move(file)).read();
}

}  // namespace tessera

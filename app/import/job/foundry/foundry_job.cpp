// llm-foundry's YAML (scripts/train/yamls; recalled).
#include "app/import/job/foundry/foundry_job.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "app/import/job/deepspeed_config.h"
#include "app/import/job/foundry/foundry_keys.h"
#include "app/import/job/judged_keys.h"
#include "app/import/job/scenario_draft.h"
#include "hw/units/lower_case.h"

namespace tessera {
namespace {

bool is_harmless(const std::string& name) {
  return std::ranges::any_of(foundry::kHarmless,
                             [&](std::string_view begin) { return name.starts_with(begin); });
}

/// "${max_seq_len}", "${variables.max_seq_len}": OmegaConf's, of a whole value.
ForeignFields resolved(const ForeignFields& given) {
  ForeignFields fields = given;
  const auto& values = given.values();
  for (const auto& [name, value] : values) {
    std::string text = value.text;
    constexpr int kDeepest = 8;
    for (int depth = 0; depth < kDeepest && text.starts_with("${") && text.ends_with("}");
         ++depth) {
      const auto found = values.find(text.substr(2, text.size() - 3));
      if (found == values.end() && is_harmless(name)) break;
      if (found == values.end())
        throw InputError({value.where, name + " is " + text + ", which the file does not have",
                          "write the value, or the field that it refers to"});
      text = found->second.text;
    }
    if (text != value.text) fields.add(name, {text, value.where});
  }
  return fields;
}

class FoundryJob {
 public:
  FoundryJob(ForeignFields in, const JobOptions& options, std::string name)
      : in_(std::move(in)), options_(options), name_(std::move(name)) {}

  ImportedJob read() {
    read_model();
    read_precision();
    read_sharding();
    read_optimizer();
    read_compiler();
    const BatchSizes sizes = batch();
    judge_keys(draft_, in_, options_, {foundry::kRead, foundry::kHarmless, foundry::kRules});
    say_left_out(draft_, options_);
    set_data_parallel_job(draft_, in_, options_, sizes);
    return draft_.finish(in_);
  }

 private:
  static constexpr const char* kProfile = "llm-foundry";
  static constexpr std::int64_t kMostOfAnything = 100'000'000;

  std::int64_t size(const std::string& key) {
    if (!in_.text(key)) in_.refuse(key, "is missing", "write it, as llm-foundry's examples do");
    return std::min(in_.integer(key).value_or(1), kMostOfAnything);
  }
  bool is_on(const std::string& key) { return word_or(key, "false") == "true"; }
  std::string word_or(const std::string& key, const std::string& usual) {
    return lower_case(in_.text(key).value_or(usual));
  }

  /// MPT by its dimensions; another by --model.
  void read_model() {
    const std::string kind = in_.text("model.name").value_or("");
    JobOptions options = options_;
    if (options.framework.empty()) {
      options.framework = kProfile;
      draft_.assume("kernels of 2023, which profile llm-foundry was read from and measured with");
    }
    if (options.sequence_length == 0) options.sequence_length = size("max_seq_len");
    if (kind == "mpt_causal_lm") return read_mpt(options);
    if (kind != "hf_causal_lm")
      in_.refuse("model.name", kind.empty() ? "is missing" : "is " + kind,
                 "known: mpt_causal_lm, hf_causal_lm");
    if (kind == "hf_causal_lm" && options.model.empty())
      in_.refuse("model.pretrained_model_name_or_path",
                 "is " + in_.text("model.pretrained_model_name_or_path").value_or("missing") +
                     ", of which nothing is fetched",
                 "add --model with its config.json, or an id of tessera list models");
    in_.finish();
    set_model_and_framework(draft_, options, name_, kProfile);
    const bool flash = is_on("model.use_flash_attention_2") ||
                       word_or("model.attn_implementation", "") == "flash_attention_2";
    draft_.set_in_framework("attention", "flash2");
    if (!flash) draft_.assume("fused attention (sdpa), which transformers chooses since 4.36");
  }

  void read_mpt(const JobOptions& options) {
    if (!options.model.empty())
      throw InputError({"--model", "is not for mpt_causal_lm, which the file describes",
                        "leave it out, or correct model of " + name_});
    draft_.set_text("name", std::filesystem::path(name_).stem().string());
    draft_.set_text("model.name", std::filesystem::path(name_).stem().string());
    draft_.set("model.layers", size("model.n_layers"));
    const std::int64_t hidden = size("model.d_model");
    draft_.set("model.hidden", hidden);
    draft_.set("model.heads", size("model.n_heads"));
    draft_.set("model.ffn", in_.integer("model.expansion_ratio").value_or(4) * hidden);
    draft_.set("model.vocab", size("model.vocab_size"));
    draft_.set("model.activation", "gelu");
    draft_.set("model.hidden_dropout", dropout("model.resid_pdrop"));
    draft_.set("model.attention_dropout", dropout("model.attn_config.attn_pdrop"));
    const bool tied = word_or("model.tie_word_embeddings", "true") == "true";
    draft_.set("model.tied_embeddings", tied ? "true" : "false");
    draft_.set_text("training.framework", options.framework);
    draft_.set("training.sequence_length", options.sequence_length);
    read_positions(options.sequence_length);
    read_attention();
  }

  std::string dropout(const std::string& key) {
    const auto given = in_.number(key);
    return given ? *in_.text(key) : "0";
  }

  /// ALiBi is family mpt, which has no biases; learned positions are GPT with biases.
  void read_positions(std::int64_t length) {
    const bool alibi = is_on("model.attn_config.alibi");
    const bool biases = !is_on("model.no_bias");
    const bool learned = word_or("model.learned_pos_emb", "true") == "true";
    draft_.set("model.family", alibi ? "mpt" : "gpt2");
    if (is_on("model.attn_config.rope"))
      leave_out_value(draft_, in_, options_, "model.attn_config.rope",
                      "turns queries and keys, which MPT's layers here do not", "");
    const std::int64_t positions = in_.integer("model.max_seq_len").value_or(length);
    if (!alibi) draft_.set("model.max_positions", std::max(positions, length));
    if (!alibi && !learned)
      leave_out_value(draft_, in_, options_, "model.learned_pos_emb",
                      "without alibi leaves the model without positions: not simulated", "");
    if (alibi && biases)
      draft_.approximate("biases beside ALiBi are left out: model.no_bias is not true");
    if (!alibi && !biases)
      draft_.approximate("model.no_bias = true: linear layers and norms count with biases");
  }

  void read_attention() {
    const std::string kKernels = "model.attn_config.attn_impl";
    const std::string kernels = word_or(kKernels, "flash");
    if (kernels == "torch") return draft_.set_in_framework("attention", "unfused");
    if (kernels == "flash") {
      draft_.set_in_framework("attention", "flash2");
      return draft_.assume("attn_impl flash is FlashAttention-2, as since autumn 2023");
    }
    if (kernels != "triton")
      leave_out_value(draft_, in_, options_, kKernels, "is not simulated",
                      "known: triton, flash, torch");
  }

  void read_precision() {
    const std::string kPrecision = "precision";
    const std::string given = word_or(kPrecision, "amp_bf16");
    if (!in_.text(kPrecision)) draft_.assume("precision amp_bf16: the file names none");
    constexpr std::array<std::pair<std::string_view, const char*>, 3> kKnown{
        {{"amp_bf16", "bf16"}, {"amp_fp16", "fp16"}, {"fp32", "fp32"}}};
    const auto known = std::ranges::find(kKnown, given, [](const auto& one) { return one.first; });
    precision_ = known == kKnown.end() ? "bf16" : known->second;
    draft_.set("training.precision", precision_);
    if (known == kKnown.end())
      leave_out_value(draft_, in_, options_, kPrecision, "is not simulated",
                      "known: amp_bf16, amp_fp16, fp32");
  }

  bool has_fsdp() const {
    return std::ranges::any_of(
        in_.values(), [](const auto& field) { return field.first.starts_with("fsdp_config"); });
  }

  /// Composer's FSDP; without its section PyTorch's DDP under autocast.
  void read_sharding() {
    if (!has_fsdp()) {
      draft_.set("training.data_parallel.sharding", "none");
      return draft_.assume("DistributedDataParallel: the file has no fsdp_config");
    }
    const std::string kStrategy = "fsdp_config.sharding_strategy";
    const std::string strategy = word_or(kStrategy, "full_shard");
    const bool holds = strategy == "shard_grad_op";
    draft_.set("training.data_parallel.sharding", strategy == "no_shard" ? "none"
                                                  : holds                ? "gradients"
                                                                         : "parameters");
    if (holds) draft_.set("training.data_parallel.gather_units", "true");
    if (strategy != "full_shard" && !holds && strategy != "no_shard")
      leave_out_value(draft_, in_, options_, kStrategy, "is not read",
                      "known: FULL_SHARD, SHARD_GRAD_OP, NO_SHARD");
    read_formats();
    read_checkpoints();
    const std::string kLimit = "fsdp_config.limit_all_gathers";
    if (word_or(kLimit, "true") == "false") draft_.set("training.data_parallel.units_ahead", "0");
    if (!is_on("fsdp_config.cpu_offload")) return;
    for (const char* field : {"training.offload_optimizer", "training.offload_parameters"})
      draft_.set(field, "true");
  }

  /// composer/trainer/mosaic_fsdp_utils.py, get_mixed_precision: PURE reduces in 16 bits, DEFAULT
  /// in fp32, FULL gathers in fp32 too.
  void read_formats() {
    const std::string kMixed = "fsdp_config.mixed_precision";
    const std::string mixed = word_or(kMixed, "default");
    if (!in_.text(kMixed)) draft_.assume("gradients are reduced in fp32, Composer's DEFAULT");
    if (mixed == "pure" && precision_ != "fp32")
      draft_.set("training.mixed_precision.reduce", precision_);
    if (mixed != "pure" && mixed != "default")
      leave_out_value(draft_, in_, options_, kMixed, "is not simulated", "known: PURE, DEFAULT");
  }

  void read_checkpoints() {
    const std::string kReentrant = "fsdp_config.activation_checkpointing_reentrant";
    const std::string reentrant = word_or(kReentrant, "true");
    if (!is_on("fsdp_config.activation_checkpointing")) return;
    draft_.set("training.recompute", "full");
    if (!in_.text(kReentrant)) draft_.assume("reentrant checkpoints, Composer's default");
    draft_.set_in_framework("reentrant_checkpoints", reentrant);
  }

  void read_optimizer() {
    const std::string name = word_or("optimizer.name", "missing");
    if (name != "decoupled_adamw" && name != "adamw" && name != "adam")
      leave_out_value(draft_, in_, options_, "optimizer.name",
                      name == "missing" ? "is missing" : "is not simulated",
                      "known: decoupled_adamw, adamw, adam");
    const std::string kClipping = "algorithms.gradient_clipping.clipping_type";
    const auto clipping = in_.text(kClipping);
    in_.number("algorithms.gradient_clipping.clipping_threshold");
    draft_.set("training.clip_gradients", clipping ? "true" : "false");
    if (clipping && *clipping != "norm")
      leave_out_value(draft_, in_, options_, kClipping, "is not simulated", "known: norm");
  }

  /// Any section compiles, an empty one too.
  void read_compiler() {
    const bool compiles = std::ranges::any_of(in_.values(), [](const auto& field) {
      return field.first.starts_with("compile_config") && !field.second.text.empty() &&
             field.second.text != "null";
    });
    in_.text("compile_config");
    if (compiles) draft_.set("training.kernels", "fused");
  }

  /// The file has the sequences of a step and of a GPU's micro-batch, and never the GPUs.
  BatchSizes batch() {
    const std::string kMicro = "device_train_microbatch_size";
    BatchSizes sizes{.global = size("global_train_batch_size")};
    if (in_.is_auto(kMicro) && options_.micro_batch == 0)
      in_.refuse(kMicro, "is auto, which tries what fits", "add --micro-batch");
    sizes.micro = in_.integer(kMicro).value_or(0);
    for (const char* old : {"device_train_grad_accum", "grad_accum"})
      if (const auto turns = in_.integer(old)) sizes.accumulation = *turns;
    return fitted(sizes);
  }

  /// A GPU with fewer sequences than a micro-batch takes those that it has (Composer's
  /// _adjust_device_train_microbatch_size).
  BatchSizes fitted(BatchSizes sizes) {
    const std::int64_t gpus = options_.gpus > 0 ? options_.gpus : options_.cluster_gpus;
    if (gpus == 0)
      in_.refuse("global_train_batch_size", "leaves the number of GPUs open", "add --gpus");
    const std::int64_t own =
        std::max<std::int64_t>(1, sizes.global / std::max<std::int64_t>(1, gpus));
    if (gpus == 0 || sizes.micro <= own || options_.micro_batch > 0) return sizes;
    draft_.assume("micro-batches of " + std::to_string(own) + ": a GPU has no more sequences");
    sizes.micro = own;
    return sizes;
  }

  ForeignFields in_;
  const JobOptions& options_;
  std::string name_;
  ScenarioDraft draft_;
  std::string precision_;
};

}  // namespace

bool holds_foundry_job(const YamlNode& tree) {
  const auto has = [&](const char* key) { return tree.find(key) != nullptr; };
  const bool trains = has("global_train_batch_size") || has("device_train_microbatch_size");
  return !has("training") && (trains || (has("max_seq_len") && has("train_loader")));
}

ImportedJob import_foundry(const std::string& text, const std::string& name,
                           const JobOptions& options) {
  if (!holds_foundry_job(foreign_tree(text, name)))
    throw InputError({name, "is no training file of llm-foundry",
                      "it has global_train_batch_size, or max_seq_len and train_loader"});
  return import_foundry_fields(read_fields(text, name, true), name, options);
}

ImportedJob import_foundry_fields(ForeignFields fields, const std::string& name,
                                  const JobOptions& options) {
  return FoundryJob(resolved(fields), options, name).read();
}

}  // namespace tessera

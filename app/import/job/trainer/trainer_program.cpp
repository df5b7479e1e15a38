// What the arguments of Hugging Face's Trainer ask of the step.
#include "app/import/job/trainer/trainer_program.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "app/import/job/deepspeed_config.h"
#include "app/import/job/fused_attention.h"
#include "app/import/job/trainer/trainer_adapters.h"
#include "app/import/job/trainer/trainer_arguments.h"
#include "hw/units/lower_case.h"
#include "sim/config/suggest.h"
#include "workloads/model_spec.h"

namespace tessera {
namespace {

void read_clipping(ScenarioDraft& draft, ForeignFields& in, const std::string& kind) {
  const auto norm = in.number("--max_grad_norm");
  if (!norm || *norm > 0) return;
  if (kind != "DEEPSPEED") return draft.set("training.clip_gradients", "false");
  draft.ignore("--max_grad_norm = 0: gradient_clipping of DeepSpeed's file decides");
}

void read_optimizer(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                    const std::string& kind) {
  const auto given = in.text("--optim");
  if (kind == "DEEPSPEED") {
    if (!given) return;
    const bool is_adam = given->starts_with("adamw_torch") || *given == "adamw_hf";
    if (is_adam) return draft.ignore("--optim = " + *given + ": AdamW in either case");
    return leave_out_value(draft, in, options, "--optim", "beside DeepSpeed is not simulated",
                           "name the optimizer in DeepSpeed's file");
  }
  if (!given)
    return draft.assume(
        "AdamW in the kernels of the profile: the default of --optim is "
        "adamw_torch or adamw_torch_fused by version");
  std::string name = lower_case(*given);
  const bool is_paged = name.starts_with("paged_");
  if (is_paged) name.erase(0, 6);
  if (is_paged)
    draft.approximate("--optim " + *given +
                      ": states that leave the GPU where memory runs short "
                      "are counted on it");
  const bool eight = name == "adamw_bnb_8bit" || name == "adamw_8bit";
  if (eight) return draft.set("training.mixed_precision.optimizer_states", "int8");
  if (name == "adamw_32bit") draft.set("training.mixed_precision.optimizer_states", "fp32");
  if (name == "sgd") return draft.set("training.optimizer", "sgd");
  const bool fused = name == "adamw_torch_fused";
  if (fused || name == "adamw_torch" || name == "adamw_hf" || name == "adamw" ||
      name == "adamw_32bit")
    return draft.set_in_framework("fused_optimizer", fused ? "true" : "false");
  leave_out_value(draft, in, options, "--optim", "is not simulated",
                  "known: adamw_torch, adamw_torch_fused, adamw_bnb_8bit, sgd");
}

bool mixes(ForeignFields& in) {
  return in.text("mixed_precision").value_or("no") != "no";
}

void read_kernels(ScenarioDraft& draft, ForeignFields& in) {
  // A backend or a mode turns it on (training_args.py, __post_init__).
  const bool is_meant = in.has("--torch_compile_backend") || in.has("--torch_compile_mode");
  if (in.flag("--torch_compile") || is_meant) draft.set("training.kernels", "fused");
  const bool tf32 = in.flag("--tf32");
  if (tf32 && mixes(in)) draft.ignore("--tf32: products are in 16 bits");
  if (tf32 && !mixes(in)) draft.set("training.precision", "tf32");
}

/// What a profile names kernels of attention that transformers names so; "": it has none.
std::string attention_of(const std::string& kernels) {
  constexpr std::array<std::pair<std::string_view, const char*>, 8> kKnown{
      {{"flash_attention_2", "flash2"},
       {"sdpa", "flash2"},
       {"flash_attention_3", "flash3"},
       {"eager", "unfused"},
       {"kernels-community/flash-attn", "flash2"},
       {"kernels-community/flash-attn2", "flash2"},
       {"kernels-community/flash-attn3", "flash3"},
       {"kernels-community/vllm-flash-attn3", "flash3"}}};
  const auto known = std::ranges::find(kKnown, kernels, [](const auto& one) { return one.first; });
  return known == kKnown.end() ? "" : known->second;
}

bool computes_in_16_bits(ForeignFields& in) {
  if (mixes(in)) return true;
  for (const char* name : {"--torch_dtype", "--dtype"})
    if (const auto given = in.word(name); given && *given != "float32") return true;
  return false;
}

/// Of a kind whose profile has no fused attention; transformers chooses it by itself since 4.36.
void assume_attention(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                      const std::string& kind) {
  const bool is_open = options.framework.empty() && kind != "FSDP" && kind != "MEGATRON_LM";
  if (is_open && options.spec)
    assume_fused_attention(draft, options.spec->family, computes_in_16_bits(in),
                           "--attn_implementation eager");
}

void read_attention(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                    const std::string& kind) {
  for (const char* name : {"--attn_implementation", "--attention_implementation"}) {
    const auto kernels = in.text(name);
    if (!kernels) continue;
    const std::string attention = attention_of(*kernels);
    if (!attention.empty()) return draft.set_in_framework("attention", attention);
    return leave_out_value(draft, in, options, name, "is not simulated",
                           "known: eager, sdpa, flash_attention_2, flash_attention_3");
  }
  for (const char* name : {"--use_flash_attn", "--use_flash_attention_2"})
    if (in.flag(name)) return draft.set_in_framework("attention", "flash2");
  assume_attention(draft, in, options, kind);
}

/// "bf16" of "bfloat16"; what the checkpoint has is that of the step, or bf16.
std::string format_of_weights(ScenarioDraft& draft, ForeignFields& in, const std::string& name) {
  const std::string given = in.word(name).value_or("");
  if (given == "bfloat16" || given == "bf16") return "bf16";
  if (given == "float16" || given == "fp16") return "fp16";
  if (given != "auto") return "";
  const std::string mixed = in.text("mixed_precision").value_or("no");
  const std::string format = mixed == "fp16" ? mixed : "bf16";
  draft.assume("weights in " + format + ": " + name + " auto takes what the checkpoint has");
  return format;
}

/// Where weights that are loaded in 16 bits do not stay so; "": they do.
std::string why_weights_change(ForeignFields& in, const std::string& kind) {
  if (kind == "DEEPSPEED") return "DeepSpeed's file says the precision";
  if (kind == "FSDP" && mixes(in)) return "accelerate makes weights fp32 under mixed precision";
  return "";
}

void hold_all_in(ScenarioDraft& draft, const std::string& format) {
  for (const char* part : {"parameters", "gradients", "reduce", "optimizer_states"})
    draft.set(std::string("training.mixed_precision.") + part, format);
  draft.set("training.mixed_precision.master_weights", "false");
}

/// The format in 16 bits that weights are loaded in and stay in; empty: fp32.
std::string read_weights(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                         const std::string& kind) {
  for (const char* name : {"--torch_dtype", "--dtype"}) {
    const std::string given = in.word(name).value_or("");
    if (given.empty() || given == "float32" || given == "None" || given == "null") continue;
    if (const std::string why = why_weights_change(in, kind); !why.empty()) {
      draft.ignore(std::string(name) + " = " + given + ": " + why);
      continue;
    }
    const std::string format = format_of_weights(draft, in, name);
    if (format.empty()) {
      leave_out_value(draft, in, options, name, "is not simulated",
                      "known: auto, float32, bfloat16, float16");
      continue;
    }
    if (!mixes(in)) draft.set("training.precision", format);
    hold_all_in(draft, format);
    return format;
  }
  return "";
}

/// DDP's buckets, in units of 2^20 bytes.
void read_buckets(ScenarioDraft& draft, ForeignFields& in, const std::string& kind) {
  const auto size = in.integer("--ddp_bucket_cap_mb");
  if (!size) return;
  if (kind != "MULTI_GPU") return draft.ignore("--ddp_bucket_cap_mb: of DDP alone");
  draft.set("training.data_parallel.bucket",
            std::to_string(std::min<std::int64_t>(*size, 1'000'000) << 20) + " B");
}

/// How sequences fill batches, and what runs between steps.
void read_data(ScenarioDraft& draft, ForeignFields& in) {
  const std::string strategy = in.text("--packing_strategy").value_or("bfd");
  const bool packs = in.flag("--packing");
  if (packs && strategy != "wrapped")
    draft.approximate(
        "--packing: documents see only themselves (TRL since 0.18 under FlashAttention), and "
        "attention counts over whole sequences");
  if (!packs && !in.has("--block_size"))
    draft.assume("every sequence is as long as that: shorter ones are padded to a batch's longest");
  const std::string when =
      in.text("--eval_strategy").value_or(in.text("--evaluation_strategy").value_or("no"));
  const bool evaluates = lower_case(when) != "no" || in.flag("--do_eval");
  if (!evaluates) return;
  constexpr std::int64_t kUsual = 8;
  const std::int64_t own = in.integer("--per_device_train_batch_size").value_or(kUsual);
  const std::int64_t sequences = in.integer("--per_device_eval_batch_size").value_or(kUsual);
  const std::string batches = "evaluation runs " + std::to_string(sequences) + " sequences per GPU";
  if (sequences > own)
    draft.approximate(batches + " beside " + std::to_string(own) +
                      " of training: its memory is not counted");
  else
    draft.ignore(batches + ", no more than training");
}

std::string hint_for_argument(const std::string& key) {
  const std::vector<std::string> known(trainer::kRead.begin(), trainer::kRead.end());
  const std::string best = nearest(key, known);
  return best.empty() ? "take it out of the script where it does not"
                      : "write " + best.substr(2) + " if that is meant";
}

/// Arguments that nothing has asked for: harmless, refused, or not known.
void judge_arguments(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options) {
  for (const UsualValue& rule : trainer::kRules) {
    const std::string key(rule.key);
    if (in.was_read(key)) continue;  // with adapters
    const auto value = in.word(key);
    if (!value || lower_case(*value) == rule.usual) continue;
    leave_out_value(draft, in, options, key, rule.what, "");
  }
  for (const std::string& key : in.unread_names()) {
    if (!key.starts_with("--")) continue;
    const bool harmless =
        std::ranges::any_of(trainer::kHarmless,
                            [&](std::string_view begin) { return key.starts_with(begin); }) ||
        std::ranges::find(trainer::kHarmlessNames, key) != trainer::kHarmlessNames.end();
    const std::string value = in.word(key).value_or("");
    if (harmless || lower_case(value) == "false")
      draft.ignore(key + (value.empty() ? "" : " = " + value));
    else
      leave_out_value(draft, in, options, key,
                      "is not known: whether the step depends on it cannot be told",
                      hint_for_argument(key));
  }
}

}  // namespace

void read_trainer_program(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                          const std::string& kind) {
  in.text("--model_name_or_path");
  if (in.flag("--gradient_checkpointing")) draft.set("training.recompute", "full");
  const std::string how = in.text("--gradient_checkpointing_kwargs").value_or("");
  if (how.find("use_reentrant") != std::string::npos)
    draft.set_in_framework("reentrant_checkpoints",
                           lower_case(how).find("true") != std::string::npos ? "true" : "false");
  read_clipping(draft, in, kind);
  read_kernels(draft, in);
  read_attention(draft, in, options, kind);
  const std::string weights = read_weights(draft, in, options, kind);
  read_trainer_adapters(draft, in, options, kind, weights);
  read_optimizer(draft, in, options, kind);  // its states are its own, whatever holds the weights
  read_data(draft, in);
  read_buckets(draft, in, kind);
  judge_arguments(draft, in, options);
}

}  // namespace tessera

// What the arguments of Hugging Face's Trainer ask of the step.
#include "app/import/job/trainer/trainer_program.h"

#include <algorithm>
#include <string_view>

#include "app/import/job/deepspeed_config.h"
#include "app/import/job/trainer/trainer_adapters.h"
#include "app/import/job/trainer/trainer_arguments.h"
#include "hw/units/lower_case.h"

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
  if (name == "sgd") return draft.set("training.optimizer", "sgd");
  const bool fused = name == "adamw_torch_fused";
  if (fused || name == "adamw_torch" || name == "adamw_hf" || name == "adamw" ||
      name == "adamw_32bit")
    return draft.set_in_framework("fused_optimizer", fused ? "true" : "false");
  leave_out_value(draft, in, options, "--optim", "is not simulated",
                  "known: adamw_torch, adamw_torch_fused, adamw_bnb_8bit, sgd");
}

void read_kernels(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options) {
  if (in.flag("--torch_compile")) draft.set("training.kernels", "fused");
  const bool mixes = in.text("mixed_precision").value_or("no") != "no";
  const bool tf32 = in.flag("--tf32");
  if (tf32 && mixes) draft.ignore("--tf32: products are in 16 bits");
  if (tf32 && !mixes) draft.set("training.precision", "tf32");
  for (const char* name : {"--attn_implementation", "--attention_implementation"}) {
    const auto kernels = in.text(name);
    if (!kernels) continue;
    if (*kernels == "flash_attention_2" || *kernels == "sdpa")
      draft.set_in_framework("attention", "flash2");
    else if (*kernels == "flash_attention_3")
      draft.set_in_framework("attention", "flash3");
    else if (*kernels == "eager")
      draft.set_in_framework("attention", "unfused");
    else
      leave_out_value(draft, in, options, name, "is not simulated",
                      "known: eager, sdpa, flash_attention_2");
  }
}

/// Weights that are loaded in 16 bits stay so, but where FSDP or DeepSpeed keep fp32 ones.
void read_weights(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                  const std::string& kind) {
  for (const char* name : {"--torch_dtype", "--dtype"}) {
    const auto given = in.text(name);
    if (!given || *given == "float32") continue;
    const bool mixes = in.text("mixed_precision").value_or("no") != "no";
    if (kind == "DEEPSPEED" || (kind == "FSDP" && mixes)) {
      draft.ignore(std::string(name) + " = " + *given + ": " +
                   (kind == "FSDP" ? "accelerate makes weights fp32 under mixed precision"
                                   : "DeepSpeed's file says the precision"));
      continue;
    }
    const std::string format = *given == "bfloat16" ? "bf16" : *given == "float16" ? "fp16" : "";
    if (format.empty()) {
      leave_out_value(draft, in, options, name, "is not simulated",
                      "known: float32, bfloat16, float16");
      continue;
    }
    if (!mixes) draft.set("training.precision", format);
    for (const char* part : {"parameters", "gradients", "reduce", "optimizer_states"})
      draft.set(std::string("training.mixed_precision.") + part, format);
    draft.set("training.mixed_precision.master_weights", "false");
  }
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
    const bool harmless = std::ranges::any_of(
        trainer::kHarmless, [&](std::string_view begin) { return key.starts_with(begin); });
    const std::string value = in.word(key).value_or("");
    if (harmless || lower_case(value) == "false")
      draft.ignore(key + (value.empty() ? "" : " = " + value));
    else
      leave_out_value(draft, in, options, key,
                      "is not known: whether the step depends on it cannot be told",
                      "take it out of the script where it does not");
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
  read_optimizer(draft, in, options, kind);
  read_kernels(draft, in, options);
  read_weights(draft, in, options, kind);
  read_trainer_adapters(draft, in, options, kind);
  judge_arguments(draft, in, options);
}

}  // namespace tessera

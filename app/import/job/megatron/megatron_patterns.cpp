// Megatron-LM's arguments: in what layers differ.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "app/import/job/layer_list.h"
#include "app/import/job/megatron/megatron_job.h"
#include "workloads/layer_patterns.h"

namespace tessera {
namespace {

bool is_none(const std::string& text) {
  return text.empty() || text == "None" || text == "none";
}

}  // namespace

/// "128,0": a token sees so many before it, and itself. Of --window-attn-skip-freq n every n-th
/// layer sees all; a list has 1 for layers with the window.
void MegatronJob::read_window(std::string& letters) {
  const std::string sizes = text("--window-size").value_or("");
  const std::string skip = text("--window-attn-skip-freq").value_or("");
  if (is_none(sizes) || sizes.starts_with("-1") || sizes.starts_with("(-1")) return;
  const auto comma = sizes.find(',');
  const auto before = whole_number(
      sizes.substr(sizes.front() == '(' ? 1 : 0, comma - (sizes.front() == '(' ? 1 : 0)));
  if (!before || comma == std::string::npos)
    return cannot("--window-size", "is no pair of tokens before and behind", "use 128,0");
  const auto flags =
      layer_flags(is_none(skip) ? "[1]*" + std::to_string(layers_) : skip, layers_, true);
  if (!flags)
    return cannot(
        "--window-attn-skip-freq",
        "is neither a number nor a list of 0 and 1 for " + std::to_string(layers_) + " layers",
        "use n, where every n-th layer has no window, or [1,1,0]*n");
  window_ = *before + 1;
  for (std::size_t i = 0; i < letters.size(); ++i)
    if ((*flags)[i] != 0) letters[i] = attention_letter::kWindow;
}

/// Of --no-rope-freq n every n-th layer has no positions; a list has 1 for those.
void MegatronJob::read_unturned_layers(std::string& letters) {
  const std::string freq = text("--no-rope-freq").value_or("");
  if (positions_ == "none") letters.assign(letters.size(), attention_letter::kWithoutPositions);
  if (is_none(freq) || freq == "0" || positions_ == "none") return;
  auto flags = layer_flags(freq, layers_, true);
  if (!flags)
    return cannot(
        "--no-rope-freq",
        "is neither a number nor a list of 0 and 1 for " + std::to_string(layers_) + " layers",
        "use n, where every n-th layer has no positions, or [0,0,0,1]*n");
  const bool counted = whole_number(freq).has_value();
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const bool unturned = counted ? (*flags)[i] == 0 : (*flags)[i] != 0;
    if (!unturned) continue;
    if (letters[i] == attention_letter::kWindow)
      return cannot("--no-rope-freq", "takes positions from layers with a window: not simulated");
    letters[i] = attention_letter::kWithoutPositions;
  }
}

void MegatronJob::read_attention_pattern() {
  const auto layers = static_cast<std::size_t>(std::min<std::int64_t>(layers_, 10'000));
  std::string letters(layers, attention_letter::kFull);
  for (const char* name : {"--window-size", "--no-rope-freq"})
    if (paired_ && given(name)) cannot(name, "beside delta nets is not simulated");
  if (!paired_) read_window(letters);
  read_unturned_layers(letters);
  ModelSpec model;
  set_attention_pattern(model, window_, letters);
  if (model.window > 0) draft_.set("model.window", model.window);
  if (model.full_every > 0) draft_.set("model.full_every", model.full_every);
  if (!model.attention_pattern.empty())
    draft_.set_text("model.attention_pattern", model.attention_pattern);
}

/// --moe-layer-freq n: the first of n layers has experts; a list has 1 for those that have.
std::string MegatronJob::expert_letters() {
  const auto flags = layer_flags(text("--moe-layer-freq").value_or("1"), layers_, false);
  std::string letters;
  if (!flags) return letters;
  for (const int experts : *flags)
    letters += experts != 0 ? layer_letter::kExperts : layer_letter::kFeedForward;
  return letters;
}

void MegatronJob::read_expert_layers() {
  const std::string letters = expert_letters();
  ModelSpec model;
  if (letters.empty() || !set_expert_pattern(model, letters))
    return cannot("--moe-layer-freq",
                  "gives no layer of " + std::to_string(layers_) + " experts, or is no list for " +
                      std::to_string(layers_) + " layers",
                  "use [0]*a+[1]*b with a + b layers");
  if (!is_llama_ && (model.dense_layers > 0 || !model.expert_pattern.empty()))
    return cannot(
        "--moe-layer-freq",
        "is not simulated with layer norms and learned positions: every layer has experts");
  if (model.dense_layers > 0) draft_.set("model.dense_layers", model.dense_layers);
  if (!model.expert_pattern.empty()) draft_.set_text("model.expert_pattern", model.expert_pattern);
}

/// pretrain_mamba.py with the stack of Mamba-2: sizes that are not given are Megatron's.
void MegatronJob::read_hybrid() {
  const std::string pattern = text("--hybrid-override-pattern").value_or("");
  hybrid_ = !pattern.empty();
  const std::string spec = text("--spec").value_or("");
  flag("--is-hybrid-model");
  if (!is_none(spec) && !(hybrid_ && spec.find("mamba_stack_spec") != std::string::npos))
    cannot("--spec", "is not simulated: layers of another make than those of GPT-2 and Llama");
  const bool states = launch_.program.find("mamba") != std::string::npos ||
                      launch_.program.find("pretrain_hybrid") != std::string::npos;
  if (states && !hybrid_)
    cannot("--hybrid-override-pattern",
           "is missing: " + launch_.program + " trains layers that it names",
           "add the pattern, a letter M, *, - or E per layer");
  if (!hybrid_) return;
  const std::int64_t head = integer("--mamba-head-dim").value_or(64);
  draft_.set_text("model.layer_pattern", pattern);
  draft_.set("model.mamba_head_dim", head);
  draft_.set("model.mamba_heads",
             integer("--mamba-num-heads").value_or(std::max<std::int64_t>(2 * hidden_ / head, 1)));
  draft_.set("model.mamba_state", integer("--mamba-state-dim").value_or(128));
  draft_.set("model.mamba_groups", integer("--mamba-num-groups").value_or(8));
  draft_.approximate("the kernels of Mamba-2 layers were never measured");
}

}  // namespace tessera

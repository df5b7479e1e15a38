// Programs of Megatron-LM and its forks that are no training of a GPT or Llama model.
#include <array>
#include <utility>

#include "app/import/job/megatron/megatron_arguments.h"
#include "app/import/shell/shell_state.h"

namespace tessera {
namespace {

/// Pattern of a program's name without its folder -> what it does. The first that fits counts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 28> kOthers{{
    {"pretrain_bert*", "trains BERT"},
    {"pretrain_t5*", "trains T5"},
    {"pretrain_ict*", "trains a retriever"},
    {"pretrain_biencoder*", "trains a retriever"},
    {"pretrain_retro*", "trains a model with retrieval"},
    {"pretrain_vision*", "trains a vision model"},
    {"pretrain_vlm*", "trains a model with a vision tower"},
    {"pretrain_llava*", "trains a model with a vision tower"},
    {"*qwen2_vl*", "trains a model with a vision tower"},
    {"*qwen2_5_vl*", "trains a model with a vision tower"},
    {"train_rl*", "trains by reinforcement learning, whose step also generates"},
    {"*text_generation*", "generates text"},
    {"*generate*", "generates text"},
    {"*inference*", "generates text"},
    {"*_server.py", "serves a model"},
    {"*evaluate*", "evaluates a model"},
    {"*eval_*", "evaluates a model"},
    {"*_eval.py", "evaluates a model"},
    {"*convert*", "converts checkpoints"},
    {"*hf2mcore*", "converts checkpoints"},
    {"*mcore2hf*", "converts checkpoints"},
    {"*2megatron*", "converts checkpoints"},
    {"*megatron2*", "converts checkpoints"},
    {"*merge_*", "merges files"},
    {"*preprocess*", "prepares data"},
    {"*build_*", "prepares data"},
    {"*download*", "prepares data"},
    {"*report_theoretical_memory*", "reports figures"},
}};

/// Programs whose folder says what they do.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kByPath{{
    {"*tasks/main.py", "evaluates or fine-tunes for a task"},
    {"*checkpoint/*", "converts checkpoints"},
    {"*multimodal/*", "trains a model with a vision tower"},
}};

}  // namespace

std::optional<std::string> why_no_gpt_training(std::string_view program) {
  const std::size_t slash = program.rfind('/');
  const std::string_view name = program.substr(slash == std::string_view::npos ? 0 : slash + 1);
  for (const auto& [pattern, what] : kByPath) {
    if (matches_glob(program, pattern)) return std::string(what);
  }
  for (const auto& [pattern, what] : kOthers) {
    if (matches_glob(name, pattern)) return std::string(what);
  }
  return std::nullopt;
}

}  // namespace tessera

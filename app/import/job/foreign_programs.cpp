#include "app/import/job/foreign_programs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace tessera {
namespace {

/// What a program is, and the profile that comes nearest; "": its steps are of another kind.
/// `reader`: which import reads its files; "": none.
struct Program {
  std::string_view name, what, profile, reader;
};

constexpr Program kAxolotl{"axolotl", "Hugging Face's Trainer behind files of its own", "hf-eager",
                           "accelerate"};
constexpr Program kLlamaFactory{"LLaMA-Factory", "Hugging Face's Trainer behind files of its own",
                                "hf-eager", "accelerate"};
constexpr Program kTrl{"TRL", "Hugging Face's Trainer", "hf-eager", ""};
constexpr Program kSwift{"ms-swift", "Hugging Face's Trainer", "hf-eager", ""};
constexpr Program kUnsloth{"Unsloth", "one GPU with Triton kernels of its own", "hf-eager", ""};
constexpr Program kTorchtune{"torchtune", "FSDP2 in bf16 throughout", "torchtune", ""};
constexpr Program kLitgpt{"litgpt", "PyTorch FSDP by Lightning Fabric", "fsdp", ""};
constexpr Program kLightning{"Lightning", "PyTorch's DDP or FSDP around a model of one's own",
                             "fsdp", ""};
constexpr Program kNemo{"NeMo", "Megatron-Core behind Lightning or recipes", "megatron", ""};
constexpr Program kBridge{"Megatron-Bridge", "Megatron-Core behind recipes", "megatron", ""};
constexpr Program kAutomodel{"NeMo AutoModel", "transformers under FSDP2", "automodel", ""};
constexpr Program kFoundry{"llm-foundry", "PyTorch FSDP by Composer", "llm-foundry", "llm-foundry"};
constexpr Program kNanotron{"nanotron", "its own tensor and pipeline parallelism", "nanotron",
                            "nanotron"};
constexpr Program kNeox{"GPT-NeoX", "Megatron's layers under DeepSpeed", "megatron-deepspeed", ""};
constexpr Program kColossal{"Colossal-AI", "Gemini and plug-ins of its own", "megatron", ""};
constexpr Program kVerl{"verl", "reinforcement learning, whose step also generates text", "", ""};
constexpr Program kVerlSft{"verl's fine-tuning", "transformers under FSDP", "fsdp", ""};
constexpr Program kOpenRlhfSft{"OpenRLHF's fine-tuning", "transformers under DeepSpeed", "hf-eager",
                               ""};
constexpr Program kSwiftMegatron{"ms-swift", "Megatron-Core behind arguments of its own",
                                 "megatron", ""};
constexpr Program kXtuner{"XTuner", "transformers behind files of its own", "hf-eager", ""};
constexpr Program kRay{"Ray", "workers that run a loop of one's own", "hf-eager", ""};
constexpr Program kOpenRlhf{"OpenRLHF", "reinforcement learning, whose step also generates text",
                            "", ""};

/// By a key that no scenario has. The first that is there counts: many have a tokenizer.
struct FileKey {
  std::string_view key;
  const Program& program;
};
constexpr std::array<FileKey, 8> kFileKeys{{
    {"actor_rollout_ref", kVerl},
    {"checkpoint_dir", kLitgpt},
    {"tokenizer_dir", kLitgpt},
    {"lora_r", kLitgpt},
    {"step_scheduler", kAutomodel},
    {"trainer", kLightning},
    {"pipe_parallel_size", kNeox},
    {"tokenizer", kTorchtune},
}};

/// By a word of the command, or the name of the file that a path ends with; a "*" stands for
/// anything at its end or start. A plain word counts ahead of the first option alone, and `next`
/// has to follow it.
struct CommandWord {
  std::string_view word, next;
  const Program& program;
};
constexpr std::array<CommandWord, 36> kCommandWords{{
    {"axolotl", "", kAxolotl},
    {"axolotl.*", "", kAxolotl},
    {"llamafactory-cli", "", kLlamaFactory},
    {"lmf", "train", kLlamaFactory},
    {"--finetuning_type*", "", kLlamaFactory},
    {"trl", "", kTrl},
    {"swift", "sft", kSwift},
    {"swift", "pt", kSwift},
    {"swift", "rlhf", kSwift},
    {"megatron", "sft", kSwiftMegatron},
    {"megatron", "pt", kSwiftMegatron},
    {"megatron", "rlhf", kSwiftMegatron},
    {"*unsloth*", "", kUnsloth},
    {"unsloth.*", "", kUnsloth},
    {"tune", "run", kTorchtune},
    {"litgpt", "", kLitgpt},
    {"fabric", "run", kLightning},
    {"lightning", "run", kLightning},
    {"fit", "--trainer.*", kLightning},
    {"nemo", "llm", kNemo},
    {"automodel", "", kAutomodel},
    {"nemo_automodel*", "", kAutomodel},
    {"setup_experiment.py", "", kBridge},
    {"run_script.py", "", kBridge},
    {"run_recipe.py", "", kBridge},
    {"composer", "", kFoundry},
    {"deepy.py", "", kNeox},
    {"colossalai", "run", kColossal},
    {"verl.trainer.fsdp_sft_trainer", "", kVerlSft},
    {"verl.trainer.sft_trainer*", "", kVerlSft},
    {"verl.*", "", kVerl},
    {"openrlhf.cli.train_sft", "", kOpenRlhfSft},
    {"openrlhf.*", "", kOpenRlhf},
    {"xtuner", "train", kXtuner},
    {"ray", "job", kRay},
    {"ray", "submit", kRay},
}};

bool fits(std::string_view word, std::string_view pattern) {
  if (!pattern.ends_with("*")) return word == pattern;
  const bool anywhere = pattern.starts_with("*");
  const std::string_view part =
      pattern.substr(anywhere ? 1 : 0, pattern.size() - (anywhere ? 2 : 1));
  return anywhere ? word.ends_with(".py") && word.find(part) != std::string_view::npos
                  : word.starts_with(part);
}

bool is_plain(std::string_view pattern) {
  return pattern.find_first_of(".*") == std::string_view::npos;
}

std::string way_around(const Program& program) {
  const std::string rest =
      "--micro-batch, --global-batch, --sequence-length and --gpus; LoRA, 4-bit weights and "
      "recomputation are --set training.lora_rank, training.base_weights and training.recompute of "
      "fit, or fields of the scenario that import huggingface writes";
  if (program.profile.empty()) return "write a scenario for the steps that train";
  return "give the model's config.json with --framework " + std::string(program.profile) +
         ", whose kernels come nearest, " + rest;
}

Problem problem_of(const std::string& where, const std::string& what, const Program& program) {
  return {where,
          what + " " + std::string(program.name) + " (" + std::string(program.what) +
              "), which is not read",
          way_around(program)};
}

/// Of a program whose files are read.
Problem problem_of_file(const std::string& where, const ShellCommand& command,
                        const Program& program) {
  const auto file = std::ranges::find_if(command.words, [](const ShellWord& word) {
    return word.text.ends_with(".yaml") || word.text.ends_with(".yml") ||
           word.text.ends_with(".json");
  });
  const bool named = file != command.words.end();
  return {where,
          "starts " + std::string(program.name) +
              (named ? " with " + file->text + ", which is not there, or holds no training"
                     : " without a file (YAML) that is read"),
          "put it beside the script, or give it by itself: tessera import " +
              std::string(program.reader) + " FILE"};
}

/// A word's last part: "unsloth-cli.py" of "tools/unsloth-cli.py", "lightning_train" of none.
std::string last_name(const std::string& word) {
  return word.starts_with("-") ? word : std::filesystem::path(word).filename().string();
}

const Program* program_of(const ShellCommand& command) {
  const auto begin = command.words.begin();
  const auto end = command.words.end();
  const auto options =
      std::find_if(begin, end, [](const ShellWord& one) { return one.text.starts_with("-"); });
  for (const CommandWord& known : kCommandWords) {
    const auto last = is_plain(known.word) ? options : end;
    const auto word = std::find_if(
        begin, last, [&](const ShellWord& one) { return fits(last_name(one.text), known.word); });
    if (word == last) continue;
    const bool goes_on =
        known.next.empty() || std::any_of(std::next(word), end, [&](const ShellWord& one) {
          return fits(one.text, known.next);
        });
    if (goes_on) return &known.program;
  }
  const bool trains = std::any_of(
      begin, end, [](const ShellWord& one) { return last_name(one.text) == "run_train.py"; });
  const bool by_file = std::any_of(
      begin, end, [](const ShellWord& one) { return one.text.starts_with("--config-file"); });
  return trains && by_file ? &kNanotron : nullptr;
}

}  // namespace

std::optional<Problem> problem_of_foreign_file(const YamlNode& tree) {
  const YamlEntry* model = tree.find("model");
  const auto has = [&](const char* key) { return model && model->value.find(key); };
  const bool is_nemo = has("tensor_model_parallel_size");
  for (const FileKey& known : kFileKeys)
    if (const YamlEntry* entry = tree.find(known.key))
      return problem_of(entry->mark.text(), std::string(known.key) + ": a file of",
                        is_nemo                   ? kNemo
                        : has("partial_pretrain") ? kVerlSft
                                                  : known.program);
  if (is_nemo)
    return problem_of(model->mark.text(), "model.tensor_model_parallel_size: a file of", kBridge);
  return std::nullopt;
}

std::optional<Problem> problem_of_foreign_program(const ShellScript& script,
                                                  const std::string& name) {
  for (const ShellCommand& command : script.commands) {
    const std::string first = command.words.front().text;
    const bool prepares = first == "echo" || first == "cd" || first == "pip" || first == "git" ||
                          first == "export" || first == "source" || first == "mkdir";
    const Program* program = prepares ? nullptr : program_of(command);
    const std::string where = name + ":" + std::to_string(command.words.front().line);
    if (program)
      return program->reader.empty() ? problem_of(where, "starts", *program)
                                     : problem_of_file(where, command, *program);
  }
  return std::nullopt;
}

}  // namespace tessera

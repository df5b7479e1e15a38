// What a command with arguments of Hugging Face's Trainer is: fine-tuning, or another step.
#include "app/import/job/trainer/trainer_kind.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "app/import/job/script_environment.h"
#include "app/import/job/trainer/trainer_arguments.h"
#include "hw/units/lower_case.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWayOut =
    "give the model's config.json with --framework hf-eager for the memory of the trained model "
    "alone, or a script that pretrains or fine-tunes";

/// "dpo_llama2" of "examples/dpo_llama2.py", all of "trl.scripts.dpo".
std::string name_of_program(const std::string& program) {
  const fs::path path(program);
  return lower_case(path.extension() == ".py" ? path.stem().string() : path.filename().string());
}

/// Whether `part` stands between the ends of `name`, '-', '_' and '.': "dpo" in "my-dpo".
bool has_part(const std::string& name, std::string_view part) {
  constexpr std::string_view kEnds = "-_.";
  for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    const bool begins = at == 0 || kEnds.find(name[at - 1]) != std::string_view::npos;
    const bool ends = end == name.size() || kEnds.find(name[end]) != std::string_view::npos;
    if (begins && ends) return true;
  }
  return false;
}

/// By its name, or that of a folder ("grpo/train.py", "my-dpo/train.py").
bool runs_other_models(const std::string& program) {
  const std::string name = name_of_program(program);
  const fs::path folders = fs::path(program).parent_path();
  return std::ranges::any_of(trainer::kOtherPrograms, [&](std::string_view part) {
    return name.find(part) != std::string::npos ||
           std::ranges::any_of(folders, [&](const fs::path& folder) {
             return has_part(lower_case(folder.string()), part);
           });
  });
}

void refuse_other_programs(const TrainerCommand& command, const ForeignFields& arguments) {
  if (runs_other_models(command.program))
    throw InputError({command.where,
                      "starts " + command.program +
                          ", whose step runs other models beside the one that is trained",
                      kWayOut});
  for (const std::string_view argument : trainer::kOfOtherPrograms) {
    const auto found = arguments.values().find(std::string(argument));
    if (found == arguments.values().end()) continue;
    throw InputError({found->second.where,
                      found->first +
                          " is of programs that compare or generate texts (DPO, GRPO), whose step "
                          "runs other models or passes beside those that are simulated",
                      kWayOut});
  }
}

/// accelerate reads them in place of a file (accelerate/utils/launch.py sets them).
void refuse_variables(const TrainerCommand& command) {
  for (const char* name : {"ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED",
                           "ACCELERATE_USE_MEGATRON_LM", "ACCELERATE_MIXED_PRECISION"}) {
    const std::string value = environment_value(name, command.script);
    const std::string word = lower_case(value);
    if (word.empty() || word == "false" || word == "0" || word == "no") continue;
    throw InputError(
        {command.where,
         "runs under " + std::string(name) + "=" + value + " of the environment, which is not read",
         "say it by --fsdp, --deepspeed, --bf16, or by a file of accelerate launch"});
  }
}

/// Examples of transformers train where they are told to.
void refuse_evaluation(const TrainerCommand& command, const ForeignFields& arguments) {
  constexpr std::string_view kExamples[] = {
      "run_clm", "run_mlm",           "run_plm",         "run_fim",  "run_glue", "run_qa",
      "run_ner", "run_summarization", "run_translation", "run_swag", "run_squad"};
  const std::string name = name_of_program(command.program);
  const bool is_example = std::ranges::find(kExamples, name) != std::end(kExamples);
  const bool evaluates = arguments.has("--do_eval") || arguments.has("--do_predict");
  if (is_example && evaluates && !arguments.has("--do_train"))
    throw InputError({command.where,
                      "starts " + command.program + " without --do_train, which evaluates alone",
                      "add --do_train, or give the model's config.json"});
}

/// The name of a data set whose texts are compared; empty: it may be any.
std::string pairs_in(ForeignFields& arguments) {
  constexpr std::string_view kOfPairs[] = {"dpo", "preference", "binarized",
                                           "kto", "rlhf",       "reward"};
  const std::string data = arguments.text("--dataset_name").value_or("");
  const bool compares = std::ranges::any_of(
      kOfPairs, [&](auto part) { return lower_case(data).find(part) != std::string::npos; });
  return compares ? data : "";
}

}  // namespace

void refuse_other_trainings(const TrainerCommand& command, ForeignFields& arguments) {
  refuse_other_programs(command, arguments);
  refuse_variables(command);
  refuse_evaluation(command, arguments);
  const std::string pairs = pairs_in(arguments);
  if (command.is_file && !pairs.empty())
    arguments.refuse("--dataset_name",
                     "is " + pairs +
                         ": whether the program compares its texts (DPO) or trains on them cannot "
                         "be told",
                     "give the script that starts the program");
}

std::vector<std::string> notes_on_program(const TrainerCommand& command, ForeignFields& arguments) {
  std::vector<std::string> notes;
  const std::string pairs = pairs_in(arguments);
  if (command.is_file)
    notes.emplace_back("one model is trained: the file does not say which program reads it");
  else if (!pairs.empty())
    notes.push_back("one model is trained on " + pairs + ", by a program that compares no texts");
  const bool is_trl = name_of_program(command.program).find("sft") != std::string::npos ||
                      std::ranges::any_of(trainer::kOfTrl, [&](auto one) {
                        return arguments.has(std::string(one));
                      });
  if (!is_trl) return notes;
  const std::string by_itself = " on by itself since 0.20, and nothing says which version runs";
  if (!arguments.has("--gradient_checkpointing"))
    notes.push_back("no recomputation: TRL turns --gradient_checkpointing" + by_itself);
  const bool says = arguments.has("--bf16") || arguments.has("--fp16") ||
                    arguments.text("mixed_precision").value_or("no") != "no";
  if (!says) notes.push_back("no autocast: TRL turns --bf16" + by_itself);
  return notes;
}

}  // namespace tessera

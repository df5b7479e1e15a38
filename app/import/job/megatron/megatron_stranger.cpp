#include "app/import/job/megatron/megatron_stranger.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "app/import/job/megatron/megatron_arguments.h"

namespace tessera {
namespace {

std::string option_of(const ShellWord& word) {
  return word.text.substr(0, word.text.find('='));
}

/// One of them is enough, and so is a word that the file does not tell.
bool says_model(const std::vector<ShellWord>& words) {
  constexpr std::string_view kSizes[] = {"--num-layers",          "--encoder-num-layers",
                                         "--hidden-size",         "--num-attention-heads",
                                         "--micro-batch-size",    "--hybrid-override-pattern",
                                         "--use-checkpoint-args", "--tensor-model-parallel-size"};
  return std::ranges::any_of(words, [&](const ShellWord& word) {
    return is_unknown(word.text) || std::ranges::find(kSizes, option_of(word)) != std::end(kSizes);
  });
}

/// " (--model-name, --epochs)" of what Megatron-LM does not have.
std::string others_among(const std::vector<ShellWord>& words, std::size_t from) {
  std::string others;
  for (std::size_t i = from; i < words.size(); ++i) {
    const std::string option = option_of(words[i]);
    if (option.starts_with("--") && !megatron_argument(option))
      others += (others.empty() ? " (" : ", ") + option;
  }
  return others.empty() ? "" : others + ")";
}

}  // namespace

std::optional<Problem> problem_of_stranger(const std::vector<ShellWord>& words, std::size_t program,
                                           const std::string& name) {
  if (program >= words.size() || says_model(words)) return std::nullopt;
  const std::string& file = words[program].text;
  if (file.substr(file.rfind('/') + 1).starts_with("pretrain_")) return std::nullopt;
  return Problem{name + ":" + std::to_string(words.front().line),
                 "starts " + file + ", which is not known: its arguments" +
                     others_among(words, program + 1) +
                     " are not those of a program that is read, and none says the model's size",
                 "give the model's config.json, or an id of tessera list models, with --framework, "
                 "--micro-batch and --sequence-length; or a file or script of a program that "
                 "tessera import reads"};
}

}  // namespace tessera

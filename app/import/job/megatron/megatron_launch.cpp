// Which command of a script starts the training, and what are its arguments.
#include "app/import/job/megatron/megatron_launch.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "app/import/job/foreign_programs.h"
#include "app/import/job/megatron/megatron_arguments.h"
#include "app/import/job/megatron/megatron_stranger.h"

namespace tessera {
namespace {

bool is_option(const std::string& word) {
  return word.size() > 2 && word.starts_with("--") && word[2] != '-' && word[2] != '=';
}

bool is_program(const std::string& word) {
  return word.ends_with(".py") && !word.starts_with("-");
}

/// What stands between the options of the launcher and those of the training.
std::size_t program_at(const std::vector<ShellWord>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_program(words[i].text)) return i;
    const bool is_module =
        words[i].text == "-m" && i + 1 < words.size() && !words[i + 1].text.starts_with("torch.");
    if (is_module) return i + 1;
  }
  return words.size();
}

std::string name_of(const std::string& word) {
  return word.substr(0, word.find('='));
}

/// An argument that only a training has.
bool is_of_training(const std::vector<ShellWord>& words) {
  return std::any_of(words.begin(), words.end(), [](const ShellWord& word) {
    const KnownArgument* known = megatron_argument(name_of(word.text));
    return known && known->use == ArgumentUse::read && word.text != "--world-size";
  });
}

/// Whether what stands behind `option` may be a list of arguments rather than its value.
bool may_be_arguments(const std::string& word, const std::string& option, int values,
                      const std::string& before) {
  if (!is_unknown(word)) return false;
  const bool weighted = !before.empty() && before.find_first_not_of("0123456789.") ==
                                               std::string::npos;  // --data-path 0.3 $A 0.7 $B
  if (values > 0 && !weighted) return true;
  for (const std::string_view start : {"--no-", "--use-", "--disable-", "--enable-", "--reset-",
                                       "--log-", "--finetune", "--mock-data"}) {
    const bool has_value = option == "--log-interval" || option == "--log-level";
    if (option.starts_with(start) && !has_value) return true;
  }
  std::string upper;
  for (const char c : word) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string_view part : {"ARGS", "OPTION", "OPTS", "FLAGS", "PARAMS", "CMD"}) {
    if (upper.find(part) != std::string::npos) return true;
  }
  return false;
}

/// The line of `text` that holds `option`; `otherwise` where none or several do.
int line_of(const std::string& option, const std::string& text, int otherwise) {
  int line = 1;
  int found = 0;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t place = text.find(option, at);
    const std::size_t behind = place + option.size();
    const bool whole = place < end && (behind >= text.size() || text[behind] == '=' ||
                                       std::isspace(static_cast<unsigned char>(text[behind])) ||
                                       text[behind] == '"' || text[behind] == '\'');
    if (whole && found > 0) return otherwise;
    if (whole) found = line;
    at = end + 1;
  }
  return found > 0 ? found : otherwise;
}

/// What a script is read from.
struct ScriptText {
  const std::string& text;
  const std::string& name;
  const ShellScript& script;
};

/// Sorts the words of a command into options and what cannot be told.
class OptionReader {
 public:
  OptionReader(const ScriptText& source, MegatronLaunch& launch)
      : source_(source), launch_(launch) {}

  void read(const std::vector<ShellWord>& words, std::size_t from, std::size_t to, bool launcher) {
    for (std::size_t i = from; i < to; ++i) {
      const std::string& text = words[i].text;
      const bool short_option = launcher && launcher_option(text) && !text.starts_with("--");
      if (!is_option(text) && !short_option) {
        if (!launcher && is_unknown(text)) refuse(words[i]);
        const bool lists = launcher && is_unknown(text) && i > 0;
        if (lists) launch_.unknown += (launch_.unknown.empty() ? "" : " ") + text;
        continue;
      }
      i = read_option(words, i, to, launcher);
    }
  }

 private:
  std::size_t read_option(const std::vector<ShellWord>& words, std::size_t i, std::size_t to,
                          bool launcher) {
    const ShellWord& option = words[i];
    const std::string name = name_of(option.text);
    const bool has_equals = name.size() < option.text.size();
    std::string value = has_equals ? option.text.substr(name.size() + 1) : "";
    int values = has_equals ? 1 : 0;
    while (i + 1 < to && !is_option(words[i + 1].text)) {
      const std::string& next = words[i + 1].text;
      const bool leaves_alone = launcher && (values > 0 || next.starts_with("-"));
      if (leaves_alone) break;
      if (!launcher && may_be_arguments(next, name, values, values > 0 ? words[i].text : ""))
        refuse(words[i + 1]);
      else
        value += (value.empty() ? "" : " ") + next;
      ++values;
      ++i;
    }
    ForeignFields& fields = launcher ? launch_.launcher : launch_.arguments;
    const int line = line_of(name, source_.text, option.line);
    fields.add(name, {value, source_.name + ":" + std::to_string(line)});
    return i;
  }

  void refuse(const ShellWord& word) {
    launch_.problems.push_back({source_.name + ":" + std::to_string(word.line),
                                "the arguments hold " + word.text,
                                hint_for_unknown(word.text, source_.script)});
  }

  const ScriptText& source_;
  MegatronLaunch& launch_;
};

MegatronLaunch launch_of(const ShellCommand& command, const ScriptText& source) {
  MegatronLaunch launch;
  const std::vector<ShellWord>& words = command.words;
  std::size_t program = program_at(words);
  const bool told = program < words.size();
  if (told) launch.program = words[program].text;
  launch.where = source.name + ":" + std::to_string(words.front().line);
  launch.condition = command.condition;
  launch.is_printed = words.front().text == "echo" || words.front().text == "printf";
  launch.is_unnamed = !told;
  OptionReader reader(source, launch);
  if (told) {
    reader.read(words, 0, program, true);
    reader.read(words, program + 1, words.size(), false);
    return launch;
  }
  // "torchrun $SCRIPT --num-layers 32": what the launcher does not know is the program's.
  const auto of_program = [](const ShellWord& word) {
    return is_option(word.text) && !launcher_option(name_of(word.text));
  };
  program = static_cast<std::size_t>(std::find_if(words.begin(), words.end(), of_program) -
                                     words.begin());
  reader.read(words, 0, program, true);
  reader.read(words, program, words.size(), false);
  return launch;
}

/// What sbatch is told, by its options and in the script that it gets.
void add_submission(const std::string& submitted, const ScriptText& source,
                    MegatronLaunch& launch) {
  MegatronLaunch options;
  for (const ShellCommand& command : source.script.commands) {
    if (command.words.front().text == "sbatch")
      OptionReader(source, options).read(command.words, 0, command.words.size(), true);
  }
  for (const ForeignFields& fields : {options.launcher, slurm_directives(submitted, source.name)}) {
    for (const auto& [option, value] : fields.values()) {
      if (!launch.launcher.has(option)) launch.launcher.add(option, value);
    }
  }
}

/// Drops what is less likely a start than others: what is printed, what names no program.
void keep_surest(std::vector<MegatronLaunch>& launches) {
  for (const auto& unlikely : {&MegatronLaunch::is_printed, &MegatronLaunch::is_unnamed}) {
    const auto drops = [&](const MegatronLaunch& launch) { return launch.*unlikely; };
    if (!std::all_of(launches.begin(), launches.end(), drops)) std::erase_if(launches, drops);
  }
}

/// The arguments that a variable holds; empty where it holds something else.
std::vector<ShellWord> arguments_in(const std::vector<std::string>& values) {
  std::vector<ShellWord> words;
  for (const std::string& value : values) {
    const std::vector<std::string> parts =
        values.size() == 1 ? shell_words(value) : std::vector<std::string>{value};
    for (const std::string& part : parts) words.push_back({part, 1});
  }
  const bool holds = !words.empty() && is_option(words.front().text) && is_of_training(words);
  return holds ? words : std::vector<ShellWord>();
}

/// Adds the arguments of one place; another value of the same argument is a problem.
void add_arguments(const ScriptText& source, const std::vector<ShellWord>& words,
                   MegatronLaunch& all) {
  MegatronLaunch one;
  OptionReader(source, one).read(words, 0, words.size(), false);
  for (const auto& [argument, value] : one.arguments.values()) {
    const auto before = all.arguments.values().find(argument);
    const bool differs =
        before != all.arguments.values().end() && before->second.text != value.text;
    if (differs)
      all.problems.push_back({value.where,
                              argument + " is " + before->second.text + " and " + value.text +
                                  " in lists for different jobs",
                              "give a file with the arguments of one job"});
    all.arguments.add(argument, value);
  }
  all.problems.insert(all.problems.end(), one.problems.begin(), one.problems.end());
}

/// Lines of arguments without a command, else variables of arguments for another file.
std::vector<MegatronLaunch> loose_arguments(const ScriptText& source) {
  MegatronLaunch all;
  all.where = source.name;
  std::vector<ShellWord> lines;
  for (const ShellCommand& command : source.script.commands) {
    if (command.words.front().text.starts_with("--"))
      lines.insert(lines.end(), command.words.begin(), command.words.end());
  }
  if (is_of_training(lines)) {
    add_arguments(source, lines, all);
    return {std::move(all)};
  }
  for (const auto& [variable, values] : source.script.variables) {
    if (const auto words = arguments_in(values); !words.empty()) add_arguments(source, words, all);
  }
  if (all.arguments.values().empty()) return {};
  return {std::move(all)};
}

/// Of transformers/training_args.py and its examples, that Megatron-LM does not have.
std::optional<std::string> argument_of_trainer(const std::vector<ShellWord>& words) {
  for (const ShellWord& word : words) {
    const std::string name = word.text.substr(0, word.text.find('='));
    for (const std::string_view own : {"--per_device_train_batch_size", "--model_name_or_path"})
      if (name == own) return name;
  }
  return std::nullopt;
}

/// Why a command starts no training of a GPT; nothing where it may.
std::optional<Problem> problem_of_another(const std::vector<ShellWord>& words,
                                          const std::string& name) {
  const std::size_t program = program_at(words);
  const std::string where = name + ":" + std::to_string(words.front().line);
  if (program < words.size())
    if (const auto why = why_no_gpt_training(words[program].text))
      return Problem{where, words[program].text + " " + *why,
                     "import a script that trains a GPT or Llama model (pretrain_gpt.py)"};
  if (const auto argument = argument_of_trainer(words))
    return Problem{where, "takes " + *argument + ", an argument of Hugging Face's Trainer",
                   "tessera import accelerate reads such scripts, with --model"};
  return std::nullopt;
}

/// "starts train.py, which is not known; " of the first program; "" where none is started.
std::string started_program(const ShellScript& script) {
  for (const ShellCommand& command : script.commands) {
    const std::size_t program = program_at(command.words);
    if (program < command.words.size())
      return "starts " + command.words[program].text + ", which is not known, and ";
  }
  return "";
}

[[noreturn]] void refuse_without_launch(const ScriptText& source) {
  const auto& [text, name, script] = source;
  if (text.find("model.tensor_model_parallel_size") != std::string::npos ||
      text.find("trainer.num_nodes") != std::string::npos)
    throw InputError({name,
                      "holds settings of NeMo (model.num_layers=...), not Megatron's arguments",
                      "give the arguments as --num-layers and so on, or write a scenario"});
  const bool ended = !script.ended.empty();
  throw InputError(
      {ended ? script.ended : name,
       ended ? "the script ends here and starts no training"
             : started_program(script) + "holds no command with options such as --num-layers",
       ended ? "give what it asks for: --args for its arguments, --define for variables"
             : "give a launch script of Megatron-LM, or its arguments; of another "
               "program the model's config.json with --framework"});
}

}  // namespace

std::string hint_for_unknown(const std::string& value, const ShellScript& script) {
  const std::vector<std::string> names = unknown_variables(value);
  const std::size_t command = value.find("$(");
  const bool by_program = command != std::string::npos && value.compare(command, 3, "$((") != 0;
  if (names.empty() || by_program)
    return "only a program tells; set the variable by --define, or put the value there";
  std::string hint;
  for (const std::string& name : names) {
    const auto why = script.undecided.find(name);
    const bool is_place = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
    if (!hint.empty()) hint += "; ";
    if (why != script.undecided.end()) {
      const bool on_place = why->second.size() > 1 && why->second[0] == '$' &&
                            std::isdigit(static_cast<unsigned char>(why->second[1]));
      hint += name + " depends on " + why->second + ": add " +
              (on_place ? "--args with the arguments of the script" : "--define for that") +
              ", or --define " + name + "=VALUE";
    } else if (is_place) {
      hint += "add --args with the arguments of the script";
    } else {
      hint += "the file does not set it; add --define " + name + "=VALUE";
    }
  }
  if (!script.sourced.empty()) hint += " (" + script.sourced.front() + " is not read)";
  return hint;
}

MegatronLaunch launch_of_command(const ShellCommand& command, const std::string& text,
                                 const ShellScript& script, const std::string& name) {
  return launch_of(command, {text, name, script});
}

std::optional<MegatronLaunch> launch_with(std::initializer_list<std::string_view> options,
                                          const std::string& text, const ShellScript& script,
                                          const std::string& name) {
  for (const ShellCommand& command : script.commands) {
    const bool has = std::ranges::any_of(command.words, [&](const ShellWord& word) {
      return std::ranges::find(options, name_of(word.text)) != options.end();
    });
    if (has) return launch_of(command, {text, name, script});
  }
  return std::nullopt;
}

ShellScript script_of_job(const std::string& text, const std::string& name,
                          const JobOptions& options) {
  ShellSettings settings;
  settings.preset = slurm_variables(text, name);
  for (const auto& [variable, value] : options.variables) settings.defined[variable] = {value};
  settings.arguments = shell_words(options.arguments);
  return read_shell_script(text, name, settings);
}

std::vector<MegatronLaunch> megatron_launches(const std::string& text, const ShellScript& script,
                                              const std::string& name) {
  const ScriptText source{text, name, script};
  std::vector<MegatronLaunch> launches;
  std::vector<Problem> others;
  for (const ShellCommand& command : script.commands) {
    const std::vector<ShellWord>& words = command.words;
    if (auto other = problem_of_another(words, name))
      others.push_back(std::move(*other));
    else if (!is_of_training(words) || words.front().text.starts_with("--"))
      continue;
    else if (auto stranger = problem_of_stranger(words, program_at(words), name))
      others.push_back(std::move(*stranger));
    else
      launches.push_back(launch_of(command, source));
  }
  keep_surest(launches);
  if (!launches.empty()) return launches;
  for (const auto& [file, content] : script.files) {
    const bool is_script = content.find(".py") != std::string::npos &&
                           content.find("--num-layers") != std::string::npos && content != text;
    if (!is_script) continue;
    const ShellScript written = read_shell_script(content, name, {.preset = script.variables});
    launches = megatron_launches(content, written, name);
    for (MegatronLaunch& launch : launches) add_submission(content, source, launch);
    return launches;
  }
  launches = loose_arguments(source);
  if (!launches.empty()) return launches;
  if (auto problem = problem_of_foreign_program(script, name)) throw InputError({*problem});
  if (!others.empty()) throw InputError(std::move(others));
  refuse_without_launch(source);
}

}  // namespace tessera

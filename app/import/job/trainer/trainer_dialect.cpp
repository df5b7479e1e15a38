#include "app/import/job/trainer/trainer_dialect.h"

#include <algorithm>

#include "app/import/job/trainer/trainer_arguments.h"
#include "hw/units/lower_case.h"
#include "sim/config/suggest.h"

namespace tessera {
namespace {

bool is_of_trainer_itself(const std::string& key) {
  const std::string option = "--" + key;
  const auto is_it = [&](std::string_view known) { return option == known; };
  const auto begins = [&](std::string_view known) { return option.starts_with(known); };
  return std::ranges::any_of(trainer::kRead, is_it) ||
         std::ranges::any_of(trainer::kLengths, is_it) ||
         std::ranges::any_of(trainer::kHarmless, begins) ||
         std::ranges::find(trainer::kRules, option, &UsualValue::key) != trainer::kRules.end();
}

/// The program's own name that a key is likely meant to be; empty: none.
std::string meant_name(const std::string& key, const TrainerDialect& dialect) {
  if (is_of_trainer_itself(key)) return "";
  std::vector<std::string> known(dialect.read.begin(), dialect.read.end());
  for (const auto& [name, option] : dialect.renamed) known.emplace_back(name);
  for (const UsualValue& rule : dialect.rules) known.emplace_back(rule.key);
  return nearest(key, known);
}

}  // namespace

void put_argument(TrainerArguments& arguments, const ForeignFields& file, const std::string& key,
                  const std::string& option, const std::string& value) {
  const auto found = file.values().find(key);
  const auto& any = file.values().begin()->second.where;
  arguments.fields.add(option, {value, found == file.values().end() ? any : found->second.where});
}

std::string words_of_list(std::string list) {
  std::ranges::replace(list, ',', ' ');
  return list;
}

void translate_rest(ForeignFields& file, const TrainerDialect& dialect,
                    TrainerArguments& arguments) {
  for (const Problem& problem : file.problems()) arguments.fields.add_problem(problem);
  for (const std::string& key : file.unread_names()) {
    const ForeignFields::Value value = file.values().at(key);
    const auto rule = std::ranges::find(dialect.rules, key, &UsualValue::key);
    const auto renamed =
        std::ranges::find(dialect.renamed, key, [](const auto& one) { return one.first; });
    const bool is_harmless = std::ranges::any_of(
        dialect.harmless, [&](std::string_view begin) { return key.starts_with(begin); });
    if (rule != dialect.rules.end()) {
      if (value.is_null || lower_case(value.text) == rule->usual) continue;
      arguments.fields.add_problem(
          {value.where, key + " = " + value.text + " " + rule->what, "take it out of the file"});
    } else if (renamed != dialect.renamed.end()) {
      arguments.fields.add(renamed->second, value);
    } else if (is_harmless) {
      arguments.ignored.push_back(key + " = " + value.text + " (" + value.where + ")");
    } else if (const std::string meant = meant_name(key, dialect); !meant.empty()) {
      arguments.fields.add_problem(
          {value.where, key + " is not known", "write " + meant + " if that is meant"});
    } else {
      arguments.fields.add("--" + key, value);
    }
  }
}

}  // namespace tessera

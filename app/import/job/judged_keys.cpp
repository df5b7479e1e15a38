#include "app/import/job/judged_keys.h"

#include <algorithm>
#include <string>
#include <vector>

#include "app/import/job/deepspeed_config.h"
#include "hw/units/lower_case.h"
#include "sim/config/suggest.h"

namespace tessera {
namespace {

void judge_rules(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                 const KeyTable& table) {
  for (const UsualValue& rule : table.rules) {
    const std::string key(rule.key);
    if (in.was_read(key)) continue;
    const auto value = in.text(key);
    if (value && lower_case(*value) != rule.usual)
      leave_out_value(draft, in, options, key, rule.what, "");
  }
}

std::string hint_for(const std::string& key, const KeyTable& table) {
  std::vector<std::string> known(table.read.begin(), table.read.end());
  for (const UsualValue& rule : table.rules) known.emplace_back(rule.key);
  const std::string best = nearest(key, known);
  return best.empty() ? "take it out of the file where it does not"
                      : "write " + best + " if that is meant";
}

bool is_harmless(const std::string& key, const KeyTable& table) {
  return std::ranges::any_of(table.harmless,
                             [&](std::string_view begin) { return key.starts_with(begin); });
}

}  // namespace

void judge_keys(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                const KeyTable& table) {
  judge_rules(draft, in, options, table);
  for (const std::string& key : in.unread_names()) {
    const bool is_set = in.text(key).has_value();
    const std::string value = in.word(key).value_or("");
    if (!is_set || is_harmless(key, table))
      draft.ignore(key + " = " + value + " (" + in.values().at(key).where + ")");
    else
      leave_out_value(draft, in, options, key,
                      "is not known: whether the step depends on it cannot be told",
                      hint_for(key, table));
  }
}

}  // namespace tessera

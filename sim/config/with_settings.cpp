#include "sim/config/with_settings.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "configs/schema/scenario.pb.h"
#include "sim/config/fields/convert.h"
#include "sim/config/fields/field_path.h"
#include "sim/config/files/yaml_text.h"
#include "sim/config/resolve.h"
#include "sim/config/scenario_source.h"

namespace tessera {
namespace {

void erase_field(YamlNode& root, const std::string& path) {
  const std::vector<std::string> names = split_path(path);
  YamlNode* section = &root;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = std::ranges::find(section->entries, names[i], &YamlEntry::key);
    if (found == section->entries.end()) return;
    if (i + 1 < names.size()) {
      section = &found->value;
    } else {
      section->entries.erase(found);
    }
  }
}

}  // namespace

Scenario with_settings(const Scenario& scenario, std::span<const std::string> settings,
                       std::span<const std::string> derived, const Catalog& catalog) {
  schema::Scenario message = to_message(scenario);
  *message.mutable_collectives() = to_message(scenario.collectives);
  const auto origin = std::make_shared<Origin>(Origin{scenario.name, "", false});
  YamlNode tree = to_tree(message, Mark{origin});
  for (const std::string& path : derived) erase_field(tree, path);
  ProblemList problems;
  apply_overrides(tree, settings, *schema::Scenario::descriptor(), problems);
  problems.throw_if_any();
  return ScenarioSource(std::move(tree), scenario.name, catalog).with({});
}

}  // namespace tessera

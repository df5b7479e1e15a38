#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "sim/config/catalog.h"
#include "sim/config/files/yaml_tree.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// A value for one field of a scenario, from a file that says where it stands.
struct FieldSetting {
  std::string path;  ///< "parallelism.tensor"
  YamlNode value;    ///< relative file names in it start at the folder of its file
};

/// A scenario to make variants of. The descriptions that it and its variants refer to are read
/// once.
class ScenarioSource {
 public:
  /// `base` is a mapping of scenario fields, `name` the title of variants that set none.
  ScenarioSource(YamlNode base, std::string name, Catalog catalog);
  ~ScenarioSource();
  ScenarioSource(ScenarioSource&&) noexcept;

  /// The scenario with `settings`, the later one wins. Throws InputError with every problem, as
  /// load_scenario does.
  Scenario with(std::span<const FieldSetting> settings) const;
  /// The same with settings as --set takes them: "parallelism.tensor=4".
  Scenario with_overrides(std::span<const std::string> overrides) const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

/// A catalog id or a file, the path as given.
ScenarioSource open_scenario(const std::filesystem::path& id_or_file, const Catalog& catalog);

/// The scenario that consists of `settings` ("model=gpt2", "training.micro_batch=1"; the later one
/// wins) and defaults. Throws InputError with every problem.
Scenario scenario_of(std::span<const std::string> settings, const std::string& name,
                     const Catalog& catalog);

/// A cluster (id or file) with those of `overrides` that are of it, as "cluster.node_count=4": what
/// has to be known before there is a scenario. Throws InputError with every problem.
ClusterSpec cluster_with(const std::string& id_or_file, std::span<const std::string> overrides,
                         const Catalog& catalog);

/// The whole number that the last of `overrides` gives a field ("parallelism.tensor"), by any of
/// its names; empty where none does, or no whole number.
std::optional<std::int64_t> number_in(std::span<const std::string> overrides,
                                      const std::string& section, const std::string& field);

/// What a step of `scenario` consists of, without name and reliability: equal bytes for scenarios
/// that simulate alike, whichever files they came from. Not text.
std::string identifying_bytes(const Scenario& scenario);

}  // namespace tessera

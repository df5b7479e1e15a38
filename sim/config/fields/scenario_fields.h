#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "sim/config/files/yaml_tree.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// What a field holds: a number in base units (true is 1), or a text or the word of an
/// enumeration. Of a section it is the id or name of what stands there.
using FieldValue = std::variant<double, std::string>;

/// The schema's spelling of the path of a scenario's field ("tp" and other aliases resolved).
/// Throws InputError with an empty `where` for an unknown one.
std::string canonical_path(std::string_view path);

/// Whether only whole numbers may stand at `path`, a canonical one.
bool holds_whole_numbers(const std::string& path);

/// Whether the value at `path`, a canonical one, may follow from other fields where it is not
/// given.
bool follows_from_others(const std::string& path);

/// What `given` means at `path`, a canonical one; empty where it does not fit there or is no
/// single value.
std::optional<FieldValue> value_at(const std::string& path, const YamlNode& given);

/// The fields of a scenario by their paths, with defaults and derived values.
class ScenarioFields {
 public:
  explicit ScenarioFields(const Scenario& scenario);
  ~ScenarioFields();
  ScenarioFields(ScenarioFields&&) noexcept;

  /// Of a canonical path; empty for lists.
  std::optional<FieldValue> at(const std::string& path) const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace tessera

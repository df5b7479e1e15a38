#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tessera::testing {

/// What in `value` breaks `schema`. Knows the keywords that our schemas use: $ref into the root's
/// definitions, const, enum, type, minimum, maximum, required, properties, items and
/// additionalProperties.
inline std::vector<std::string> schema_violations(const nlohmann::json& root,
                                                  const nlohmann::json& schema,
                                                  const nlohmann::json& value,
                                                  const std::string& path = "$");

inline bool has_type(const nlohmann::json& value, const nlohmann::json& type) {
  if (type.is_array()) {
    return std::any_of(type.begin(), type.end(), [&](const auto& t) { return has_type(value, t); });
  }
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return value.type_name() == type.get<std::string>();
}

inline std::vector<std::string> object_violations(const nlohmann::json& root,
                                                  const nlohmann::json& schema,
                                                  const nlohmann::json& value,
                                                  const std::string& path) {
  std::vector<std::string> found;
  for (const auto& key : schema.value("required", nlohmann::json::array())) {
    if (!value.contains(key)) found.push_back(path + " lacks " + key.get<std::string>());
  }
  const auto properties = schema.value("properties", nlohmann::json::object());
  const auto others = schema.value("additionalProperties", nlohmann::json(true));
  for (const auto& [key, member] : value.items()) {
    const auto& rule = properties.contains(key) ? properties[key] : others;
    if (rule == false) found.push_back(path + " has unknown key " + key);
    if (!rule.is_object()) continue;
    for (auto& text : schema_violations(root, rule, member, path + "." + key)) {
      found.push_back(text);
    }
  }
  return found;
}

inline std::vector<std::string> schema_violations(const nlohmann::json& root,
                                                  const nlohmann::json& schema,
                                                  const nlohmann::json& value,
                                                  const std::string& path) {
  if (schema.contains("$ref")) {
    const auto pointer = schema["$ref"].get<std::string>().substr(1);
    return schema_violations(root, root.at(nlohmann::json::json_pointer(pointer)), value, path);
  }
  std::vector<std::string> found;
  if (schema.contains("const") && schema["const"] != value) found.push_back(path + " differs");
  if (schema.contains("enum")) {
    const auto& allowed = schema["enum"];
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
      found.push_back(path + " is not one of the allowed values");
    }
  }
  if (schema.contains("type") && !has_type(value, schema["type"])) {
    found.push_back(path + " is a " + value.type_name());
    return found;
  }
  if (value.is_number() && value < schema.value("minimum", value)) found.push_back(path + " low");
  if (value.is_number() && value > schema.value("maximum", value)) found.push_back(path + " high");
  for (std::size_t i = 0; value.is_array() && schema.contains("items") && i < value.size(); ++i) {
    const std::string item = path + "[" + std::to_string(i) + "]";
    for (auto& text : schema_violations(root, schema["items"], value[i], item)) {
      found.push_back(text);
    }
  }
  if (!value.is_object()) return found;
  for (auto& text : object_violations(root, schema, value, path)) found.push_back(text);
  return found;
}

}  // namespace tessera::testing

#include <nlohmann/json.hpp>
#include <set>

#include <google/protobuf/message.h>

#include "configs/schema/scenario.pb.h"
#include "hw/units/unit_table.h"
#include "sim/config/fields/explain.h"
#include "sim/config/fields/schema_rules.h"
#include "sim/config/files/yaml_text.h"

namespace tessera {
namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;
using Json = nlohmann::ordered_json;

Json string_type() {
  return {{"type", "string"}};
}

Json reference_to(const pb::Descriptor& type) {
  Json section = {{"$ref", "#/$defs/" + type.name()}};
  if (!catalog_of(type)) return section;
  return {{"anyOf", Json::array({string_type(), std::move(section)})}};
}

void add_range(Json& schema, const Field& field) {
  const schema::FieldRules& rules = rules_of(field);
  const bool real = field.cpp_type() == Field::CPPTYPE_DOUBLE;
  const auto bound = [&](double value) {
    return real ? Json(value) : Json(static_cast<std::int64_t>(value));
  };
  if (rules.has_min())
    schema[rules.above_min() ? "exclusiveMinimum" : "minimum"] = bound(rules.min());
  if (rules.has_max())
    schema[rules.below_max() ? "exclusiveMaximum" : "maximum"] = bound(rules.max());
}

Json enum_type(const pb::EnumDescriptor& type) {
  Json words = Json::array();
  for (int i = 0; i < type.value_count(); ++i) {
    words.push_back(type.value(i)->name());
    for (const std::string& alias : rules_of(*type.value(i)).alias()) words.push_back(alias);
  }
  return {{"enum", std::move(words)}};
}

Json number_type(const Field& field, const char* type) {
  Json schema = {{"type", type}};
  add_range(schema, field);
  return schema;
}

/// A value without the list that may be around it.
Json value_type(const Field& field) {
  if (dimension_of(field)) return string_type();
  switch (field.cpp_type()) {
    case Field::CPPTYPE_MESSAGE:
      return reference_to(*field.message_type());
    case Field::CPPTYPE_ENUM:
      return enum_type(*field.enum_type());
    case Field::CPPTYPE_BOOL:
      return {{"type", "boolean"}};
    case Field::CPPTYPE_STRING:
      // YAML reads an unquoted 9.0 as a number; the binder takes its text.
      return {{"type", Json::array({"string", "number"})}};
    case Field::CPPTYPE_DOUBLE:
      return number_type(field, "number");
    default:
      return number_type(field, "integer");
  }
}

std::string description(const Field& field) {
  std::string text = rules_of(field).doc();
  if (const auto dimension = dimension_of(field)) {
    text += " (" + listed_units(*dimension) + ")";
  }
  return text;
}

Json default_value(const Field& field) {
  switch (field.cpp_type()) {
    case Field::CPPTYPE_BOOL:
      return field.default_value_bool();
    case Field::CPPTYPE_ENUM:
      return field.default_value_enum()->name();
    case Field::CPPTYPE_DOUBLE:
      return field.default_value_double();
    case Field::CPPTYPE_INT32:
      return field.default_value_int32();
    case Field::CPPTYPE_INT64:
      return field.default_value_int64();
    default:
      return field.default_value_string();
  }
}

Json property(const Field& field) {
  Json schema = value_type(field);
  if (field.is_repeated()) schema = {{"type", "array"}, {"items", std::move(schema)}};
  schema["description"] = description(field);
  if (field.has_default_value()) schema["default"] = default_value(field);
  return schema;
}

/// The fields that are always required as conditions, each under any of its spellings.
Json required_fields(const pb::Descriptor& type) {
  Json conditions = Json::array();
  for (int i = 0; i < type.field_count(); ++i) {
    const Field& field = *type.field(i);
    if (!rules_of(field).required() || rules_of(field).has_unless()) continue;
    Json spellings = Json::array({Json{{"required", Json::array({field.name()})}}});
    for (const std::string& alias : rules_of(field).alias()) {
      spellings.push_back({{"required", Json::array({alias})}});
    }
    conditions.push_back({{"anyOf", std::move(spellings)}});
  }
  return conditions;
}

Json section_type(const pb::Descriptor& type) {
  Json properties = Json::object();
  for (int i = 0; i < type.field_count(); ++i) {
    const Field& field = *type.field(i);
    properties[field.name()] = property(field);
    for (const std::string& alias : rules_of(field).alias()) properties[alias] = property(field);
  }
  Json schema = {{"type", "object"}, {"description", rules_of(type).doc()}};
  if (catalog_of(type)) {
    // Such a section may be a change to another one, so that nothing is required in it.
    properties[std::string(kExtendsKey)] = {
        {"type", "string"},
        {"description", "id of configs/" + rules_of(type).catalog() + " or file to start from"}};
  } else if (Json required = required_fields(type); !required.empty()) {
    schema["allOf"] = std::move(required);
  }
  schema["properties"] = std::move(properties);
  schema["additionalProperties"] = false;
  return schema;
}

void define(const pb::Descriptor& type, Json& definitions) {
  if (definitions.contains(type.name())) return;
  definitions[type.name()] = section_type(type);
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::Descriptor* section = type.field(i)->message_type();
    if (section != nullptr) define(*section, definitions);
  }
}

}  // namespace

std::string json_schema() {
  const pb::Descriptor& scenario = *schema::Scenario::descriptor();
  Json definitions = Json::object();
  define(scenario, definitions);
  const Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                       {"title", "Tessera scenario"},
                       {"$ref", "#/$defs/" + scenario.name()},
                       {"$defs", std::move(definitions)}};
  return schema.dump(2) + "\n";
}

}  // namespace tessera

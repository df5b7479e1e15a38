#include "sim/config/files/yaml_text.h"

#include <array>
#include <charconv>

#include <google/protobuf/message.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include "sim/config/fields/schema_rules.h"

namespace tessera {
namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;

double number_of(const pb::Message& message, const Field& field) {
  const pb::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      return reflection.GetInt32(message, &field);
    case Field::CPPTYPE_INT64:
      return static_cast<double>(reflection.GetInt64(message, &field));
    default:
      return reflection.GetDouble(message, &field);
  }
}

/// Whether leaving the field out says the same as writing it, and says it better: "not published".
bool is_blank(const pb::Message& message, const Field& field) {
  const pb::Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) return reflection.FieldSize(message, &field) == 0;
  if (!reflection.HasField(message, &field)) return true;
  const schema::FieldRules& rules = rules_of(field);
  const bool always_required = rules.required() && !rules.has_unless();
  const bool else_derived = rules.has_derived_default() && in_range(0, field);
  const bool keeps_zero = field.has_default_value() || always_required || else_derived;
  switch (field.cpp_type()) {
    case Field::CPPTYPE_STRING:
      return reflection.GetString(message, &field).empty();
    case Field::CPPTYPE_INT32:
    case Field::CPPTYPE_INT64:
    case Field::CPPTYPE_DOUBLE:
      return !keeps_zero && number_of(message, field) == 0;
    default:
      return false;
  }
}

std::string whole_text(std::int64_t value, const Field& field) {
  return dimension_of(field) ? to_text(Bytes(value)) : std::to_string(value);
}

YamlNode scalar_node(const pb::Message& message, const Field& field, int index, const Mark& mark) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = scalar_text(message, field, index);
  node.quoted = field.cpp_type() == Field::CPPTYPE_STRING;
  node.mark = mark;
  return node;
}

YamlNode list_node(const pb::Message& message, const Field& field, const Mark& mark) {
  const pb::Reflection& reflection = *message.GetReflection();
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  list.mark = mark;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const bool section = field.cpp_type() == Field::CPPTYPE_MESSAGE;
    list.items.push_back(section ? to_tree(reflection.GetRepeatedMessage(message, &field, i), mark)
                                 : scalar_node(message, field, i, mark));
  }
  return list;
}

YamlNode value_node(const pb::Message& message, const Field& field, const Mark& mark) {
  if (field.is_repeated()) return list_node(message, field, mark);
  if (is_section(field)) return to_tree(message.GetReflection()->GetMessage(message, &field), mark);
  return scalar_node(message, field, 0, mark);
}

void emit(YAML::Emitter& emitter, const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::mapping:
      emitter << YAML::BeginMap;
      for (const YamlEntry& entry : node.entries) {
        emitter << YAML::Key << entry.key << YAML::Value;
        emit(emitter, entry.value);
      }
      emitter << YAML::EndMap;
      return;
    case YamlNode::Kind::sequence:
      emitter << YAML::BeginSeq;
      for (const YamlNode& item : node.items) emit(emitter, item);
      emitter << YAML::EndSeq;
      return;
    case YamlNode::Kind::scalar:
      if (node.quoted) emitter << YAML::DoubleQuoted;
      emitter << node.text;
      return;
    case YamlNode::Kind::null:
    case YamlNode::Kind::broken:
      emitter << YAML::Null;
  }
}

}  // namespace

std::string scalar_text(const pb::Message& message, const Field& field, int index) {
  const pb::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case Field::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) ? "true" : "false";
    case Field::CPPTYPE_ENUM:
      return reflection.GetEnum(message, &field)->name();
    case Field::CPPTYPE_STRING:
      return field.is_repeated() ? reflection.GetRepeatedString(message, &field, index)
                                 : reflection.GetString(message, &field);
    case Field::CPPTYPE_INT32:
      return std::to_string(field.is_repeated()
                                ? reflection.GetRepeatedInt32(message, &field, index)
                                : reflection.GetInt32(message, &field));
    case Field::CPPTYPE_INT64:
      return whole_text(reflection.GetInt64(message, &field), field);
    default:
      return number_text(reflection.GetDouble(message, &field), field);
  }
}

YamlNode to_tree(const pb::Message& message, const Mark& mark) {
  YamlNode section;
  section.kind = YamlNode::Kind::mapping;
  section.mark = mark;
  const pb::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const Field& field = *type.field(i);
    if (is_blank(message, field)) continue;
    section.entries.push_back({field.name(), mark, value_node(message, field, mark)});
  }
  return section;
}

std::string to_yaml(const YamlNode& tree) {
  YAML::Emitter emitter;
  emit(emitter, tree);
  return std::string(emitter.c_str()) + "\n";
}

std::string to_yaml(const pb::Message& message) {
  return to_yaml(to_tree(message, {}));
}

}  // namespace tessera

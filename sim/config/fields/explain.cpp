#include "sim/config/fields/explain.h"

#include <utility>
#include <vector>

#include <google/protobuf/message.h>

#include "configs/schema/scenario.pb.h"
#include "hw/units/input_error.h"
#include "hw/units/unit_table.h"
#include "sim/config/fields/field_path.h"
#include "sim/config/fields/schema_rules.h"
#include "sim/config/files/yaml_text.h"
#include "sim/config/problem_list.h"

namespace tessera {
namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;

std::string type_text(const Field& field) {
  if (field.cpp_type() == Field::CPPTYPE_MESSAGE)
    return field.is_repeated() ? "sections" : "section";
  if (const auto dimension = dimension_of(field)) {
    return std::string(name_of(*dimension)) + " with a unit (" + listed_units(*dimension) + ")";
  }
  switch (field.cpp_type()) {
    case Field::CPPTYPE_BOOL:
      return "true or false";
    case Field::CPPTYPE_ENUM:
      return "one of the values below";
    case Field::CPPTYPE_STRING:
      return "text";
    case Field::CPPTYPE_DOUBLE:
      return "number";
    default:
      return "whole number";
  }
}

/// What an unset field means.
std::string default_text(const Field& field) {
  const schema::FieldRules& rules = rules_of(field);
  const std::string unless = rules.has_unless() ? " unless " + rules.unless() : "";
  if (rules.required()) return "none: it has to be given" + unless;
  if (rules.has_derived_default()) return rules.derived_default();
  if (field.is_repeated()) return "an empty list";
  if (is_section(field)) return "the defaults of its fields";
  const auto unset = pb::MessageFactory::generated_factory()->GetPrototype(field.containing_type());
  const std::string text = scalar_text(*unset, field);
  return text.empty() ? "no text" : text;
}

std::string line(const std::string& label, const std::string& text) {
  return text.empty() ? "" : "  " + label + ": " + text + "\n";
}

std::string value_lines(const pb::EnumDescriptor& type) {
  std::string lines = "  values:\n";
  for (int i = 0; i < type.value_count(); ++i) {
    const pb::EnumValueDescriptor& value = *type.value(i);
    const schema::ValueRules& rules = rules_of(value);
    lines += "    " + value.name();
    for (const std::string& alias : rules.alias()) lines += " (or " + alias + ")";
    lines += (rules.doc().empty() ? "" : ": " + rules.doc()) + "\n";
  }
  return lines;
}

std::string summary_line(const Field& field) {
  const schema::FieldRules& rules = rules_of(field);
  const std::string need = rules.required() ? " (required)" : "";
  return "    " + field.name() + need + ": " + rules.doc() + "\n";
}

std::string section_lines(const pb::Descriptor& type) {
  std::string lines = "  " + rules_of(type).doc() + "\n";
  if (const std::string& folder = rules_of(type).catalog(); !folder.empty()) {
    lines += "  Written as an id of configs/" + folder + ", as a file, or as fields; `" +
             std::string(kExtendsKey) + ": id or file` starts from one and changes fields.\n";
  }
  lines += "  fields:\n";
  for (int i = 0; i < type.field_count(); ++i) lines += summary_line(*type.field(i));
  return lines;
}

std::string field_lines(const Field& field) {
  const schema::FieldRules& rules = rules_of(field);
  std::string aliases;
  for (const std::string& alias : rules.alias()) aliases += (aliases.empty() ? "" : ", ") + alias;
  return line("meaning", rules.doc()) +
         line("type", (field.is_repeated() ? "list of " : "") + type_text(field)) +
         line("range", range_text(field)) + line("default", default_text(field)) +
         line("also written as", aliases);
}

std::string field_text(const std::string& path, const Field& field) {
  std::string text = path + "\n" + field_lines(field);
  if (field.cpp_type() == Field::CPPTYPE_ENUM) text += value_lines(*field.enum_type());
  if (field.cpp_type() == Field::CPPTYPE_MESSAGE) text += section_lines(*field.message_type());
  return text;
}

[[noreturn]] void fail_unknown(std::string_view name, const std::string& path,
                               const pb::Descriptor& type) {
  const std::string place = path.empty() ? " of a scenario" : " of " + path;
  throw InputError(Problem{"", "no field " + shown_value(std::string(name)) + place,
                           field_suggestion(name, type)});
}

void add_paths(const pb::Descriptor& type, const std::string& section,
               std::vector<std::string>& paths) {
  for (int i = 0; i < type.field_count(); ++i) {
    const Field& field = *type.field(i);
    const std::string path = joined_path(section, field.name());
    if (field.is_repeated()) continue;
    if (field.cpp_type() == Field::CPPTYPE_MESSAGE)
      add_paths(*field.message_type(), path, paths);
    else
      paths.push_back(path);
  }
}

/// The field at the end of `path`, which is not empty, and the path as the schema spells it.
std::pair<std::string, const Field*> field_at(std::string_view path) {
  const pb::Descriptor* type = schema::Scenario::descriptor();
  std::string walked;
  const Field* field = nullptr;
  for (const std::string& name : split_path(path)) {
    if (type == nullptr) throw InputError(Problem{"", walked + " has no fields", "stop there"});
    field = find_field(*type, name);
    if (field == nullptr) fail_unknown(name, walked, *type);
    walked = joined_path(walked, field->name());
    type = field->message_type();
  }
  return {walked, field};
}

}  // namespace

std::string explain(std::string_view path) {
  if (path.empty()) return "scenario\n" + section_lines(*schema::Scenario::descriptor());
  const auto [walked, field] = field_at(path);
  return field_text(walked, *field);
}

std::vector<std::string> field_paths() {
  std::vector<std::string> paths;
  add_paths(*schema::Scenario::descriptor(), "", paths);
  return paths;
}

std::vector<std::string> paths_of_fields_called(std::string_view word) {
  std::vector<std::string> paths = field_paths();
  std::erase_if(paths, [word](const std::string& path) {
    const Field& field = *field_at(path).second;
    return find_field(*field.containing_type(), word) != &field;
  });
  return paths;
}

std::string value_word(std::string_view path, int value) {
  return field_at(path).second->enum_type()->FindValueByNumber(value)->name();
}

}  // namespace tessera

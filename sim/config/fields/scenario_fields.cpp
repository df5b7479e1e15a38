#include "sim/config/fields/scenario_fields.h"

#include <vector>

#include <google/protobuf/message.h>

#include "configs/schema/scenario.pb.h"
#include "hw/units/input_error.h"
#include "sim/config/fields/bind.h"
#include "sim/config/fields/convert.h"
#include "sim/config/fields/field_path.h"
#include "sim/config/fields/schema_rules.h"
#include "sim/config/problem_list.h"

namespace tessera {
namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;

/// The fields along a path, outermost first. Throws InputError for an unknown one.
std::vector<const Field*> fields_of(std::string_view path) {
  std::vector<const Field*> fields;
  const pb::Descriptor* type = schema::Scenario::descriptor();
  std::string walked;
  for (const std::string& name : split_path(path)) {
    if (type == nullptr)
      throw InputError(Problem{"", walked + " has no field " + shown_value(name), "stop there"});
    const Field* field = find_field(*type, name);
    if (field == nullptr) {
      const std::string place = walked.empty() ? "a scenario" : walked;
      throw InputError(Problem{"", "no field " + shown_value(name) + " of " + place,
                               field_suggestion(name, *type)});
    }
    walked = joined_path(walked, field->name());
    type = is_section(*field) ? field->message_type() : nullptr;
    fields.push_back(field);
  }
  return fields;
}

FieldValue scalar_value(const pb::Message& message, const Field& field) {
  const pb::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case Field::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) ? 1.0 : 0.0;
    case Field::CPPTYPE_ENUM:
      return reflection.GetEnum(message, &field)->name();
    case Field::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    case Field::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, &field);
    case Field::CPPTYPE_INT32:
      return static_cast<double>(reflection.GetInt32(message, &field));
    default:
      return static_cast<double>(reflection.GetInt64(message, &field));
  }
}

/// The field that names a section.
const Field* name_field(const pb::Descriptor& type) {
  const Field* id = type.FindFieldByName("id");
  return id == nullptr ? type.FindFieldByName("name") : id;
}

}  // namespace

std::string canonical_path(std::string_view path) {
  std::string canonical;
  for (const Field* field : fields_of(path)) canonical = joined_path(canonical, field->name());
  return canonical;
}

bool holds_whole_numbers(const std::string& path) {
  const Field& field = *fields_of(path).back();
  return field.cpp_type() == Field::CPPTYPE_INT32 || field.cpp_type() == Field::CPPTYPE_INT64;
}

bool follows_from_others(const std::string& path) {
  const Field& field = *fields_of(path).back();
  return rules_of(field).has_derived_default() || path.starts_with("training.framework") ||
         path.starts_with("training.mixed_precision");
}

std::optional<FieldValue> value_at(const std::string& path, const YamlNode& given) {
  const Field& field = *fields_of(path).back();
  if (given.kind != YamlNode::Kind::scalar || field.is_repeated()) return std::nullopt;
  if (is_section(field)) return given.text;
  const std::unique_ptr<pb::Message> message(
      pb::MessageFactory::generated_factory()->GetPrototype(field.containing_type())->New());
  if (!bind_scalar(given, field, *message).what.empty()) return std::nullopt;
  return scalar_value(*message, field);
}

struct ScenarioFields::Content {
  schema::Scenario message;
};

ScenarioFields::ScenarioFields(const Scenario& scenario)
    : content_(std::make_unique<Content>(Content{to_message(scenario)})) {}
ScenarioFields::~ScenarioFields() = default;
ScenarioFields::ScenarioFields(ScenarioFields&&) noexcept = default;

std::optional<FieldValue> ScenarioFields::at(const std::string& path) const {
  const pb::Message* message = &content_->message;
  const Field* last = nullptr;
  for (const Field* field : fields_of(path)) {
    if (field->is_repeated()) return std::nullopt;
    if (last != nullptr) message = &message->GetReflection()->GetMessage(*message, last);
    last = field;
  }
  if (!is_section(*last)) return scalar_value(*message, *last);
  const pb::Message& section = message->GetReflection()->GetMessage(*message, last);
  const Field* name = name_field(*section.GetDescriptor());
  if (name == nullptr) return std::nullopt;
  return scalar_value(section, *name);
}

}  // namespace tessera

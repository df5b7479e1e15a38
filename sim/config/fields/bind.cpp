#include "sim/config/fields/bind.h"

#include <google/protobuf/message.h>

#include "configs/schema/scenario.pb.h"
#include "sim/config/fields/explain.h"
#include "sim/config/fields/field_path.h"
#include "sim/config/fields/schema_rules.h"
#include "sim/config/suggest.h"

namespace tessera {
namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;

std::string name_of(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::null:
      return "empty";
    case YamlNode::Kind::scalar:
      return "a single value";
    case YamlNode::Kind::sequence:
      return "a list";
    case YamlNode::Kind::mapping:
    case YamlNode::Kind::broken:
      break;
  }
  return "a section";
}

/// What to write for a field that is no section.
std::string form_of(const Field& field) {
  if (field.cpp_type() == Field::CPPTYPE_ENUM) return listed(value_names(*field.enum_type()));
  return "one value: " + rules_of(field).doc();
}

std::string shown_scalar(const YamlNode& node) {
  const std::string shown = shown_value(node.text);
  const bool add_quotes = node.quoted && !shown.starts_with('"');
  return add_quotes ? "\"" + shown + "\"" : shown;
}

/// Whether the field at the dotted `path` below `node`, a section of type `type`, is `value`.
bool holds(const YamlNode& node, const pb::Descriptor& type, const std::string& path,
           const std::string& value) {
  const std::size_t dot = path.find('.');
  const Field* field = type.FindFieldByName(path.substr(0, dot));
  if (field == nullptr) return false;
  for (const YamlEntry& entry : node.entries) {
    if (find_field(type, entry.key) != field) continue;
    if (dot == std::string::npos) return entry.value.text == value;
    return holds(entry.value, *field->message_type(), path.substr(dot + 1), value);
  }
  return false;
}

class Binder {
 public:
  Binder(const YamlNode& root, const pb::Descriptor& type, ProblemList& problems)
      : root_(root), root_type_(type), problems_(problems) {}

  void bind_section(const YamlNode& node, pb::Message& message, const std::string& path) {
    if (node.kind == YamlNode::Kind::broken) return;
    if (node.kind != YamlNode::Kind::mapping) {
      const bool has_catalog = catalog_of(*message.GetDescriptor()).has_value() && !path.empty();
      const std::string by_name = has_catalog ? "name an id or a file, or " : "";
      return report_kind(node, path, by_name + "write fields as name: value");
    }
    std::map<const Field*, const YamlEntry*> given;
    for (const YamlEntry& entry : node.entries) bind_entry(entry, message, path, given);
    report_missing(node, *message.GetDescriptor(), path, given);
  }

  FieldMarks take_marks() { return std::move(marks_); }

 private:
  void bind_entry(const YamlEntry& entry, pb::Message& message, const std::string& path,
                  std::map<const Field*, const YamlEntry*>& given) {
    const Field* field = find_field(*message.GetDescriptor(), entry.key);
    if (field == nullptr) {
      // Who misspells a required field does not want to hear that it is missing, too.
      given.try_emplace(nearest_field(*message.GetDescriptor(), entry.key), &entry);
      return report_unknown(entry, *message.GetDescriptor(), path);
    }
    const std::string field_path = joined_path(path, field->name());
    const auto [first, added] = given.try_emplace(field, &entry);
    if (!added) {
      return problems_.add(entry.mark, field_path, field_path + " is given twice",
                           "remove one; the first is at " + first->second->mark.text());
    }
    marks_.insert_or_assign(field_path, entry.mark);
    bind_field(entry.value, *field, message, field_path);
  }

  void bind_field(const YamlNode& node, const Field& field, pb::Message& message,
                  const std::string& path) {
    if (field.is_repeated()) return bind_list(node, field, message, path);
    if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
      return bind_section(node, *message.GetReflection()->MutableMessage(&message, &field), path);
    }
    bind_value(node, field, message, path);
  }

  void bind_list(const YamlNode& node, const Field& field, pb::Message& message,
                 const std::string& path) {
    if (node.kind != YamlNode::Kind::sequence) {
      return report_kind(node, path, "write a list: [a, b] or one \"- item\" per line");
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const std::string item_path = path + "[" + std::to_string(i) + "]";
      if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
        bind_section(node.items[i], *message.GetReflection()->AddMessage(&message, &field),
                     item_path);
      } else {
        bind_value(node.items[i], field, message, item_path);
      }
    }
  }

  void bind_value(const YamlNode& node, const Field& field, pb::Message& message,
                  const std::string& path) {
    if (node.kind != YamlNode::Kind::scalar) {
      return report_kind(node, path, "write " + form_of(field));
    }
    const ValueFault fault = bind_scalar(node, field, message);
    if (fault.what.empty()) return;
    problems_.add(node.mark, path, path + " = " + shown_scalar(node) + " " + fault.what,
                  fault.hint);
  }

  void report_kind(const YamlNode& node, const std::string& path, const std::string& hint) {
    if (node.kind == YamlNode::Kind::broken) return;
    const std::string subject = path.empty() ? "the file" : path;
    const bool shows_value = node.kind == YamlNode::Kind::scalar && !path.empty();
    const std::string value = shows_value ? " = " + shown_scalar(node) : "";
    problems_.add(node.mark, path, subject + value + " is " + name_of(node.kind), hint);
  }

  void report_unknown(const YamlEntry& entry, const pb::Descriptor& section,
                      const std::string& path) {
    const std::string place = path.empty() ? "" : " in " + path;
    problems_.add(
        entry.mark, joined_path(path, entry.key), "unknown field " + shown_value(entry.key) + place,
        path.empty() ? root_suggestion(entry.key, section) : field_suggestion(entry.key, section));
  }

  /// Of a scenario the fields of its sections too: "micro_batch" is training.micro_batch.
  static std::string root_suggestion(const std::string& key, const pb::Descriptor& section) {
    if (&section == schema::Scenario::descriptor())
      for (const std::string& field : field_paths())
        if (field.ends_with("." + key)) return did_you_mean(field);
    return field_suggestion(key, section);
  }

  void report_missing(const YamlNode& node, const pb::Descriptor& section, const std::string& path,
                      const std::map<const Field*, const YamlEntry*>& given) {
    for (int i = 0; i < section.field_count(); ++i) {
      const Field* field = section.field(i);
      if (!rules_of(*field).required() || given.contains(field)) continue;
      if (is_excused(*field, node)) continue;
      const std::string field_path = joined_path(path, field->name());
      problems_.add(node.mark, field_path, field_path + " is missing",
                    "add " + field->name() + ": " + rules_of(*field).doc());
    }
  }

  /// Whether the rule `unless` of a required field of the section `node` holds.
  bool is_excused(const Field& field, const YamlNode& node) const {
    const std::string& rule = rules_of(field).unless();
    const std::size_t sign = rule.find(" = ");
    if (sign == std::string::npos) return false;
    const std::string path = rule.substr(0, sign), value = rule.substr(sign + 3);
    return holds(node, *field.containing_type(), path, value) ||
           holds(root_, root_type_, path, value);
  }

  const YamlNode& root_;
  const pb::Descriptor& root_type_;
  ProblemList& problems_;
  FieldMarks marks_;
};

}  // namespace

FieldMarks bind(const YamlNode& root, pb::Message& message, ProblemList& problems) {
  Binder binder(root, *message.GetDescriptor(), problems);
  binder.bind_section(root, message, "");
  return binder.take_marks();
}

}  // namespace tessera

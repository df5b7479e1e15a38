#include "sim/config/fields/schema_rules.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>

#include "sim/config/suggest.h"

namespace tessera {
namespace {

namespace pb = google::protobuf;

struct CatalogFolder {
  std::string_view folder;
  CatalogKind kind;
};
constexpr std::array<CatalogFolder, 9> kCatalogFolders = {
    {{"hw/gpus", CatalogKind::gpus},
     {"hw/nodes", CatalogKind::nodes},
     {"hw/clusters", CatalogKind::clusters},
     {"models", CatalogKind::models},
     {"frameworks", CatalogKind::frameworks},
     {"scenarios", CatalogKind::scenarios},
     {"overlays", CatalogKind::overlays},
     {"collectives", CatalogKind::collectives},
     {"hosts", CatalogKind::hosts}}};

template <class Rules>
bool is_called(const std::string& name, const Rules& rules, std::string_view word) {
  const auto& aliases = rules.alias();
  return name == word || std::find(aliases.begin(), aliases.end(), word) != aliases.end();
}

std::vector<std::string> field_spellings(const pb::Descriptor& section) {
  std::vector<std::string> spellings = field_names(section);
  for (int i = 0; i < section.field_count(); ++i) {
    const auto& aliases = rules_of(*section.field(i)).alias();
    spellings.insert(spellings.end(), aliases.begin(), aliases.end());
  }
  return spellings;
}

std::string plain_text(double value) {
  std::array<char, 32> buffer;
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  // A bound such as 1e300 has too many digits for fixed notation.
  if (result.ec == std::errc()) return {buffer.data(), result.ptr};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

}  // namespace

const schema::FieldRules& rules_of(const pb::FieldDescriptor& field) {
  return field.options().GetExtension(schema::rules);
}
const schema::SectionRules& rules_of(const pb::Descriptor& section) {
  return section.options().GetExtension(schema::section);
}
const schema::ValueRules& rules_of(const pb::EnumValueDescriptor& value) {
  return value.options().GetExtension(schema::value);
}

std::optional<CatalogKind> catalog_of(const pb::Descriptor& section) {
  const std::string& folder = rules_of(section).catalog();
  if (folder.empty()) return std::nullopt;
  const auto found = std::ranges::find(kCatalogFolders, folder, &CatalogFolder::folder);
  assert(found != kCatalogFolders.end());
  return found->kind;
}

const pb::FieldDescriptor* find_field(const pb::Descriptor& section, std::string_view key) {
  for (int i = 0; i < section.field_count(); ++i) {
    const pb::FieldDescriptor* field = section.field(i);
    if (is_called(field->name(), rules_of(*field), key)) return field;
  }
  return nullptr;
}

const pb::EnumValueDescriptor* find_value(const pb::EnumDescriptor& type, std::string_view word) {
  for (int i = 0; i < type.value_count(); ++i) {
    const pb::EnumValueDescriptor* value = type.value(i);
    if (is_called(value->name(), rules_of(*value), word)) return value;
  }
  return nullptr;
}

std::vector<std::string> field_names(const pb::Descriptor& section) {
  std::vector<std::string> names;
  for (int i = 0; i < section.field_count(); ++i) names.push_back(section.field(i)->name());
  return names;
}

std::vector<std::string> value_names(const pb::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return names;
}

std::string field_suggestion(std::string_view key, const pb::Descriptor& section) {
  const std::string best = nearest(key, field_spellings(section));
  return best.empty() ? suggestion(key, field_names(section)) : did_you_mean(best);
}

std::string value_suggestion(std::string_view word, const pb::EnumDescriptor& type) {
  std::vector<std::string> spellings = value_names(type);
  for (int i = 0; i < type.value_count(); ++i) {
    for (const std::string& alias : rules_of(*type.value(i)).alias()) spellings.push_back(alias);
  }
  const std::string best = nearest(word, spellings);
  return best.empty() ? suggestion(word, value_names(type)) : did_you_mean(best);
}

const pb::FieldDescriptor* nearest_field(const pb::Descriptor& section, std::string_view key) {
  return find_field(section, nearest(key, field_spellings(section)));
}

std::optional<Dimension> dimension_of(const pb::FieldDescriptor& field) {
  switch (rules_of(field).dimension()) {
    case schema::FieldRules::number:
      return std::nullopt;
    case schema::FieldRules::bytes:
      return Dimension::bytes;
    case schema::FieldRules::seconds:
      return Dimension::seconds;
    case schema::FieldRules::bytes_per_second:
      return Dimension::bytes_per_second;
    case schema::FieldRules::flops_per_second:
      return Dimension::flops_per_second;
    case schema::FieldRules::hertz:
      return Dimension::hertz;
    case schema::FieldRules::watts:
      return Dimension::watts;
  }
  return std::nullopt;
}

bool is_section(const pb::FieldDescriptor& field) {
  return field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated();
}

std::string number_text(double value, const pb::FieldDescriptor& field) {
  const auto dimension = dimension_of(field);
  if (!dimension) return plain_text(value);
  switch (*dimension) {
    case Dimension::bytes:
      return to_text(Bytes(static_cast<std::int64_t>(value)));
    case Dimension::seconds:
      return to_text(Seconds(value));
    case Dimension::bytes_per_second:
      return to_text(BytesPerSecond(value));
    case Dimension::flops_per_second:
      return to_text(FlopsPerSecond(value));
    case Dimension::hertz:
      return to_text(Hertz(value));
    case Dimension::watts:
      return to_text(Watts(value));
    case Dimension::ratio:
    case Dimension::flops:
      break;  // no field of the schema has them
  }
  return plain_text(value);
}

std::string range_text(const pb::FieldDescriptor& field) {
  const schema::FieldRules& rules = rules_of(field);
  const std::string min = number_text(rules.min(), field);
  const std::string max = number_text(rules.max(), field);
  const std::string above = "above " + min;
  const std::string below = (rules.below_max() ? "below " : "at most ") + max;
  if (!rules.has_min()) return rules.has_max() ? below : "";
  if (!rules.has_max()) return rules.above_min() ? above : min + " or more";
  if (rules.above_min()) return above + " and " + below;
  return rules.below_max() ? min + " or more and " + below : min + " to " + max;
}

bool in_range(double value, const pb::FieldDescriptor& field) {
  const schema::FieldRules& rules = rules_of(field);
  if (rules.has_min() && (rules.above_min() ? value <= rules.min() : value < rules.min())) {
    return false;
  }
  return !rules.has_max() || (rules.below_max() ? value < rules.max() : value <= rules.max());
}

}  // namespace tessera
